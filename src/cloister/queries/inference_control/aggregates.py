"""Aggregates that inference control answers: counts, and sums and means of one confidential column as it is stored."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cloister.data.table import Table
from cloister.errors import UnsafeQueryError
from cloister.queries.columns import column_number, present_value
from cloister.queries.inference_control.auditing import Mask
from cloister.queries.question import Aggregate, CountPresent, CountRows, Extreme, Mean, Number, Total

__all__ = ["Measure", "read_measure"]

_LOW = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is computed over the rows of a group.

    Attributes:
        kind: count, present, sum, mean, min or max.
        number: the column that is added up, in whole steps.
        present: a condition that tells which rows have a value, where they are only counted.
    """

    kind: str
    number: Number | None = field(default=None, repr=False)
    present: exp.Expression | None = field(default=None, repr=False)

    def exact(self, rows: Mask, values: NDArray[np.int64]) -> Fraction | None:
        """Return the exact number over some rows that all have a value; None where there is none."""
        size = int(rows.sum())
        if self.number is None:
            return Fraction(size)
        chosen = values[rows]
        match self.kind:
            case "sum":
                return _total(chosen) * self.number.unit
            case _ if not size:
                return None
            case "mean":
                return _total(chosen) * self.number.unit / size
            case "min":
                return int(chosen.min()) * self.number.unit
            case _:
                return int(chosen.max()) * self.number.unit


def _total(values: NDArray[np.int64]) -> int:
    """Return a sum without a limit, from the sums of both halves of each number."""
    return int((values // _LOW).sum()) * _LOW + int((values % _LOW).sum())


def read_measure(aggregate: Aggregate, table: Table, *, confidential: Set[str], extremes: bool) -> Measure:
    """Return what an aggregate measures.

    Raises:
        UnsafeQueryError: if it is none of those that are answered.
    """
    match aggregate:
        case CountRows():
            return Measure(kind="count")
        case CountPresent(of=of, label=label) if label in table.schema and present_value(table, label) == of:
            return Measure(kind="present", present=exp.Not(this=exp.Is(this=of.copy(), expression=exp.Null())))
        case Total(of=number) | Mean(of=number) | Extreme(of=number):
            return _read_number(aggregate, number, table, confidential, extremes=extremes)
    raise UnsafeQueryError(
        "The query asks for more than counts, sums and means.",
        fix="use COUNT(*), COUNT(column), SUM(column) and AVG(column); a PrivateTable answers more, with noise.",
    )


def _read_number(
    aggregate: Total | Mean | Extreme, number: Number, table: Table, confidential: Set[str], *, extremes: bool
) -> Measure:
    name = number.label
    if name not in table.schema or column_number(table, name).text != number.text:
        raise UnsafeQueryError(
            f'"{name}" is computed, and could be a value of one row.',
            fix="sum or average a column as it is, such as SUM(salary); put conditions in WHERE.",
        )
    if name not in confidential:
        raise UnsafeQueryError(
            f'"{name}" may be used in any condition, so that its sums could not be guarded.',
            fix=f'call it sensitive, with schema.with_role("{name}", "sensitive") or confidential=("{name}",).',
        )
    if isinstance(aggregate, Extreme):
        word = "MAX" if aggregate.largest else "MIN"
        if not extremes:
            raise UnsafeQueryError(
                f"{word}({name}) is the value of one person, and rounding it would still tell about that person.",
                fix=f"ask for AVG({name}), or for a noisy quantile of a PrivateTable.",
            )
        return Measure(kind=word.lower(), number=number)
    return Measure(kind="sum" if isinstance(aggregate, Total) else "mean", number=number)
