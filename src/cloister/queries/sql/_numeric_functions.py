"""Functions of numbers in row expressions, each exact and without a row that could make it fail."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sqlglot import exp

from cloister.data.engines.predicates import OperandFamily, quote
from cloister.errors import UnsafeQueryError
from cloister.queries.sql import _fixed_arithmetic as fixed_arithmetic
from cloister.queries.sql._terms import Measured, Term, not_a_number, term_of_value
from cloister.queries.sql.row_expressions import Function, RowResolver

__all__ = ["NUMERIC"]

_LARGEST_EXPONENT = 8
_MOST_DECIMALS = 15
_MOST_BUCKETS = 100_000


def value_of(resolver: RowResolver, node: exp.Expression) -> fixed_arithmetic.Value:
    """Return the number that a node is."""
    term = resolver.term(node)
    if term.family is not OperandFamily.NUMBER:
        raise not_a_number(term.label, term.family)
    return term.value


def constant_of(resolver: RowResolver, node: exp.Expression | None, *, what: str) -> Fraction:
    """Return the number that a node is in every row."""
    value = None if node is None else value_of(resolver, node)
    if not isinstance(value, Fraction):
        raise UnsafeQueryError(
            f"{what} is not a literal number.", fix=f"write {what[0].lower()}{what[1:]} as a number."
        )
    return value


def whole_of(resolver: RowResolver, node: exp.Expression | None, *, what: str, low: int, high: int) -> int:
    """Return a whole number from a public range that a node is in every row."""
    number = constant_of(resolver, node, what=what)
    if number.denominator != 1 or not low <= number <= high:
        raise UnsafeQueryError(f"{what} is out of range.", fix=f"use a whole number from {low} to {high:,}.")
    return int(number)


def _sum(resolver: RowResolver, node: exp.Add) -> Term:
    left, right = value_of(resolver, node.this), value_of(resolver, node.expression)
    return term_of_value(fixed_arithmetic.add(left, right), resolver.label(node))


def _difference(resolver: RowResolver, node: exp.Sub) -> Term:
    left, right = value_of(resolver, node.this), value_of(resolver, node.expression)
    return term_of_value(fixed_arithmetic.add(left, fixed_arithmetic.negate(right)), resolver.label(node))


def _product(resolver: RowResolver, node: exp.Mul) -> Term:
    left, right = value_of(resolver, node.this), value_of(resolver, node.expression)
    return term_of_value(fixed_arithmetic.multiply(left, right), resolver.label(node))


def _quotient(resolver: RowResolver, node: exp.Div) -> Term:
    divisor = _divisor(resolver, node)
    return term_of_value(fixed_arithmetic.multiply(value_of(resolver, node.this), 1 / divisor), resolver.label(node))


def _remainder(resolver: RowResolver, node: exp.Mod) -> Term:
    divisor = _divisor(resolver, node)
    return term_of_value(fixed_arithmetic.remainder(value_of(resolver, node.this), divisor), resolver.label(node))


def _divisor(resolver: RowResolver, node: Any) -> Fraction:  # a division
    divisor = resolver.term(node.expression)
    if not isinstance(divisor.numeric, Fraction):
        above, below = (label_without_parentheses(resolver, side) for side in (node.this, node.expression))
        raise UnsafeQueryError(
            f"{quote(node)} divides by a value of each row, which fails where it is zero.",
            fix=f"divide totals, which are noisy: SUM({above}) / SUM({below}); or divide by a number.",
        )
    if divisor.numeric == 0:
        raise UnsafeQueryError(f"{quote(node)} divides by zero.", fix="divide by another number.")
    return divisor.numeric


def label_without_parentheses(resolver: RowResolver, node: exp.Expression) -> str:
    """Return a part of the query without the parentheses around it."""
    while type(node) is exp.Paren:
        node = node.this
    return resolver.label(node)


def _negative(resolver: RowResolver, node: exp.Neg) -> Term:
    return term_of_value(fixed_arithmetic.negate(value_of(resolver, node.this)), resolver.label(node))


def _absolute(resolver: RowResolver, node: exp.Abs) -> Term:
    return term_of_value(fixed_arithmetic.absolute(value_of(resolver, node.this)), resolver.label(node))


def _floor(resolver: RowResolver, node: exp.Floor) -> Term:
    return term_of_value(fixed_arithmetic.floor(value_of(resolver, node.this), Fraction(1)), resolver.label(node))


def _ceiling(resolver: RowResolver, node: exp.Ceil) -> Term:
    return term_of_value(fixed_arithmetic.ceiling(value_of(resolver, node.this), Fraction(1)), resolver.label(node))


def _round(resolver: RowResolver, node: exp.Round) -> Term:
    return term_of_value(
        fixed_arithmetic.nearest(value_of(resolver, node.this), _decimals(resolver, node)), resolver.label(node)
    )


def _truncate(resolver: RowResolver, node: exp.Expression) -> Term:
    return term_of_value(
        fixed_arithmetic.toward_zero(value_of(resolver, node.this), _decimals(resolver, node)), resolver.label(node)
    )


def _decimals(resolver: RowResolver, node: exp.Expression) -> Fraction:
    """Return the unit of the last decimal to keep."""
    decimals = node.args.get("decimals")
    if decimals is None:
        return Fraction(1)
    what = "The number of decimals"
    return Fraction(10) ** -whole_of(resolver, decimals, what=what, low=-_MOST_DECIMALS, high=_MOST_DECIMALS)


def _power(resolver: RowResolver, node: exp.Pow) -> Term:
    exponent = whole_of(resolver, node.expression, what="The exponent", low=1, high=_LARGEST_EXPONENT)
    return term_of_value(fixed_arithmetic.power(value_of(resolver, node.this), exponent), resolver.label(node))


def _least(resolver: RowResolver, node: exp.Least) -> Term:
    return _extreme(resolver, [node.this, *node.expressions], node, largest=False)


def _greatest(resolver: RowResolver, node: exp.Greatest) -> Term:
    return _extreme(resolver, [node.this, *node.expressions], node, largest=True)


def _clamp(resolver: RowResolver, node: exp.Anonymous) -> Term:
    if len(node.expressions) != 3:
        raise UnsafeQueryError(f"{quote(node)} needs a number and its limits.", fix="write CLAMP(age, 0, 110).")
    number, low, high = node.expressions
    ends = [constant_of(resolver, end, what="Each limit of CLAMP") for end in (low, high)]
    if ends[0] >= ends[1]:
        raise UnsafeQueryError(f"{quote(node)} leaves no room.", fix="write the smaller limit first.")
    raised = _limit(resolver.term(number), ends[0], resolver.label(node), largest=True)
    return _limit(raised, ends[1], resolver.label(node), largest=False)


def _extreme(resolver: RowResolver, nodes: list[exp.Expression], node: exp.Expression, *, largest: bool) -> Term:
    terms = [resolver.term(item) for item in nodes]
    others = [term for term in terms if not isinstance(term.numeric, Fraction)]
    constants = [term.numeric for term in terms if isinstance(term.numeric, Fraction)]
    if len(others) == 1 and constants:
        bound = max(constants) if largest else min(constants)
        return _limit(others[0], bound, resolver.label(node), largest=largest)
    for term in terms:
        if term.family is not OperandFamily.NUMBER:
            raise not_a_number(term.label, term.family)
    return term_of_value(
        fixed_arithmetic.extreme([term.value for term in terms], largest=largest), resolver.label(node)
    )


def _limit(term: Term, bound: Fraction, label: str, *, largest: bool) -> Term:
    """Return a number within a limit; that of a stored number, if it can have that value, becomes its public limit."""
    if not isinstance(term.numeric, Measured) or not term.numeric.can_be(bound):
        if term.family is not OperandFamily.NUMBER:
            raise not_a_number(term.label, term.family)
        return term_of_value(fixed_arithmetic.extreme([term.value, bound], largest=largest), label)
    limited = term.numeric.limited(bound, largest=largest)
    return Term(
        sql=term.sql,
        family=term.family,
        storage=term.storage,
        label=label,
        numeric=limited,
    )


def _bucket(resolver: RowResolver, node: Any) -> Term:  # WIDTH_BUCKET, which older parsers do not know
    """Return the number of the bucket, 0 below the first and one more than there are above the last."""
    if isinstance(node, exp.Anonymous):
        if len(node.expressions) != 4:
            raise resolver.refused(node)
        inner, first, last, number = node.expressions
    else:
        inner, (first, last, number) = (
            node.this,
            (node.args[name] for name in ("min_value", "max_value", "num_buckets")),
        )
    low, high = (constant_of(resolver, end, what="Each end of WIDTH_BUCKET") for end in (first, last))
    count = whole_of(resolver, number, what="The number of buckets", low=1, high=_MOST_BUCKETS)
    if low >= high:
        raise UnsafeQueryError(f"{quote(node)} has no room for buckets.", fix="write the smaller end first.")
    width = (high - low) / count
    # What is below all buckets is raised to just one width below, and what is above lowered to the end, so that
    # each falls into its one outer bucket and the bounds stay small.
    inside = fixed_arithmetic.extreme(
        [fixed_arithmetic.extreme([value_of(resolver, inner), low - width], largest=True), high], largest=False
    )
    place = fixed_arithmetic.floor(
        fixed_arithmetic.multiply(fixed_arithmetic.add(inside, -low), 1 / width), Fraction(1)
    )
    return term_of_value(fixed_arithmetic.add(place, Fraction(1)), resolver.label(node))


NUMERIC: dict[str, Function] = {
    "Add": _sum,
    "Sub": _difference,
    "Mul": _product,
    "Div": _quotient,
    "Mod": _remainder,
    "Neg": _negative,
    "Abs": _absolute,
    "Floor": _floor,
    "Ceil": _ceiling,
    "Round": _round,
    "Trunc": _truncate,
    "Pow": _power,
    "Least": _least,
    "Greatest": _greatest,
    "CLAMP": _clamp,
    "WidthBucket": _bucket,
    "WIDTH_BUCKET": _bucket,
}
