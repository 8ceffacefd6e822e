"""Which controls are on, as one value that the data owner sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from cloister.core import validation
from cloister.errors import ParameterError, ParameterTypeError
from cloister.queries.inference_control.overlap import fewest_questions
from cloister.queries.inference_control.treatment import Ranges, Rounded, Treatment, treatment_from_dict

__all__ = ["Controls"]

_SCHEMA = "cloister.inference_controls/1"
_TREATMENTS = ("counts", "sums", "means")
_SWITCHES = ("audit", "pairs", "extremes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The controls of a `ControlledTable`.

    Attributes:
        min_size: the fewest rows that a question may be about, or leave out; None switches the control off.
        max_overlap: how many rows two answered questions may share; None, the default, switches it off.
        audit: whether sums are refused from which, with earlier ones, somebody's value would follow.
        pairs: whether the audit also refuses combinations of two rows, one of which may be the asker's own.
        extremes: whether MIN and MAX are answered; each is the value of one person.
        max_sets: how many different sets are answered; after that, only those again.
        counts: what is shown in place of exact counts.
        sums: what is shown in place of exact sums.
        means: what is shown in place of exact means, minima and maxima.
    """

    min_size: int | None = 10
    max_overlap: int | None = None
    audit: bool = True
    pairs: bool = True
    extremes: bool = False
    max_sets: int = 1000
    counts: Treatment | None = None
    sums: Treatment | None = None
    means: Treatment | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        if self.min_size is not None:
            set_(self, "min_size", validation.check_count(self.min_size, name="min_size", at_least=2))
        if self.max_overlap is not None:
            set_(self, "max_overlap", validation.check_count(self.max_overlap, name="max_overlap"))
        set_(self, "max_sets", validation.check_count(self.max_sets, name="max_sets", at_least=1))
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ParameterTypeError(f"{name} is neither True nor False.", fix=f"write {name}=True.")
        for name in _TREATMENTS:
            if not isinstance(getattr(self, name), Rounded | Ranges | None):
                raise ParameterTypeError(
                    f"{name} is not a way to show numbers.",
                    fix=f"write {name}=Rounded(to=5), {name}=Ranges(width=10), or leave it out.",
                )

    @property
    def fewest_questions(self) -> int | None:
        """Return how many sums overlap control alone forces an attacker to ask; None where it is off."""
        if self.min_size is None or self.max_overlap is None:
            return None
        return fewest_questions(min_size=self.min_size, max_overlap=self.max_overlap)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker."""
        values: dict[str, Any] = {"schema": _SCHEMA}
        for item in fields(self):
            value = getattr(self, item.name)
            values[item.name] = value.to_dict() if isinstance(value, Rounded | Ranges) else value
        return values

    @classmethod
    def from_dict(cls, data: Any) -> Self:  # what a file or a client gave
        """Return what `to_dict` was made of.

        Raises:
            ParameterError: if it is something else.
        """
        known = {item.name for item in fields(cls)}
        if not isinstance(data, Mapping) or data.get("schema") != _SCHEMA or not set(data) <= {"schema", *known}:
            raise ParameterError(
                "These are not inference controls.", fix="pass what Controls.to_dict() returned, unchanged."
            )
        given = {name: value for name, value in data.items() if name != "schema"}
        return cls(**given | {name: treatment_from_dict(given.get(name)) for name in _TREATMENTS})
