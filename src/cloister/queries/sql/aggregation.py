"""Aggregates and GROUP BY: from COUNT, SUM, AVG and their like to those of a `Question`, in groups.

Groups are expressions, positions or names of output columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from cloister.data.engines.predicates import OperandFamily, quote, shorten
from cloister.data.values import StorageType
from cloister.errors import CloisterError, UnsafeQueryError
from cloister.queries._aggregates import (
    Aggregate,
    CountDistinct,
    CountNotNull,
    CountRows,
    CountUnits,
    Quantile,
    sql_functions,
)
from cloister.queries._question import FixedPointNumber, GroupKey
from cloister.queries.sql import _fixed_arithmetic as fixed_arithmetic, grammar
from cloister.queries.sql._numeric_functions import constant_of
from cloister.queries.sql._relations import QueryRelation
from cloister.queries.sql._terms import Term, same_everywhere
from cloister.queries.sql.row_expressions import RowResolver, function_name

__all__ = ["AggregateReader", "Grouping", "is_aggregate"]


_COUNTS_IF = ("CountIf", "COUNT_IF")
_QUANTILES = ("Quantile", "QUANTILE_CONT", "QUANTILE_DISC", "PercentileCont", "PercentileDisc")
_FORMS = {"Count", *_COUNTS_IF, *_QUANTILES}
"""Aggregates with a grammar of their own; all others are functions of a number, found in the registry."""


def is_aggregate(node: Any) -> bool:  # a node of any kind
    """Return whether a node is an aggregate, known or not."""
    name = function_name(node)
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup) or name in _FORMS or name in sql_functions


class AggregateReader:
    """Reads aggregates over the rows of a relation."""

    def __init__(self, resolver: RowResolver, relation: QueryRelation) -> None:
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
        if name in _COUNTS_IF:
            return self._present(
                fixed_arithmetic.whole(1), [self._resolver.truth(*_arguments(node, 1)), condition], quote(node)[1:-1]
            )
        if name in _QUANTILES:
            return self._quantile(node, condition)
        if name in sql_functions:
            return self._function(node, name, condition)
        raise grammar.output_refusal(node)

    def _function(self, node: exp.Expression, name: str, condition: exp.Expression | None) -> Aggregate:
        """Return what a function of a number, and perhaps of constants, stands for."""
        kind, make = sql_functions[name]
        of, *further = _arguments(node, 1 + len(kind.examples))
        constants = (constant_of(self._resolver, item, what=f"What {quote(node)} is told") for item in further)
        return make(self._number(of, node, condition), *constants)

    def _filtered(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        where = node.expression
        if condition is not None or not isinstance(where, exp.Where):
            raise grammar.output_refusal(node)
        return self.read(node.this, self._resolver.truth(where.this))

    def _count(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        grammar.check_parts(node, {"this", "big_int"})
        counted = node.this
        if isinstance(counted, exp.Distinct):
            return self._distinct(counted, node, condition)
        if isinstance(counted, exp.Star | exp.Literal):
            grammar.check_parts(counted, {"this", "is_string"})
            return CountRows() if condition is None else self._present(fixed_arithmetic.whole(1), [condition], "rows")
        if counted is None:
            raise grammar.output_refusal(node)
        term = self._resolver.term(counted)
        return self._present(term.sql, [condition], term.label)

    def _present(self, counted: exp.Expression, conditions: list[exp.Expression | None], label: str) -> CountNotNull:
        for condition in conditions:
            # CASE without ELSE is missing where the condition fails, and so is not counted: FILTER, for every
            # engine.
            counted = counted if condition is None else fixed_arithmetic.case([(condition, counted)])
        return CountNotNull(counted, label)

    def _distinct(self, counted: exp.Distinct, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        grammar.check_parts(counted, {"expressions"})
        if len(counted.expressions) != 1:
            raise UnsafeQueryError(f"{quote(node)} counts combinations.", fix="count the values of one column.")
        term = self._resolver.term(counted.expressions[0]).settle_limits()
        if term.is_person and condition is None:
            return CountUnits()
        if term.is_person:
            raise UnsafeQueryError(
                f"{quote(node)} counts persons under a condition of its own.", fix="put the condition in WHERE."
            )
        sql = term.sql if condition is None else fixed_arithmetic.case([(condition, term.sql)])
        return CountDistinct(sql, term.label)

    def _within_group(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        percentile, order = node.this, node.expression
        ordered = order.expressions if isinstance(order, exp.Order) else []
        if function_name(percentile) not in ("PercentileCont", "PercentileDisc") or len(ordered) != 1:
            raise grammar.output_refusal(node)
        grammar.check_parts(percentile, {"this"})
        grammar.check_parts(ordered[0], {"this", "desc", "nulls_first"})
        number = self._number(ordered[0].this, node, condition)
        q = self._fraction(percentile.this)
        return Quantile(number, 1 - q if ordered[0].args.get("desc") else q)

    def _quantile(self, node: exp.Expression, condition: exp.Expression | None) -> Aggregate:
        arguments = (
            node.expressions if isinstance(node, exp.Anonymous) else [part for part in node.args.values() if part]
        )
        if len(arguments) != 2:
            raise UnsafeQueryError(
                f"{quote(node)} needs a number and a fraction.",
                fix="write QUANTILE(income, 0.9), or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income).",
            )
        return Quantile(self._number(arguments[0], node, condition), self._fraction(arguments[1]))

    def _fraction(self, node: exp.Expression) -> Fraction:
        q = constant_of(self._resolver, node, what="The fraction of a quantile")
        if not 0 < q < 1:
            raise UnsafeQueryError("The fraction of a quantile is not between 0 and 1.", fix="use MIN, MAX or 0.5.")
        return q

    def _number(self, of: exp.Expression, node: exp.Expression, condition: exp.Expression | None) -> FixedPointNumber:
        if isinstance(of, exp.Distinct):
            raise UnsafeQueryError(
                f"{quote(node)} depends on which values others have.",
                fix="leave out DISTINCT, or GROUP BY the column.",
            )
        number = self._resolver.term(of).number()
        if number.low == number.high and (number.low == 0 or not isinstance(node, exp.Sum)):
            raise same_everywhere(number.label)
        if condition is None:
            return number
        return replace(number, steps=fixed_arithmetic.case([(condition, number.steps)]))


def _arguments(node: Any, number: int) -> list[exp.Expression]:  # a function
    """Return the arguments of a function that has so many."""
    given = node.expressions if isinstance(node, exp.Anonymous) else [part for part in node.args.values() if part]
    if len(given) != number or not all(isinstance(item, exp.Expression) for item in given):
        raise grammar.output_refusal(node)
    return list(given)


class Grouping:
    """The keys of a query, and which expressions are one of them."""

    def __init__(
        self,
        resolver: RowResolver,
        group: exp.Expression | None,
        outputs: Sequence[exp.Expression],
        aliases: Mapping[str, exp.Expression],
        *,
        allow_person: bool = False,
    ) -> None:
        self._resolver = resolver
        self._allow_person = allow_person
        _check_group(group)
        given = [] if group is None else group.expressions
        keys: dict[str, tuple[exp.Expression, Term]] = {}
        for node in (self._meant(node, outputs, aliases) for node in given):
            term = self._term(node)
            keys.setdefault(term.settled_text, (node, term))
        self.nodes = [node for node, _ in keys.values()]
        self.terms = [term for _, term in keys.values()]
        self._texts = {text: index for index, text in enumerate(keys)}
        self._has_expressions = any(type(node) is not exp.Column for node in self.nodes)

    @property
    def keys(self) -> tuple[GroupKey, ...]:
        """Return the keys of the question."""
        return tuple(term.key(self._name(node, term)) for node, term in zip(self.nodes, self.terms, strict=True))

    def position(self, node: exp.Expression) -> int | None:
        """Return which key an expression is; None if it is none."""
        if not self.terms or (type(node) is not exp.Column and not self._has_expressions):
            return None
        if type(node) is exp.Column and not self._resolver.scope.has(node):
            return None
        if node.find(exp.Column) is None or any(is_aggregate(part) for part in node.walk()):
            return None
        try:
            return self._texts.get(self._resolver.term(node).settled_text)
        except CloisterError:
            return None

    def storage(self, index: int) -> StorageType:
        """Return the type of the values that are shown for a key."""
        term = self.terms[index]
        return StorageType.DATE if term.family is OperandFamily.PERIOD else term.storage

    def check_known(self, node: exp.Column) -> None:
        """Raise an error for a column that does not exist."""
        self._resolver.scope.find(node)

    def _meant(
        self, node: exp.Expression, outputs: Sequence[exp.Expression], aliases: Mapping[str, exp.Expression]
    ) -> exp.Expression:
        """Return the expression that a position or the name of an output column stands for."""
        while type(node) is exp.Paren:
            node = node.this
        if isinstance(node, exp.Literal):
            node = position(node, outputs, clause="GROUP BY")
        elif type(node) is exp.Column and node.args.get("table") is None and not self._resolver.scope.has(node):
            node = aliases.get(node.name.lower(), node)
        return node

    def _term(self, node: exp.Expression) -> Term:
        term = self._resolver.term(node)
        if term.is_person and not self._allow_person:
            raise UnsafeQueryError(
                f"{quote(node)} names the persons: a group for each would show single persons.",
                fix="group by another column, or count the persons: COUNT(DISTINCT "
                f"{node.sql(comments=False, copy=False)}); one row for each person belongs in a subquery in FROM.",
            )
        if term.family is OperandFamily.NULL or isinstance(term.numeric, Fraction):
            raise UnsafeQueryError(f"{quote(node)} is not a column.", fix="group by a column or an expression.")
        return term

    def _name(self, node: exp.Expression, term: Term) -> str:
        """Return how the key is called, whatever the query calls the columns in it."""
        if type(node) is exp.Column:
            return term.label
        named = node.copy()
        for column in list(named.find_all(exp.Column)):
            column.set("table", None)
            column.set("this", exp.to_identifier(self._resolver.term(column).label, quoted=False))
        return shorten(named.sql(comments=False, copy=False))


def position(node: exp.Literal, outputs: Sequence[exp.Expression], *, clause: str) -> exp.Expression:
    """Return the output column at a position, counted from 1."""
    number = node.this if not node.is_string else ""
    if not number.isdigit() or not 1 <= int(number) <= len(outputs):
        raise UnsafeQueryError(
            f"{clause} {quote(node)[1:-1]} is not the position of an output column.",
            fix=f"use a position from 1 to {len(outputs)}, or name the column.",
        )
    return outputs[int(number) - 1]


def _check_group(group: exp.Expression | None) -> None:
    if group is not None and any(part for name, part in group.args.items() if name != "expressions"):
        raise UnsafeQueryError(
            "GROUP BY ALL and its like do not say what to group by.", fix="list the columns after GROUP BY."
        )
