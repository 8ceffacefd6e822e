"""Bins: public, half-open intervals ``[low, high)`` that a column is cut into, inside its engine.

A value outside all bins is missing. For overflow cells write infinite edges: ``[-inf, 18, 65, inf]`` has a bin for
everything below 18 and one for everything from 65 up, infinity included. Edges of a real column are read as the
nearest double, as the column's own values are; edges of an integer column are exact.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlglot import exp

from cloister.core import exact
from cloister.core.wordings import a_or_an
from cloister.data.engines.base import as_date, as_timestamp, literal
from cloister.data.values import StorageType
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["BinInterval", "ColumnBins"]

_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class BinInterval:
    """The values from ``low`` up to, not including, ``high``."""

    low: Any
    high: Any

    def __str__(self) -> str:
        closing = "]" if self.high == math.inf else ")"
        return f"[{_format_edge(self.low)}, {_format_edge(self.high)}{closing}"


def _format_edge(edge: Any) -> str:
    """Return an edge as a person would write it."""
    return f"{edge:.10g}" if isinstance(edge, float) else str(edge)


@dataclass(frozen=True, slots=True)
class ColumnBins:
    """The bins of one column: its edges as the engine compares them, and the intervals as people read them."""

    edges: tuple[Any, ...]
    intervals: tuple[BinInterval, ...]
    type: StorageType

    @classmethod
    def of(cls, column: str, edges: Sequence[Any], storage: StorageType) -> ColumnBins:
        """Return checked bins for a column of a type.

        Raises:
            ParameterError: if there are fewer than two edges, or they are not strictly increasing.
            ParameterTypeError: if edges and column have different types, or the column has no order.
        """
        if isinstance(edges, str) or not isinstance(edges, Sequence):
            raise ParameterTypeError(
                f'The bins of "{column}" are not a list of edges.',
                fix=f'write the edges as a list: [0, 10, 20], or bins={{"{column}": [0, 10, 20]}} for several columns.',
            )
        given = tuple(edges)
        compared = tuple(_edge(column, edge, storage) for edge in given)
        if len(given) < 2 or any(not _is_below(low, high) for low, high in pairwise(compared)):
            raise ParameterError(
                f'The edges of the bins of "{column}" are not strictly increasing.',
                fix="list at least two edges, the smallest first, without repeating one.",
            )
        return cls(compared, tuple(map(BinInterval, given, given[1:])), storage)

    def code(self, column: exp.Expression) -> exp.Expression:
        """Return SQL for the number of the bin that a value is in, NULL outside: a balanced tree of comparisons."""
        inside = self._tree(column, 0, len(self.intervals))
        tests: list[exp.Expression] = []
        # An infinite end needs no test, and dates have no literal for one.
        if self.edges[0] != -math.inf:
            tests.append(exp.GTE(this=column.copy(), expression=literal(self.edges[0], self.type)))
        if self.edges[-1] != math.inf:
            tests.append(exp.LT(this=column.copy(), expression=literal(self.edges[-1], self.type)))
        present = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
        return exp.Case().when(exp.and_(*tests) if tests else present, inside)

    def _tree(self, column: exp.Expression, first: int, last: int) -> exp.Expression:
        if last - first == 1:
            return literal(first, StorageType.INTEGER)
        middle = (first + last) // 2
        below = exp.LT(this=column.copy(), expression=literal(self.edges[middle], self.type))
        lower = exp.If(this=below, true=self._tree(column, first, middle))
        return exp.Case(ifs=[lower], default=self._tree(column, middle, last))


def _edge(column: str, edge: Any, storage: StorageType) -> Any:
    """Return an edge as it is compared in the engine; infinite edges stay floats."""
    match storage:
        case StorageType.INTEGER | StorageType.REAL:
            return _number_edge(column, edge, storage)
        case StorageType.DATE | StorageType.TIMESTAMP if _is_endless(edge):
            return edge
        case StorageType.DATE:
            parsed: Any = as_date(edge) if isinstance(edge, str) else edge
            fits = isinstance(parsed, dt.date) and not isinstance(parsed, dt.datetime)
        case StorageType.TIMESTAMP:
            parsed = as_timestamp(edge) if isinstance(edge, str) else edge
            fits = isinstance(parsed, dt.datetime) and parsed.tzinfo is None
        case _:
            raise ParameterTypeError(
                f'"{column}" holds {storage} values, which have no bins.',
                fix="bin numbers, dates and times only; group by other columns as they are.",
            )
    if not fits:
        raise ParameterTypeError(
            f'An edge of the bins of "{column}" is not {a_or_an(storage)}.',
            fix=f"give {storage} edges, such as 2026-01-31.",
        )
    return parsed


def _is_endless(edge: Any) -> bool:
    return isinstance(edge, float) and math.isinf(edge)


def _is_below(low: Any, high: Any) -> bool:
    if _is_endless(low) or _is_endless(high):
        return bool(low == -math.inf != high or high == math.inf != low)
    return bool(low < high)


def _number_edge(column: str, edge: Any, storage: StorageType) -> int | float:
    if _is_endless(edge):
        return edge  # type: ignore[no-any-return]  # an infinite float
    number = exact.number(edge, name=f'each edge of the bins of "{column}"')
    if storage is StorageType.REAL:
        return float(number)
    # A whole number is at least an edge exactly where it is at least the ceiling of it.
    whole = math.ceil(number)
    if not -_INT64 <= whole < _INT64:
        raise ParameterError(f'An edge of the bins of "{column}" is out of range.', fix="use -inf or inf instead.")
    return whole
