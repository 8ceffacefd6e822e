"""Row expressions, from parsed ones to `Term` values; conditions are inherited from `data.engines.predicates`.

They are built anew from parts that are known. To conditions this adds arithmetic, CASE, and functions that can be made
to mean the same on every engine and on every row. What is not known here is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from cloister.core import exact
from cloister.data.engines.base import literal
from cloister.data.engines.predicates import (
    ARGUMENTS,
    Operand,
    OperandFamily,
    Resolver,
    as_moment,
    mismatch,
    number_text,
    quote,
    shorten,
)
from cloister.data.values import StorageType
from cloister.errors import CloisterError, ParameterError, UnsafeQueryError
from cloister.queries.sql import _fixed_arithmetic as fixed_arithmetic, grammar
from cloister.queries.sql._terms import STORAGES, Measured, Term, TermDomain, constant, unknown_domain

if TYPE_CHECKING:
    from cloister.queries.sql._relations import NameScope

__all__ = ["RowResolver"]

_INT64 = 2**63
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_LIST = frozenset({"this", "expressions"})
_ROUNDING = frozenset({"this", "decimals"})
_ARGUMENTS: dict[type[exp.Expression], Set[str]] = ARGUMENTS | {
    exp.Column: {"this", "table"},
    exp.Case: {"this", "ifs", "default"},
    exp.If: {"this", "true", "false"},
    exp.Div: {"this", "expression", "typed", "safe"},
    exp.Least: {"this", "expressions", "ignore_nulls"},
    exp.Greatest: {"this", "expressions", "ignore_nulls"},
    exp.Coalesce: _LIST,
    exp.Anonymous: _LIST,
    exp.Floor: {"this"},
    exp.Ceil: {"this"},
    exp.Round: _ROUNDING,
    exp.Substring: {"this", "start", "length"},
    exp.DateTrunc: {"this", "unit"},
}
_ARGUMENTS_BY_NAME: dict[str, Set[str]] = {
    "Trunc": _ROUNDING,
    "WidthBucket": {"this", "min_value", "max_value", "num_buckets"},
}

Function = Callable[["RowResolver", Any], Term]


class RowResolver(Resolver):
    """Resolves the expressions of one SELECT over the columns of its FROM."""

    arguments = _ARGUMENTS
    functions: ClassVar[Mapping[str, Function]] = {}

    def __init__(self, scope: NameScope) -> None:
        super().__init__()
        self.scope = scope

    def term(self, node: exp.Expression) -> Term:
        """Return a row expression."""
        while type(node) is exp.Paren:
            node = node.this
        self.check_arguments(node)
        if type(node) is exp.Column:
            return self.scope.find(node)
        if type(node) in self._truths:
            return self._truth_term(node)
        digits = number_text(node)
        if digits is not None:
            return constant(exact.number(digits, name=quote(node)), digits)
        found = self.literal(node)
        return self._literal_term(found, node) if found is not None else self.function(node)

    def operand(self, node: exp.Expression) -> Operand:
        """Return a row expression."""
        return self.term(node)

    def function(self, node: exp.Expression) -> Term:
        """Return a function of terms."""
        handle = self.functions.get(function_name(node))
        if handle is None:
            raise self.refused(node)
        return handle(self, node)

    def truth(self, node: exp.Expression) -> exp.Expression:
        """Return a node that is true, false or unknown."""
        if type(node) in self._truths:
            return super().truth(node)
        term = self.term(node)
        if term.family is not OperandFamily.TRUTH:
            raise mismatch(node, term.family, OperandFamily.TRUTH)
        return term.sql

    def compare(
        self, kind: type[exp.Expression], left: Operand, right: Operand, node: exp.Expression
    ) -> exp.Expression:
        """Return a comparison; of numbers it is exact."""
        if not isinstance(left, Term) or not isinstance(right, Term):
            return super().compare(kind, left, right, node)
        if left.family is right.family is OperandFamily.NUMBER:
            return self._compare_numbers(kind, left, right)
        if (
            kind in _ORDERS
            and left.family is right.family is OperandFamily.TEXT
            and not (left.is_ordered or right.is_ordered)
        ):
            raise UnsafeQueryError(
                f"{quote(node)} orders texts in a way that differs between databases.",
                fix="compare with = or <>, or order a column.",
            )
        return super().compare(kind, left, right, node)

    def refused(self, node: exp.Expression) -> CloisterError:
        """Return the reason why a node cannot be used, and what can."""
        return grammar.row_refusal(node)

    def check_arguments(self, node: exp.Expression) -> None:
        """Refuse a node with a part that would be dropped."""
        known = _ARGUMENTS_BY_NAME.get(type(node).__name__)
        if known is None:
            super().check_arguments(node)
        elif any(part for name, part in node.args.items() if name not in known):
            raise self.refused(node)

    def label(self, node: exp.Expression) -> str:
        """Return how messages call an expression."""
        return shorten(node.sql(comments=False, copy=False))

    def align(self, terms: list[Term], node: exp.Expression) -> tuple[list[Operand], OperandFamily]:
        """Return terms in one type: texts beside dates are read as dates; NULL is of any type."""
        families = {term.family for term in terms} - {OperandFamily.NULL}
        moment = next((family for family in (OperandFamily.TIME, OperandFamily.DATE) if family in families), None)
        sides: list[Operand] = [term if moment is None else as_moment(term, moment) for term in terms]
        kinds = {side.family for side in sides} - {OperandFamily.NULL}
        if len(kinds) != 1:
            first, *rest = kinds or {OperandFamily.NULL}
            raise mismatch(node, rest[0] if rest else first, first if rest else OperandFamily.NUMBER)
        return sides, kinds.pop()

    def _compare_numbers(self, kind: type[exp.Expression], left: Term, right: Term) -> exp.Expression:
        """Compare columns as they are stored, and computed numbers exactly."""
        # A stored column is compared as it is, which needs no public limits.
        sides = _as_stored(left), _as_stored(right)
        if sides[0] is not None and sides[1] is not None:
            return kind(this=sides[0], expression=sides[1])
        return fixed_arithmetic.compare(kind, left.value, right.value)

    def _truth_term(self, node: exp.Expression) -> Term:
        if type(node) is exp.Boolean:
            return self._literal_term(self.literal(node), node)
        return Term(
            sql=exp.paren(self.truth(node), copy=False),
            family=OperandFamily.TRUTH,
            storage=StorageType.BOOLEAN,
            label=self.label(node),
            domain=lambda: TermDomain.of((False, True)),
        )

    def _literal_term(self, found: Operand | None, node: exp.Expression) -> Term:
        if found is None:
            raise self.refused(node)
        values: tuple[Any, ...] | None = None
        if isinstance(node, exp.Boolean):
            values = (bool(node.this),)
        elif found.family is OperandFamily.TEXT:
            values = (node.this,)
        return Term(
            sql=found.sql,
            family=found.family,
            storage=STORAGES.get(found.family, StorageType.TEXT),
            label=self.label(node),
            domain=unknown_domain if values is None else (lambda: TermDomain.of(values)),
            is_ordered=False,
        )


def function_name(node: exp.Expression) -> str:
    """Return the name of a function's node, or what the caller wrote for one that the parser does not know."""
    return node.name.upper() if type(node) is exp.Anonymous else type(node).__name__


def _as_stored(term: Term) -> exp.Expression | None:
    """Return a number as it is stored, or a constant; None if it is computed."""
    if isinstance(term.numeric, Measured):
        return term.sql if term.numeric.is_plain else None
    return _number_literal(term.numeric) if isinstance(term.numeric, Fraction) else None


def _number_literal(number: Fraction) -> exp.Expression:
    if number.denominator == 1 and -_INT64 <= number < _INT64:
        return literal(int(number), StorageType.INTEGER)
    try:
        return literal(float(number), StorageType.REAL)
    except OverflowError:
        raise ParameterError("A number is too large.", fix="use a number below 1e308.") from None
