"""Sums of many rationals that never come out too small and never grow without bound."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

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
            return Fraction(_scaled(total) + sum(map(_scaled, rest)), 2**_BITS)
    return total


def _scaled(value: Fraction) -> int:
    """Return a value in units of 2**-200, rounded up."""
    return -((-value.numerator << _BITS) // value.denominator)
