"""Which controls are on, as one value that the data owner sets; and the controls of size, overlap and shown numbers.

**Query-set size.** A question about too few rows, or about all but too few, is not answered. On its own it is not
enough: a tracker (Denning, Denning and Schwartz, 1979) adds and subtracts allowed questions.

**Overlap.** A question shares only few rows with every other one that was answered. With sets of at least k rows that
share at most r rows, nobody's value follows from fewer than 1 + (k - 1) / r sums (Dobkin, Jones and Lipton, "Secure
databases: protection against user influence", 1979). The price is high: after a total, none of its parts can be
asked.

**Treatment.** In place of an exact number a rounded one is shown, or the range that it is in (global recoding).
Both are deterministic: the same number is always shown the same way, so that repeating a question gains nothing. They
are no noise, and answers to different questions can still be combined to narrow a number down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Self, TypeAlias

from cloister.core import validation
from cloister.data.bins import BinInterval
from cloister.errors import ParameterError, ParameterTypeError
from cloister.queries.inference_control._cut_points import Cut, clean_cut_points
from cloister.queries.inference_control._linear_audit import Mask

__all__ = [
    "Controls",
    "Ranges",
    "Rounded",
    "Shown",
    "Treatment",
    "fewest_questions",
    "overlap_permits",
    "size_permits",
    "to_number",
    "treatment_from_dict",
]


def size_permits(*, asked: int, among: int, contributing: int, min_size: int) -> bool:
    """Return whether a question is about enough rows, and leaves out enough.

    Args:
        asked: how many rows meet all conditions.
        among: the rows of the table; for a condition on confidential columns, the rows that meet the other conditions.
        contributing: how many of the asked rows have a value.
        min_size: the fewest rows, asked and left out.

    >>> sum(size_permits(asked=asked, among=10, contributing=asked, min_size=2) for asked in range(11))
    7
    """
    return min_size <= asked <= among - min_size and contributing >= min_size


def overlap_permits(asked: Mask, answered: Iterable[Mask], *, max_overlap: int) -> bool:
    """Return whether a set shares at most so many rows with each other one; the same set again adds nothing."""
    return all((asked & other).sum() <= max_overlap or (asked == other).all() for other in answered)


def fewest_questions(*, min_size: int, max_overlap: int) -> int:
    """Return how many sums it takes at least before a value can follow from them.

    >>> fewest_questions(min_size=10, max_overlap=1), fewest_questions(min_size=10, max_overlap=4)
    (10, 4)
    """
    return 1 + math.ceil(Fraction(min_size - 1, max(max_overlap, 1)))


Shown: TypeAlias = "int | float | BinInterval"


@dataclass(frozen=True, slots=True)
class Rounded:
    """The nearest multiple of a number, halves upward.

    >>> Rounded(to=5).treat(Fraction(12)), Rounded(to=5).treat(Fraction(25, 2))
    (10, 15)
    """

    to: Fraction

    def __init__(self, *, to: object) -> None:
        object.__setattr__(self, "to", validation.check_positive(to, name="to"))

    def treat(self, number: Fraction) -> Shown:
        """Return what is shown for a number."""
        return to_number(math.floor(number / self.to + Fraction(1, 2)) * self.to)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"kind": "rounded", "to": str(self.to)}


@dataclass(frozen=True, slots=True)
class Ranges:
    """The range of a fixed width that a number is in.

    >>> str(Ranges(width=10).treat(Fraction(26)))
    '[20, 30)'
    """

    width: Fraction

    def __init__(self, *, width: object) -> None:
        object.__setattr__(self, "width", validation.check_positive(width, name="width"))

    def treat(self, number: Fraction) -> Shown:
        """Return what is shown for a number."""
        low = math.floor(number / self.width) * self.width
        return BinInterval(to_number(low), to_number(low + self.width))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"kind": "ranges", "width": str(self.width)}


Treatment: TypeAlias = Rounded | Ranges


def to_number(number: Fraction) -> int | float:
    """Return an exact number as people read it."""
    return int(number) if number.denominator == 1 else float(number)


def treatment_from_dict(data: object) -> Treatment | None:
    """Return what `to_dict` was made of; None stands for no treatment.

    Raises:
        ParameterError: if it is neither.
    """
    if data is None:
        return None
    match data:
        case Mapping() if data.get("kind") == "rounded" and set(data) == {"kind", "to"}:
            return Rounded(to=data["to"])
        case Mapping() if data.get("kind") == "ranges" and set(data) == {"kind", "width"}:
            return Ranges(width=data["width"])
    raise ParameterError(
        "A treatment of answers is not understood.", fix='write for example {"kind": "rounded", "to": "5"}.'
    )


_SCHEMA = "cloister.inference_controls/2"
_EARLIER = "cloister.inference_controls/1"
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
        max_questions: how many numbers an organization may ask for in all; refused and repeated ones count, and the
            numbers of all groups of a query.
        cut_points: for confidential columns, the public values at which conditions may cut them: numbers and dates for
            ``<`` and ``>=``, categories for ``=``. A column without any cannot be used in conditions.
        counts: what is shown in place of exact counts.
        sums: what is shown in place of exact sums.
        means: what is shown in place of exact means, minima and maxima.
    """

    min_size: int | None = 10
    max_overlap: int | None = None
    audit: bool = True
    pairs: bool = True
    extremes: bool = False
    max_questions: int = 2000
    cut_points: Mapping[str, Sequence[Cut]] = field(default_factory=dict, hash=False)
    counts: Treatment | None = None
    sums: Treatment | None = None
    means: Treatment | None = None

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        if self.min_size is not None:
            set_(self, "min_size", validation.check_count(self.min_size, name="min_size", at_least=2))
        if self.max_overlap is not None:
            set_(self, "max_overlap", validation.check_count(self.max_overlap, name="max_overlap"))
        set_(self, "max_questions", validation.check_count(self.max_questions, name="max_questions", at_least=1))
        set_(self, "cut_points", clean_cut_points(self.cut_points))
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
        values["cut_points"] = {name: list(points) for name, points in self.cut_points.items()}
        return values

    def about(self, columns: Iterable[str]) -> Self:
        """Return the controls of a table that has some of the columns, without the cut points of the others."""
        return replace(self, cut_points={name: self.cut_points[name] for name in columns if name in self.cut_points})

    @classmethod
    def from_dict(cls, data: Any) -> Self:  # what a file or a client gave
        """Return what `to_dict` was made of.

        Raises:
            ParameterError: if it is something else.
        """
        given = {name: value for name, value in data.items() if name != "schema"} if isinstance(data, Mapping) else {}
        if given and data.get("schema") == _EARLIER and "max_sets" in given:
            given["max_questions"] = given.pop("max_sets")
        known = {item.name for item in fields(cls)}
        if not given or data.get("schema") not in (_SCHEMA, _EARLIER) or not set(given) <= known:
            raise ParameterError(
                "These are not inference controls.", fix="pass what Controls.to_dict() returned, unchanged."
            )
        return cls(**given | {name: treatment_from_dict(given.get(name)) for name in _TREATMENTS})
