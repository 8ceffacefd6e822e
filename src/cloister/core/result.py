"""The base of every result: a value with its guarantee, its margin of error and where it came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from cloister.core.guarantees import Guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ABC):
    """Something released: prints as one line, turns into JSON, and carries its guarantee."""

    schema: ClassVar[str] = "cloister.result/1"

    guarantee: Guarantee

    @abstractmethod
    def __str__(self) -> str: ...

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (("result", str(self)), ("promise", self.guarantee.explain()))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker."""
        return {"schema": self.schema, **self._fields(), "guarantee": self.guarantee.to_dict()}

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """Return the JSON-ready values of this kind of result."""
