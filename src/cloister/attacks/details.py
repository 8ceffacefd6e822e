"""What one attack knows besides what every attack reports: typed facts, and the words and charts that only it has.

An attack states its facts as the fields of a frozen dataclass over `AttackDetails`. Each fact is written to JSON under
its name. A fact with a label is told to a person as well, in the summary and in the report; what takes several facts to
tell is a row of `AttackDetails.tell`. Nothing here knows of terminals, Markdown or JSON: `cloister.attacks.result`
renders the details of all attacks alike, and escapes what has to be escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from cloister.errors import CloisterError, ParameterError

if TYPE_CHECKING:
    from cloister.attacks.result import AttackResult
    from cloister.plotting import Figure
    from cloister.report import Block

__all__ = [
    "HELD",
    "AttackDetails",
    "Row",
    "count",
    "fact",
    "join_names",
    "keyed",
    "labeled_facts",
    "number",
    "or_none",
    "write_value",
    "written_facts",
]

Row: TypeAlias = tuple[str, str]
"""A name and a text, as a summary shows them."""

HELD: Final[Mapping[str, Any]] = {"held": True}
"""Metadata of a field that stays in the result, for the custodian: it is in no summary, JSON or report."""


def fact(
    label: str = "", show: Callable[[Any], str] = str, *, write: Callable[[Any], Any] | None = None
) -> dict[str, Any]:
    """Return the metadata of a field that states a fact.

    Args:
        label: how people call it; without one the fact is written to JSON only.
        show: how a value is told to a person; None and empty values are left out.
        write: how a value is written to JSON where the usual way (tuples as lists, rationals as text) does not do.
    """
    return {"label": label, "show": show, "write": write or write_value}


def count(value: int) -> str:
    """Return a number of things as people read it."""
    return f"{value:,}"


def number(form: str) -> Callable[[float], str]:
    """Return how numbers are shown, by the format of their digits.

    >>> number(".3g")(0.12345)
    '0.123'
    """
    return lambda value: format(value, form)


def join_names(names: Iterable[str]) -> str:
    """Return names with commas."""
    return ", ".join(names)


def or_none(value: float) -> float | None:
    """Return a number for JSON, None where there is none."""
    return None if math.isnan(value) else value


def keyed(*names: str) -> Callable[[Iterable[Iterable[Any]]], list[dict[str, Any]]]:
    """Return how tuples are written to JSON as objects with these names.

    >>> keyed("k", "share")([(1, 0.5)])
    [{'k': 1, 'share': 0.5}]
    """
    return lambda rows: [dict(zip(names, map(write_value, row), strict=True)) for row in rows]


def write_value(value: Any) -> Any:
    """Return a fact as JSON has it."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: write_value(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [write_value(item) for item in value]
    return str(value) if isinstance(value, Fraction) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackDetails:
    """What one attack knows besides what every attack reports; by itself, nothing.

    A hook that returns None leaves it at what is usual for every attack.

    Attributes:
        schema: the marker of the JSON of a result with these details.
        further: properties that are written to JSON besides the fields.
    """

    schema: ClassVar[str] = "cloister.attack/1"
    further: ClassVar[tuple[str, ...]] = ()

    def judge(self, _result: AttackResult, /) -> bool | None:
        """Return whether the attack succeeded; usually, if it is surely better than guessing and than the control."""

    def conclude(self, _result: AttackResult, /) -> str | None:
        """Return the verdict: a few sentences for a custodian."""

    def remark(self, _result: AttackResult, /) -> str:
        """Return what the usual verdict says besides, with a space before it."""
        return ""

    def headline(self, _result: AttackResult, /) -> str | None:
        """Return the result in one line."""

    def tell(self, _result: AttackResult, /) -> Iterable[Row]:
        """Return the rows that take several facts; they stand below those of single facts."""
        return ()

    def confide(self, _result: AttackResult, /) -> Iterable[Row]:
        """Return the rows that only the summary has, below all others: a report goes without them."""
        return ()

    def compare(self, _result: AttackResult, /) -> dict[str, float] | None:
        """Return the success and the shares that charts and reports show beside it."""

    def explain_gap(self) -> str:
        """Return why the attack could not be compared with anything, where it could not."""
        return ""

    def draw(self, _result: AttackResult, /) -> Figure | None:
        """Return the chart of this attack; usually, bars of what it is compared with."""

    def illustrate(self, _result: AttackResult, /) -> tuple[Block, ...]:
        """Return the charts and tables that the report has besides."""
        return ()

    def refute(self, _result: AttackResult, /) -> CloisterError | None:
        """Return the error that says which claim is refuted; None if it is not.

        Raises:
            ParameterError: if this attack tests no claim.
        """
        raise ParameterError(
            "This attack tests no claim of privacy.",
            fix="read result.succeeded, or audit a claim: cl.attacks.audit_dp.",
        )


def labeled_facts(details: AttackDetails) -> Iterator[Row]:
    """Return the facts that have a label, as people read them."""
    for field in fields(details):
        value = getattr(details, field.name)
        if field.metadata.get("label") and value is not None and value != ():
            yield field.metadata["label"], field.metadata["show"](value)


def written_facts(details: AttackDetails) -> dict[str, Any]:
    """Return the facts as JSON has them."""
    return {
        field.name: field.metadata.get("write", write_value)(getattr(details, field.name))
        for field in fields(details)
        if not field.metadata.get("held")
    }
