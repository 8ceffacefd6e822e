"""Certified probabilities: rationals below and above numbers that have no exact form.

`check_exactly` takes such pairs wherever a probability is irrational, so that no float ever decides a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TypeAlias, TypeVar

from cloister.core import exact
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["Bounds", "Probability", "bounds_of", "discrete_laplace_bounds", "normal_cdf_bounds", "normalized"]

Bounds: TypeAlias = tuple[Fraction, Fraction]
Probability: TypeAlias = "int | float | Fraction | Bounds"
Key = TypeVar("Key", bound=Hashable)

_PI = (
    Fraction("3.14159265358979323846264338327950288419716939937510"),
    Fraction("3.14159265358979323846264338327950288419716939937511"),
)


def bounds_of(value: object) -> Bounds:
    """Return (low, high) around a probability or density: exact for rationals, four units wide each way for floats."""
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ParameterTypeError("A probability is a number or a pair of bounds.", fix="write (low, high).")
        low, high = (exact.number(end, name="each bound") for end in value)
    else:
        low = high = exact.number(value, name="a probability")
    if isinstance(value, float) and value > 0:
        low, high = max(exact.lower(value), Fraction(0)), exact.upper(value)
    if not 0 <= low <= high:
        raise ParameterError(
            "A probability is negative or its bounds are reversed.", fix="give 0 <= low <= high for every output."
        )
    return low, high


def normalized(weights: Mapping[Key, Probability]) -> dict[Key, Bounds]:
    """Return certified probabilities proportional to certified weights.

    >>> normalized({"a": 1, "b": 3})["b"]
    (Fraction(3, 4), Fraction(3, 4))
    """
    known = {output: bounds_of(weight) for output, weight in weights.items()}
    low_total = sum((low for low, _ in known.values()), Fraction(0))
    high_total = sum((high for _, high in known.values()), Fraction(0))
    if low_total <= 0:
        raise ParameterError("The weights may all be zero.", fix="give at least one weight above 0.")
    return {
        output: (low / (high_total - high + low) if low else Fraction(0), high / (low_total - low + high))
        for output, (low, high) in known.items()
    }


def discrete_laplace_bounds(center: int, *, scale: Fraction, window: tuple[int, int]) -> dict[int, Bounds]:
    """Return certified probabilities of discrete Laplace noise, far outputs joined at the window's ends.

    Joining outputs is post-processing: it never adds a loss, and here hides none, all far ratios being equal.
    """
    low, high = window
    if not low < center < high:
        raise ParameterError("The window does not hold the center.", fix="give window=(low, high) around the center.")
    ratio = exact.exp_bounds(-1 / scale)
    weights: dict[int, Probability] = {}
    for output in range(low, high + 1):
        near, far = exact.exp_bounds(-abs(output - center) / scale)
        ends = output in window
        weights[output] = (near / (1 - ratio[0]), far / (1 - ratio[1])) if ends else (near, far)
    return normalized(weights)


def normal_cdf_bounds(value: Fraction, *, digits: int = exact.DIGITS) -> Bounds:
    """Return rationals around the standard normal cumulative distribution function.

    The series ``Phi(x) = 1/2 + phi(x) (x + x**3/3 + x**5/(3*5) + ...)`` has positive terms for positive x, and its rest
    is at most twice the next term once each term is at most half the one before.
    """
    if value < 0:
        low, high = normal_cdf_bounds(-value, digits=digits)
        return 1 - high, 1 - low
    low_sum, high_sum = _normal_series(value, 10 ** (digits + 15))
    exponential = exact.exp_bounds(-value * value / 2, digits=digits + 10)
    root = exact.sqrt_bounds(2 * _PI[0])[0], exact.sqrt_bounds(2 * _PI[1])[1]
    half = Fraction(1, 2)
    return half + exponential[0] / root[1] * low_sum, min(half + exponential[1] / root[0] * high_sum, Fraction(1))


def _normal_series(value: Fraction, scale: int) -> Bounds:
    """Return the sum of the series in integers of 1/scale, each term rounded down and up."""
    square = value * value
    low, high = math.floor(value * scale), math.ceil(value * scale)
    low_sum = high_sum = 0
    odd = 1
    while high > 1 or 2 * square > odd:
        low_sum, high_sum, odd = low_sum + low, high_sum + high, odd + 2
        low, high = math.floor(low * square / odd), math.ceil(high * square / odd)
    return Fraction(low_sum, scale), Fraction(high_sum + 2 * high, scale)
