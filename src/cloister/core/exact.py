"""Exact numbers: rationals everywhere, and directed bounds where a number is irrational.

A float that a person typed is read as the shortest decimal that prints the same: ``0.1`` is 1/10, so ten
spends of ``0.1`` fit a budget of ``1``. That rational is what is charged *and* what calibrates the noise, so the
reading cannot weaken a guarantee. A float that came out of a computation is bounded with `upper` or `lower`.

Irrational values (exponentials, logarithms, roots) are never rounded to nearest: each function returns a rational
that is certainly at most, or certainly at least, the true value. `decimal` rounds ``exp`` and ``ln`` correctly
(within half a unit in the last place), so widening its answer by one unit gives a proof, not a hope.

`sum_above` adds many rationals: the sum never comes out too small and never grows without bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np

from cloister.errors import ParameterError, ParameterTypeError

Number: TypeAlias = "int | float | str | Decimal | Fraction"
"""What people may write for a number; everything becomes a `Fraction`."""

Interval: TypeAlias = "Sequence[Number]"
"""What people may write for a pair of bounds, (lower, upper)."""

DIGITS = 40
"""Significant digits of directed bounds unless told otherwise."""

_LARGEST_EXPONENT = 20_000
_MOST_DIGITS = 1000


def number(value: object, *, name: str = "value") -> Fraction:
    """Return the finite rational that a person meant by a value.

    >>> number(0.1), number("1/3"), number(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(2, 1))
    """
    if isinstance(value, bool | np.bool_):
        raise ParameterTypeError(f"{name} is a truth value.", fix=f"give {name} as a number.")
    try:
        exactly = _parse(value)
    except (ValueError, ArithmeticError):
        raise ParameterError(f"{name} is not a finite number.", fix=f"give {name} as a finite number.") from None
    except TypeError:
        raise ParameterTypeError(f"{name} is not a number.", fix=f"give {name} as a number.") from None
    # Every sum and product would drag such digits along.
    if max(abs(exactly.numerator), exactly.denominator).bit_length() > 4 * _MOST_DIGITS:
        raise ParameterError(f"{name} has too many digits.", fix=f"give {name} with at most {_MOST_DIGITS} digits.")
    return exactly


def _parse(value: Any) -> Fraction:  # whatever a caller gave
    """Return the rational that is meant, without writing out the zeros of an absurd exponent."""
    if type(value) is Fraction:  # most calls read a stored amount again
        return value
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, str) and "/" in value:
        return Fraction(value)
    if not isinstance(value, str | Decimal):
        return Fraction(repr(float(value)))
    written = Decimal(value)
    if not written.is_finite() or abs(written.adjusted()) > _MOST_DIGITS:
        raise ValueError
    return Fraction(written)


def upper(value: float, *, units: int = 4) -> Fraction:
    """Return a rational above a computed float, at least ``units`` units in the last place away."""
    return Fraction(value) + units * Fraction(math.ulp(value))


def lower(value: float, *, units: int = 4) -> Fraction:
    """Return a rational below a computed float, at least ``units`` units in the last place away."""
    return Fraction(value) - units * Fraction(math.ulp(value))


def float_above(value: Fraction) -> float:
    """Return the smallest float that is not below a rational."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def float_below(value: Fraction) -> float:
    """Return the largest float that is not above a rational."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def exp_bounds(exponent: Fraction, *, digits: int = DIGITS) -> tuple[Fraction, Fraction]:
    """Return rationals (low, high) with ``low <= exp(exponent) <= high``."""
    if exponent == 0:
        return Fraction(1), Fraction(1)
    if exponent > _LARGEST_EXPONENT:
        raise ParameterError("An exponential is too large.", fix=f"keep exponents below {_LARGEST_EXPONENT}.")
    if exponent < -_LARGEST_EXPONENT:
        return Fraction(0), exp_bounds(Fraction(-_LARGEST_EXPONENT), digits=digits)[1]
    # An error of the exponent is a relative one of the exponential: the digits are needed behind the point.
    low, high = _decimal_bounds(exponent, digits + _magnitude(exponent))
    context = _context(digits)
    # The exponential is monotone and correctly rounded, so that one unit outward is a bound.
    return _widen(context.exp(low), context)[0], _widen(context.exp(high), context)[1]


def is_at_most_exp(value: Fraction, exponent: Fraction) -> bool:
    """Return whether ``value <= exp(exponent)``, decided exactly.

    The exponential of a rational other than 0 is irrational (Lindemann), so that enough digits always tell.

    >>> is_at_most_exp(Fraction(3), Fraction(1)), is_at_most_exp(Fraction(1), Fraction(0))
    (False, True)
    """
    digits = DIGITS
    while True:
        low, high = exp_bounds(exponent, digits=digits)
        if value <= low or value > high:
            return value <= low
        digits *= 2


def log_bounds(value: Fraction, *, digits: int = DIGITS) -> tuple[Fraction, Fraction]:
    """Return rationals (low, high) with ``low <= ln(value) <= high``, for a positive value."""
    if value <= 0:
        raise ParameterError("A logarithm needs a positive number.", fix="give a number above 0.")
    if value == 1:
        return Fraction(0), Fraction(0)
    # A logarithm near 1 is as small as the distance from 1, which twice the digits still hold.
    low, high = _decimal_bounds(value, 2 * digits)
    context = _context(digits)
    return _widen(context.ln(low), context)[0], _widen(context.ln(high), context)[1]


def sqrt_bounds(value: Fraction, *, digits: int = DIGITS) -> tuple[Fraction, Fraction]:
    """Return rationals (low, high) with ``low <= sqrt(value) <= high``; equal when the root is rational."""
    if value < 0:
        raise ParameterError("A square root needs a number that is not negative.", fix="give a number >= 0.")
    shift = max(0, digits + (len(str(value.denominator)) - len(str(value.numerator))) // 2 + 1)
    # sqrt(n / d) is sqrt(n d) / d: the root of a whole number, which isqrt rounds down for certain.
    scale = 10**shift * value.denominator
    root = math.isqrt(value.numerator * value.denominator * 10 ** (2 * shift))
    low = Fraction(root, scale)
    return (low, low) if low * low == value else (low, Fraction(root + 1, scale))


def power_of_two_below(value: Fraction) -> Fraction:
    """Return the largest power of two that is not above a positive rational.

    >>> power_of_two_below(Fraction(5)), power_of_two_below(Fraction(1, 3))
    (Fraction(4, 1), Fraction(1, 4))
    """
    if value <= 0:
        raise ParameterError("A power of two below a number needs a positive number.", fix="give a number above 0.")
    # The lengths tell the exponent up to one.
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    candidate = Fraction(2) ** exponent
    return candidate if candidate <= value else candidate / 2


def ceil_div(value: Fraction, step: Fraction) -> int:
    """Return the smallest integer n with ``n * step >= value``."""
    return math.ceil(value / step)


def text(value: Fraction) -> str:
    """Return a rational as text that `number` reads back exactly."""
    return str(value)


def text_of_number(value: Fraction | int) -> str:
    """Return a rational as a plain decimal where it is one, else as a fraction.

    >>> text_of_number(Fraction(1, 2)), text_of_number(Fraction(1, 3)), text_of_number(Fraction(1, 10**6))
    ('0.5', '1/3', '0.000001')
    """
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    places = 0
    while rest % 10 == 0:
        rest, places = rest // 10, places + 1
    # A fraction is a decimal exactly where its denominator has no factors but 2 and 5.
    for factor in (2, 5):
        while rest % factor == 0:
            rest, places = rest // factor, places + 1
    if rest != 1:
        return str(value)
    sign = "-" if value < 0 else ""
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:].rstrip('0')}"


def to_plain_number(value: Fraction, *, for_browsers: bool = False) -> int | float | str:
    """Return a rational as JSON and YAML hold it: a number where that is read back exactly, else text.

    Args:
        value: the rational.
        for_browsers: whether the reader knows no whole numbers beyond 2**53 and compares texts of numbers.

    >>> to_plain_number(Fraction(3)), to_plain_number(Fraction(1, 10)), to_plain_number(Fraction(1, 3))
    (3, 0.1, '1/3')
    """
    if value.denominator == 1 and abs(value) < (2**53 if for_browsers else 10**30):
        return int(value)
    try:
        near = float(value)
    except OverflowError:
        return text_of_number(value)
    is_written_plainly = not for_browsers or "e" not in repr(near)
    return near if Fraction(repr(near)) == value and is_written_plainly else text_of_number(value)


def _context(digits: int) -> Context:
    # Without limits of the exponent and without traps, every rational has bounds.
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _magnitude(value: Fraction) -> int:
    return len(str(abs(value.numerator) // value.denominator))


def _decimal_bounds(value: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Return decimals of ``digits`` digits below and above a rational."""
    context = _context(digits)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    if Fraction(quotient) == value:
        return quotient, quotient
    return context.next_minus(quotient), context.next_plus(quotient)


def _widen(value: Decimal, context: Context) -> tuple[Fraction, Fraction]:
    low, high = context.next_minus(value), context.next_plus(value)
    return Fraction(max(low, Decimal(0)) if value >= 0 else low), Fraction(high)


LARGEST_DENOMINATOR_BITS = 512
"""Up to this size a sum is exact; beyond it the sum is rounded up."""

_BITS = 200


def sum_above(values: Iterable[Fraction]) -> Fraction:
    """Return a rational that is at least the sum: the sum itself unless its denominator gets huge.

    >>> sum_above([Fraction(1, 10)] * 10)
    Fraction(1, 1)
    """
    total, rest = Fraction(0), iter(values)
    for value in rest:
        total += value
        if total.denominator.bit_length() > LARGEST_DENOMINATOR_BITS:
            # From here on every number is rounded up by itself, so that the sum stays short and is never too small.
            return Fraction(_to_units(total) + sum(map(_to_units, rest)), 2**_BITS)
    return total


def _to_units(value: Fraction) -> int:
    """Return a value in units of 2**-200, rounded up."""
    # A floor of the negative is the ceiling.
    return -((-value.numerator << _BITS) // value.denominator)
