"""Arithmetic in fixed point: SQL over whole numbers of steps, with exact bounds, that no row can make fail.

A `FixedPointNumber` is ``steps * unit``, where ``steps`` is SQL of the type BIGINT and ``unit`` an exact rational.
Every function here computes the bounds of its result, and of what it computes on the way, in Python's integers, and
refuses when one could pass 2**62. So nothing overflows, and every engine gets the same whole numbers. Integer division
is only by a constant and only of a number that is not negative, since engines round quotients of negative numbers
differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from cloister.data.engines.base import literal
from cloister.data.values import StorageType
from cloister.errors import UnsafeQueryError
from cloister.queries._question import FixedPointNumber

__all__ = ["LARGEST", "Value"]

LARGEST = 2**62
"""What the absolute value of a number of steps stays below."""

Value: TypeAlias = FixedPointNumber | Fraction
"""A number in each row, or the same number in all rows."""

_BIGINT = exp.DataType.build("BIGINT")
_CLOSED = (exp.Column, exp.Cast, exp.Case, exp.Paren, exp.Abs, exp.Coalesce)
_MIRRORED: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
_ROUNDED: dict[type[exp.Expression], Callable[[Fraction], int]] = {
    exp.LT: math.ceil,
    exp.GTE: math.ceil,
    exp.LTE: math.floor,
    exp.GT: math.floor,
}


def bigint(node: exp.Expression) -> exp.Expression:
    """Return SQL as a 64-bit integer."""
    return exp.Cast(this=node, to=_BIGINT.copy())


def whole(number: int) -> exp.Expression:
    """Return a whole number as SQL; one beyond the limit would fail in the rows that reach it."""
    if abs(number) > LARGEST:
        raise _too_large()
    return literal(number, StorageType.INTEGER)


def case(
    branches: Sequence[tuple[exp.Expression, exp.Expression]], default: exp.Expression | None = None
) -> exp.Expression:
    """Return CASE WHEN ... THEN ... ELSE ... END, without copying its parts."""
    return exp.Case(ifs=[exp.If(this=test, true=result) for test, result in branches], default=default)


def parenthesize(node: exp.Expression) -> exp.Expression:
    """Return SQL that can stand beside an operator."""
    return node if isinstance(node, _CLOSED) else exp.Paren(this=node)


def as_number(value: Value, *, label: str) -> FixedPointNumber:
    """Return a constant as a number that is the same in each row."""
    if isinstance(value, FixedPointNumber):
        return value
    # A constant is one step of a unit of its own size, so that none is too large or too fine for whole steps.
    step = (value > 0) - (value < 0)
    return FixedPointNumber(steps=whole(step), unit=abs(value) or Fraction(1), low=step, high=step, label=label)


def unit_of(values: Sequence[Value]) -> Fraction:
    """Return the largest unit of which all units, and all constants, are whole multiples."""
    unit = Fraction(0)
    for value in values:
        unit = _common(unit, value.unit if isinstance(value, FixedPointNumber) else abs(value))
    return unit or Fraction(1)


def in_unit(value: Value, unit: Fraction) -> FixedPointNumber:
    """Return a value in whole multiples of a unit that divides its own."""
    if isinstance(value, Fraction):
        step = int(value / unit)
        return _number(whole(step), unit, step, step)
    factor = int(value.unit / unit)
    steps = value.steps if factor == 1 else _product(value.steps, whole(factor))
    return _number(steps, unit, value.low * factor, value.high * factor)


def add(left: Value, right: Value) -> Value:
    """Return the sum."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left + right
    if 0 in (left, right):
        return right if left == 0 else left
    unit = unit_of([left, right])
    a, b = in_unit(left, unit), in_unit(right, unit)
    # A chain of additions stays flat: with parentheses at every step it would nest as deep as it is long.
    first = a.steps if isinstance(a.steps, exp.Add) else parenthesize(a.steps)
    steps = exp.Add(this=first, expression=parenthesize(b.steps))
    return _number(steps, unit, a.low + b.low, a.high + b.high)


def negate(value: Value) -> Value:
    """Return the opposite."""
    if isinstance(value, Fraction):
        return -value
    return _number(exp.Neg(this=parenthesize(value.steps)), value.unit, -value.high, -value.low)


def multiply(left: Value, right: Value) -> Value:
    """Return the product; of a number with itself it is not negative."""
    if isinstance(left, Fraction):
        return left * right if isinstance(right, Fraction) else _multiple(right, left)
    if isinstance(right, Fraction):
        return _multiple(left, right)
    ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    # Equal expressions have equal values in every row, so their product is a square.
    low = max(min(ends), 0) if left.steps.sql(copy=False) == right.steps.sql(copy=False) else min(ends)
    return _number(_product(left.steps, right.steps), left.unit * right.unit, low, max(ends))


def power(value: Value, exponent: int) -> Value:
    """Return a small whole power."""
    result = value
    for _ in range(exponent - 1):
        result = multiply(result, value)
    # From the third factor on the texts differ, and the bounds alone no longer show that an even power is not
    # negative.
    if exponent % 2 == 0 and isinstance(result, FixedPointNumber):
        return _number(result.steps, result.unit, max(result.low, 0), result.high)
    return result


def absolute(value: Value) -> Value:
    """Return the distance from zero."""
    if isinstance(value, Fraction):
        return abs(value)
    low = max(value.low, -value.high, 0)
    return _number(exp.Abs(this=value.steps), value.unit, low, max(abs(value.low), abs(value.high)))


def remainder(value: Value, divisor: Fraction) -> Value:
    """Return what is left of a division, with the sign of the dividend."""
    if isinstance(value, Fraction):
        return value - divisor * math.trunc(value / divisor)
    unit = unit_of([value, divisor])
    number, modulus = in_unit(value, unit), int(abs(divisor) / unit)
    steps = exp.Mod(this=parenthesize(number.steps), expression=whole(modulus))
    low = max(number.low, 1 - modulus) if number.low < 0 else 0
    high = min(number.high, modulus - 1) if number.high > 0 else 0
    return _number(steps, unit, low, high)


def floor(value: Value, unit: Fraction) -> Value:
    """Return the largest multiple of a unit that is not above the value."""
    if isinstance(value, Fraction):
        return unit * math.floor(value / unit)
    return _quotient(value, unit, ahead=0)


def ceiling(value: Value, unit: Fraction) -> Value:
    """Return the smallest multiple of a unit that is not below the value."""
    if isinstance(value, Fraction):
        return unit * math.ceil(value / unit)
    return _quotient(value, unit, ahead=(value.unit / unit).denominator - 1)


def nearest(value: Value, unit: Fraction) -> Value:
    """Return the nearest multiple of a unit; halves go away from zero."""
    return _by_sign(value, unit, lambda part: floor(add(part, unit / 2), unit))


def toward_zero(value: Value, unit: Fraction) -> Value:
    """Return the multiple of a unit that is next to the value, on the side of zero."""
    return _by_sign(value, unit, lambda part: floor(part, unit))


def extreme(values: Sequence[Value], *, largest: bool) -> Value:
    """Return the largest or the smallest of several; missing when one of them is."""
    best = values[0]
    for other in values[1:]:
        best = _better(best, other, largest=largest)
    return best


def first_present(values: Sequence[Value], *, label: str) -> Value:
    """Return the first that is not missing."""
    numbers = [in_unit(value, unit_of(values)) for value in values]
    steps = exp.Coalesce(this=numbers[0].steps, expressions=[number.steps for number in numbers[1:]])
    return replace(_hull(steps, numbers), label=label)


def choose(tests: Sequence[exp.Expression], values: Sequence[Value | None], *, label: str) -> FixedPointNumber:
    """Return the value of the first test that holds; the last value, if there is one more, where none does."""
    present = [value for value in values if value is not None]
    unit = unit_of(present)
    numbers = [None if value is None else in_unit(value, unit) for value in values]
    results = [exp.Null() if number is None else number.steps for number in numbers]
    steps = case(list(zip(tests, results, strict=False)), results[-1] if len(results) > len(tests) else None)
    return replace(_hull(steps, [number for number in numbers if number is not None]), label=label)


def compare(kind: type[exp.Expression], left: Value, right: Value) -> exp.Expression:
    """Return the exact comparison of two numbers."""
    if isinstance(left, FixedPointNumber) and isinstance(right, Fraction):
        return _compare_with(kind, left, right)
    if isinstance(left, Fraction) and isinstance(right, FixedPointNumber):
        return _compare_with(_MIRRORED[kind], right, left)
    unit = unit_of([left, right])
    a, b = in_unit(left, unit), in_unit(right, unit)
    return kind(this=parenthesize(a.steps), expression=parenthesize(b.steps))


def _compare_with(kind: type[exp.Expression], number: FixedPointNumber, constant: Fraction) -> exp.Expression:
    """Compare steps with the whole number next to a constant, on the side that keeps the meaning."""
    place = constant / number.unit
    if kind in (exp.EQ, exp.NEQ) and place.denominator != 1:
        place = Fraction(number.high + 1)  # no row has it
    edge = _ROUNDED.get(kind, math.floor)(place)
    # An edge beyond all rows is moved next to them, where it means the same and cannot be too large.
    edge = min(max(edge, number.low - 1), number.high + 1)
    return kind(this=parenthesize(number.steps), expression=whole(edge))


def _better(left: Value, right: Value, *, largest: bool) -> Value:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return max(left, right) if largest else min(left, right)
    if isinstance(left, Fraction) or isinstance(right, Fraction):
        number, bound = (right, left) if isinstance(left, Fraction) else (left, right)
        if _is_beyond(number, bound, largest=largest):
            return number
    unit = unit_of([left, right])
    a, b = in_unit(left, unit), in_unit(right, unit)
    pick = max if largest else min
    other, same = (exp.LT, exp.GTE) if largest else (exp.GT, exp.LTE)
    # Both tests are unknown where one side is missing, and without ELSE the result is then missing, too.
    steps = case(
        [
            (other(this=parenthesize(a.steps), expression=parenthesize(b.steps)), b.steps),
            (same(this=parenthesize(a.steps), expression=parenthesize(b.steps)), a.steps),
        ]
    )
    return _number(steps, unit, pick(a.low, b.low), pick(a.high, b.high))


def _is_beyond(number: Value, bound: Value, *, largest: bool) -> bool:
    """Return whether a constant bound never applies to a number."""
    if not isinstance(number, FixedPointNumber) or not isinstance(bound, Fraction):
        return False
    low, high = number.bounds
    return low >= bound if largest else high <= bound


def _by_sign(value: Value, unit: Fraction, rounded: Callable[[Value], Value]) -> Value:
    """Round a number that is not negative, and the opposite of a negative one."""
    if isinstance(value, Fraction):
        return rounded(value) if value >= 0 else negate(rounded(-value))
    if (value.unit / unit).denominator == 1:
        return value
    if value.low >= 0:
        return rounded(value)
    reach = max(abs(value.low), abs(value.high))
    # Each branch is taken only where its numbers are not negative, which is what the bounds from 0 say.
    positive = as_number(rounded(_number(value.steps, value.unit, 0, reach)), label="")
    opposite = _number(exp.Neg(this=parenthesize(value.steps)), value.unit, 0, reach)
    negative = as_number(negate(rounded(opposite)), label="")
    below = exp.LT(this=parenthesize(value.steps), expression=whole(0))
    low, high = (_end(value, steps, unit, rounded) for steps in (value.low, value.high))
    return _number(case([(below, negative.steps)], positive.steps), unit, low, high)


def _end(value: FixedPointNumber, steps: int, unit: Fraction, rounded: Callable[[Value], Value]) -> int:
    result = _by_sign(steps * value.unit, unit, rounded)
    return int(result / unit) if isinstance(result, Fraction) else 0


def _quotient(value: FixedPointNumber, unit: Fraction, *, ahead: int) -> FixedPointNumber:
    """Return floor((steps * p + ahead) / q) for value / unit = steps * p / q."""
    ratio = value.unit / unit
    p, q = ratio.numerator, ratio.denominator
    if q == 1:
        return value
    ends = [(steps * p + ahead) // q for steps in (value.low, value.high)]
    # Moved by whole multiples of q the dividend is not negative in any row, and the quotient is off by a known
    # whole number.
    shift = max(0, -ends[0])
    scaled = value.steps if p == 1 else _product(value.steps, whole(p))
    moved = ahead + q * shift
    # Made for its check alone: what is computed on the way must stay within the limit as well.
    _number(scaled, unit, value.low * p + moved, value.high * p + moved)
    numerator = exp.Add(this=parenthesize(scaled), expression=whole(moved)) if moved else scaled
    quotient = bigint(exp.IntDiv(this=parenthesize(numerator), expression=whole(q)))
    steps = exp.Sub(this=quotient, expression=whole(shift)) if shift else quotient
    return _number(steps, unit, ends[0], ends[1])


def _multiple(number: FixedPointNumber, factor: Fraction) -> FixedPointNumber:
    if factor == 0:
        # Times zero, rather than zero: a missing number stays missing.
        return _number(_product(number.steps, whole(0)), Fraction(1), 0, 0)
    if factor > 0:
        # A positive factor changes the unit alone, so that no row is touched.
        return _number(number.steps, number.unit * factor, number.low, number.high)
    steps = exp.Neg(this=parenthesize(number.steps))
    return _number(steps, number.unit * -factor, -number.high, -number.low)


def _product(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return exp.Mul(this=parenthesize(left), expression=parenthesize(right))


def _hull(steps: exp.Expression, numbers: Sequence[FixedPointNumber]) -> FixedPointNumber:
    low, high = min(number.low for number in numbers), max(number.high for number in numbers)
    return _number(steps, numbers[0].unit, low, high)


def _number(steps: exp.Expression, unit: Fraction, low: int, high: int) -> FixedPointNumber:
    if max(abs(low), abs(high)) >= LARGEST:
        raise _too_large()
    return FixedPointNumber(steps=steps, unit=unit, low=low, high=high, label="")


def _too_large() -> UnsafeQueryError:
    return UnsafeQueryError(
        "An expression could become too large a number to be computed exactly.",
        fix="narrow the columns in it, such as GREATEST(0, LEAST(income, 100000)), or write fewer digits.",
    )


def _common(left: Fraction, right: Fraction) -> Fraction:
    """Return the greatest common divisor of two rationals."""
    numerator = math.gcd(left.numerator * right.denominator, right.numerator * left.denominator)
    return Fraction(numerator, left.denominator * right.denominator)
