"""Aggregates of rows: from COUNT, SUM, AVG and their like to those of a `Question`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from cloister.data.engines.predicates import quoted
from cloister.errors import UnsafeQueryError
from cloister.queries.question import (
    Aggregate,
    CountDistinct,
    CountPresent,
    CountRows,
    CountUnits,
    Extreme,
    Mean,
    Number,
    Quantile,
    StandardDeviation,
    Total,
    Variance,
)
from cloister.queries.sql import fixed, refusals
from cloister.queries.sql.numeric import constant_of
from cloister.queries.sql.rows import RowResolver, function_name
from cloister.queries.sql.scope import Relation
from cloister.queries.sql.terms import same_everywhere

__all__ = ["AggregateReader", "is_aggregate"]

_QUANTILES = {"Quantile", "QUANTILE_CONT", "QUANTILE_DISC", "PercentileCont", "PercentileDisc"}
_OF_NUMBER: dict[str, Callable[[Number], Aggregate]] = {
    "Sum": Total,
    "Avg": Mean,
    "Variance": Variance,
    "VAR": Variance,
    "VariancePop": lambda number: Variance(number, sample=False),
    "Stddev": StandardDeviation,
    "STD": StandardDeviation,
    "StddevSamp": StandardDeviation,
    "StddevPop": lambda number: StandardDeviation(number, sample=False),
    "Min": lambda number: Extreme(number, largest=False),
    "Max": lambda number: Extreme(number, largest=True),
    "Median": lambda number: Quantile(number, Fraction(1, 2)),
    "MEDIAN": lambda number: Quantile(number, Fraction(1, 2)),
}
_NAMES = {"Count", "CountIf", "COUNT_IF", *_QUANTILES, *_OF_NUMBER}


def is_aggregate(node: Any) -> bool:  # a node of any kind
    """Return whether a node is an aggregate, known or not."""
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup) or function_name(node) in _NAMES


class AggregateReader:
    """Reads aggregates over the rows of a relation."""

    def __init__(self, resolver: RowResolver, relation: Relation) -> None:
        self._resolver = resolver
        self._relation = relation

    def read(self, node: exp.Expression, condition: exp.Expression | None = None) -> Aggregate:
        """Return an aggregate, over the rows for which a condition holds."""
        name = function_name(node)
        if name == "Filter":
            return self._filtered(node, condition)
        if name == "WithinGroup":
            return self._within_group(node, condition)
        if name == "Count":
            return self._count(node, condition)
        if name in ("CountIf", "COUNT_IF"):
            return self._present(fixed.whole(1), [self._resolver.truth(_only(node)), condition], quoted(node)[1:-1])
        if name in _QUANTILES:
            return self._quantile(node, condition)
        if name in _OF_NUMBER:
            return _OF_NUMBER[name](self._number(_only(node), node, condition))
        raise refusals.in_output(node)

    def _filtered(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        where = node.expression
        if condition is not None or not isinstance(where, exp.Where):
            raise refusals.in_output(node)
        return self.read(node.this, self._resolver.truth(where.this))

    def _count(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        _check(node, {"this", "big_int"})
        counted = node.this
        if isinstance(counted, exp.Distinct):
            return self._distinct(counted, node, condition)
        if isinstance(counted, exp.Star | exp.Literal):
            _check(counted, {"this", "is_string"})
            return CountRows() if condition is None else self._present(fixed.whole(1), [condition], "rows")
        if counted is None:
            raise refusals.in_output(node)
        term = self._resolver.term(counted)
        return self._present(term.sql, [condition], term.label)

    def _present(self, counted: exp.Expression, conditions: list[exp.Expression | None], label: str) -> CountPresent:
        for condition in conditions:
            counted = counted if condition is None else fixed.case([(condition, counted)])
        return CountPresent(counted, label)

    def _distinct(self, counted: exp.Distinct, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        _check(counted, {"expressions"})
        if len(counted.expressions) != 1:
            raise UnsafeQueryError(f"{quoted(node)} counts combinations.", fix="count the values of one column.")
        term = self._resolver.term(counted.expressions[0]).settled()
        if term.is_person and condition is None:
            return CountUnits()
        if term.is_person:
            raise UnsafeQueryError(
                f"{quoted(node)} counts persons under a condition of its own.", fix="put the condition in WHERE."
            )
        sql = term.sql if condition is None else fixed.case([(condition, term.sql)])
        return CountDistinct(sql, term.label)

    def _within_group(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        percentile, order = node.this, node.expression
        ordered = order.expressions if isinstance(order, exp.Order) else []
        if function_name(percentile) not in ("PercentileCont", "PercentileDisc") or len(ordered) != 1:
            raise refusals.in_output(node)
        _check(percentile, {"this"})
        _check(ordered[0], {"this", "desc", "nulls_first"})
        number = self._number(ordered[0].this, node, condition)
        q = self._fraction(percentile.this)
        return Quantile(number, 1 - q if ordered[0].args.get("desc") else q)

    def _quantile(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        arguments = (
            node.expressions if isinstance(node, exp.Anonymous) else [part for part in node.args.values() if part]
        )
        if len(arguments) != 2:
            raise UnsafeQueryError(
                f"{quoted(node)} needs a number and a fraction.",
                fix="write QUANTILE(income, 0.9), or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income).",
            )
        return Quantile(self._number(arguments[0], node, condition), self._fraction(arguments[1]))

    def _fraction(self, node: exp.Expression) -> Fraction:
        q = constant_of(self._resolver, node, what="The fraction of a quantile")
        if not 0 < q < 1:
            raise UnsafeQueryError("The fraction of a quantile is not between 0 and 1.", fix="use MIN, MAX or 0.5.")
        return q

    def _number(self, of: exp.Expression, node: exp.Expression, condition: exp.Expression | None) -> Number:
        if isinstance(of, exp.Distinct):
            raise UnsafeQueryError(
                f"{quoted(node)} depends on which values others have.",
                fix="leave out DISTINCT, or GROUP BY the column.",
            )
        number = self._resolver.term(of).number()
        if number.low == number.high and (number.low == 0 or not isinstance(node, exp.Sum)):
            raise same_everywhere(number.label)
        if condition is None:
            return number
        return replace(number, steps=fixed.case([(condition, number.steps)]))


def _only(node: Any) -> exp.Expression:  # a function of one argument
    """Return the one argument of a function."""
    given = node.expressions if isinstance(node, exp.Anonymous) else [part for part in node.args.values() if part]
    if len(given) != 1 or not isinstance(given[0], exp.Expression):
        raise refusals.in_output(node)
    return given[0]


def _check(node: exp.Expression, known: set[str]) -> None:
    if any(part for name, part in node.args.items() if name not in known):
        raise refusals.in_output(node)
