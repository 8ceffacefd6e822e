"""Arithmetic modulo the prime 2**61 - 1, on whole arrays of 64-bit numbers."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["PRIME", "Elements", "as_fraction", "inverse", "multiply", "scale", "subtract", "total"]

PRIME = 2**61 - 1
"""A Mersenne prime, for which the remainder of a product needs no division."""

Elements: TypeAlias = NDArray[np.uint64]
"""Numbers from 0 to the prime, without the prime."""

_P = np.uint64(PRIME)
_HALF, _SHIFT, _MIDDLE = np.uint64(31), np.uint64(61), np.uint64(30)
_LOW, _LOW_MIDDLE = np.uint64(2**31 - 1), np.uint64(2**30 - 1)
_LARGEST_PART = isqrt(PRIME // 2)


def _reduced(numbers: Elements) -> Elements:
    folded = (numbers & _P) + (numbers >> _SHIFT)
    return np.where(folded >= _P, folded - _P, folded)


def multiply(left: Elements, right: Elements) -> Elements:
    """Return the products, from four products of halves that fit 64 bits."""
    high_left, low_left, high_right, low_right = left >> _HALF, left & _LOW, right >> _HALF, right & _LOW
    middle = high_left * low_right + low_left * high_right
    shifted = (middle >> _MIDDLE) + ((middle & _LOW_MIDDLE) << _HALF)
    return _reduced(((high_left * high_right) << np.uint64(1)) + shifted + low_left * low_right)


def scale(numbers: Elements, factor: int) -> Elements:
    """Return the products with one number."""
    return multiply(numbers, np.full(1, factor, dtype=np.uint64))


def subtract(left: Elements, right: Elements) -> Elements:
    """Return the differences."""
    return np.where(left >= right, left - right, left + (_P - right))


def total(rows: Elements) -> Elements:
    """Return the sums of the columns, of less than 2**30 rows."""
    low, high = (rows & _LOW).sum(axis=0, dtype=np.uint64), (rows >> _HALF).sum(axis=0, dtype=np.uint64)
    return _reduced(multiply(_reduced(high), np.full_like(high, 2**31)) + _reduced(low))


def inverse(number: int) -> int:
    """Return the number whose product with another is 1."""
    return pow(number, -1, PRIME)


def as_fraction(element: int) -> Fraction | None:
    """Return the one fraction of small whole numbers that an element stands for, None if there is none."""
    before, after = (PRIME, 0), (element, 1)
    while after[0] > _LARGEST_PART:
        quotient = before[0] // after[0]
        before, after = after, (before[0] - quotient * after[0], before[1] - quotient * after[1])
    if after[1] == 0 or abs(after[1]) > _LARGEST_PART:
        return None
    return Fraction(after[0], after[1])
