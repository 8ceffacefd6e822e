"""Sums of many rationals that never come out too small and never grow without bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

LARGEST_DENOMINATOR_BITS = 512
"""Up to this size a sum is exact; beyond it the sum is rounded up."""

_STEP = Fraction(1, 2**200)


def sum_above(values: Iterable[Fraction]) -> Fraction:
    """Return a rational that is at least the sum: the sum itself unless its denominator gets huge.

    >>> sum_above([Fraction(1, 10)] * 10)
    Fraction(1, 1)
    """
    total = Fraction(0)
    for value in values:
        total += value
        if total.denominator.bit_length() > LARGEST_DENOMINATOR_BITS:
            total = math.ceil(total / _STEP) * _STEP
    return total
