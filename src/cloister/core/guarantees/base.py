"""What every guarantee has: a unit, assumptions, caveats, one sentence, and a dictionary form."""

from __future__ import annotations

import copy
import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from cloister.core import exact
from cloister.core.construction import set_fields
from cloister.core.wordings import format_parameter
from cloister.errors import InternalError, ParameterError, did_you_mean


class Adjacency(StrEnum):
    """Which two datasets are neighbors: the pairs that an observer must not be able to tell apart."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    USER = "user"
    TRANSACTION = "transaction"
    ITEM = "item"
    EDGE = "edge"
    NODE = "node"
    TREE = "tree"
    VERTEX = "vertex"
    EVENT = "event"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        names = [str(relation) for relation in cls]
        raise ParameterError(
            f'There is no neighbor relation "{value}".{did_you_mean(str(value), names)}',
            fix=f"use one of {', '.join(names)}.",
        )

    @property
    def meaning(self) -> str:
        """Return the relation in words, with ``{unit}`` where the protected unit goes."""
        return _MEANING[self]


_MEANING = {
    Adjacency.ADD_REMOVE: "one {unit} is added or removed",
    Adjacency.REPLACE: "one {unit} is changed, the number of them staying the same",
    Adjacency.USER: "all data of one {unit} are added or removed",
    Adjacency.TRANSACTION: "one transaction is added or removed",
    Adjacency.ITEM: "one item inside one transaction is added or removed",
    Adjacency.EDGE: "one connection is added or removed",
    Adjacency.NODE: "one vertex and all its connections are added or removed",
    Adjacency.TREE: "one whole tree of records is added or removed",
    Adjacency.VERTEX: "one vertex of a tree is added or removed",
    Adjacency.EVENT: "one report of a person at one time is added or removed",
}


@dataclass(frozen=True, slots=True)
class Caveat:
    """A circumstance the reader must know; ``breaks`` says that the promise does not hold under it."""

    code: str
    text: str
    breaks: bool = True


SEEDED_RANDOMNESS = Caveat("seeded_randomness", "the random numbers were predictable (a seed was given)")
DATA_DEPENDENT_BOUNDS = Caveat("data_dependent_bounds", "bounds or categories were read from the protected data")
GUESSED_SCHEMA = Caveat("guessed_schema", "bounds, categories or roles were guessed and not confirmed by a person")
IDEALIZED_FLOATS = Caveat("idealized_floats", "the proof is for real numbers, the computation used floating point")

KNOWN_CAVEATS = {
    caveat.code: caveat for caveat in (SEEDED_RANDOMNESS, DATA_DEPENDENT_BOUNDS, GUESSED_SCHEMA, IDEALIZED_FLOATS)
}

REGISTRY: dict[str, type[Guarantee]] = {}
PACKAGES_WITH_KINDS = ("cloister.anonymize.models",)
"""Packages that define further kinds, beside what checks them."""
_G = TypeVar("_G", bound="type[Guarantee]")


def register(cls: _G) -> _G:
    """Make a kind of guarantee known to `guarantee_from_dict`, under a name that no other kind has."""
    known = REGISTRY.get(cls.kind)
    # The same class may be defined again, as in a notebook; another one would read what this one has promised.
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InternalError(f'two kinds of guarantees are called "{cls.kind}"')
    REGISTRY[cls.kind] = cls
    return cls


def find_kind(kind: str) -> type[Guarantee] | None:
    """Return a kind of guarantee by its name; None if there is none."""
    if kind not in REGISTRY:
        # A model of released tables may stand beside its check, in a package above this one, which is loaded by name
        # and only to read what such a model promised, for example on a certificate.
        for package in PACKAGES_WITH_KINDS:
            importlib.import_module(package)
    return REGISTRY.get(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee(ABC):
    """The base of all guarantees."""

    kind: ClassVar[str] = "abstract"

    unit: str = "row"
    assumptions: tuple[str, ...] = ()
    caveats: tuple[Caveat, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether no caveat breaks the promise."""
        return not any(caveat.breaks for caveat in self.caveats)

    def with_caveat(self, *caveats: Caveat) -> Self:
        """Return the same guarantee with further caveats."""
        new = tuple(caveat for caveat in caveats if caveat not in self.caveats)
        return self._copy(caveats=self.caveats + new)

    def with_assumption(self, *assumptions: str) -> Self:
        """Return the same guarantee with further public assumptions."""
        new = tuple(text for text in assumptions if text not in self.assumptions)
        return self._copy(assumptions=self.assumptions + new)

    def without_assumptions(self, assumptions: tuple[str, ...]) -> Self:
        """Return the same guarantee without some assumptions, for texts that say them elsewhere."""
        return self._copy(assumptions=tuple(text for text in self.assumptions if text not in assumptions))

    def explain(self) -> str:
        """Return one sentence for a data owner, followed by what would break the promise."""
        sentence = self._promise()
        if self.assumptions:
            sentence += f" This assumes: {'; '.join(self.assumptions)}."
        for caveat in self.caveats:
            label = "The promise does NOT hold" if caveat.breaks else "Note"
            sentence += f" {label}: {caveat.text}."
        return sentence

    def brief(self) -> str:
        """Return the numbers and the unit, short enough for the end of a line."""
        if not self._numbers():
            return "no guarantee"
        numbers = (
            ", ".join(f"{name} = {format_parameter(value)}" for name, value in self._numbers().items()) + self._about()
        )
        broken = "" if self.holds else " [promise broken]"
        return f"{numbers} per {self.unit}{broken}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; rationals are text such as ``"1/10"``."""
        values: dict[str, Any] = {"schema": f"cloister.guarantee.{self.kind}/1", "holds": self.holds}
        for item in fields(self):
            values[item.name] = _encode(getattr(self, item.name))
        return values

    def _numbers(self) -> dict[str, Any]:
        return {}

    def _about(self) -> str:
        """Return what the numbers are about, where that is a part of the data."""
        return ""

    def _copy(self, **changes: object) -> Self:
        other = copy.copy(self)
        set_fields(other, **changes)
        return other

    @abstractmethod
    def _promise(self) -> str: ...


def _encode(value: Any) -> Any:  # a field's value of any type
    match value:
        case Fraction():
            return exact.text(value)
        case Guarantee():
            return value.to_dict()
        case Adjacency():
            return str(value)
        case tuple():
            return [_encode(item) for item in value]
        case Caveat():
            return {"code": value.code, "text": value.text, "breaks": value.breaks}
        case _:
            return value
