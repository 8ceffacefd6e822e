"""Which controls are on, as one value that the data owner sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from cloister.core import validation
from cloister.errors import ParameterError, ParameterTypeError
from cloister.queries.inference_control.cut_points import Cut, clean_cut_points
from cloister.queries.inference_control.overlap import fewest_questions
from cloister.queries.inference_control.treatment import Ranges, Rounded, Treatment, treatment_from_dict

__all__ = ["Controls"]

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
