"""The laws of discrete noise: standard deviations and half-widths, in steps, for every place that states them.

A half-width at a confidence is the smallest whole m with ``Pr[abs(noise) <= m] >= confidence``. For Laplace noise that
is decided with rational bounds of exponentials; for Gaussian noise and for sums in floating point, rounded outward.
Of sums, a half-width that is left with a probability below 1e-6 is the sum of those of its parts, which is larger.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact, validation

__all__ = [
    "gaussian_half_width",
    "gaussian_standard_deviation",
    "laplace_half_width",
    "laplace_standard_deviation",
    "sum_half_width",
]

_NEARBY = 1e-12
"""A relative error that no floating-point formula here reaches."""

_WIDE = 1000
"""From which standard deviation on, in steps, a discrete Gaussian is bounded by the continuous one."""

_NARROW = 16
"""From which variance on the discrete Gaussian has that of the continuous one, up to a factor of 1 - 1e-100."""

_REACH = 30
"""How many standard deviations of a sum are laid out; beyond lies less than exp(-42)."""

_MOST_POINTS = 2**20

_RARE = 1e-6
"""Below which probability the rounding of a Fourier transform is no longer small beside a tail."""


def laplace_standard_deviation(scale: Fraction) -> float:
    """Return the standard deviation of discrete Laplace noise, ``sqrt(2 a) / (1 - a)`` with ``a = exp(-1/scale)``.

    >>> round(laplace_standard_deviation(Fraction(1)), 3)
    1.357
    """
    rate = float(1 / Fraction(scale))
    return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)


def laplace_half_width(scale: Fraction, confidence: object) -> int:
    """Return the half-width of discrete Laplace noise of a scale.

    The tail is ``Pr[abs(noise) > m] = 2 a**(m + 1) / (1 + a)`` with ``a = exp(-1/scale)``.

    >>> laplace_half_width(Fraction(1, 2), 0.95)
    1
    """
    outside = 1 - validation.check_confidence(confidence)
    rate = 1 / Fraction(scale)
    ratio = exact.exp_bounds(-rate)[0]

    def covers(steps: int) -> bool:
        return 2 * exact.exp_bounds(-rate * (steps + 1))[1] <= outside * (1 + ratio)

    # Floating point comes within a hair of the answer; bisection between both sides of it is exact.
    near = math.log(2 / (float(outside) * (1 + float(ratio)))) / float(rate) - 1
    low = max(math.floor(near * (1 - _NEARBY)) - 2, -1)
    high = max(math.ceil(near * (1 + _NEARBY)) + 2, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if covers(middle) else (middle, high)
    return high


def gaussian_standard_deviation(squared_sigma: Fraction) -> float:
    """Return the standard deviation of discrete Gaussian noise, which is below sigma where sigma is small.

    >>> round(gaussian_standard_deviation(Fraction(1, 4)), 3), gaussian_standard_deviation(Fraction(100))
    (0.464, 10.0)
    """
    if squared_sigma >= _NARROW:
        return math.sqrt(squared_sigma)
    places = np.arange(1, math.ceil(40 * math.sqrt(squared_sigma)) + 2, dtype=np.float64)
    weights = np.exp(-(places**2) / (2 * float(squared_sigma)))
    return math.sqrt(float(2 * (weights * places**2).sum() / (1 + 2 * weights.sum())))


def gaussian_half_width(squared_sigma: Fraction, confidence: object) -> int:
    """Return the half-width of discrete Gaussian noise; above a thousand steps, at most two more than that."""
    covered_share = validation.check_confidence(confidence)
    inside, outside = float(covered_share), float(1 - covered_share)
    sigma = math.sqrt(squared_sigma)
    if sigma > _WIDE:
        return math.ceil(sigma * -NormalDist().inv_cdf(outside / 2)) + 1
    weights = np.exp(-(np.arange(math.ceil(40 * sigma) + 2) ** 2) / (2 * float(squared_sigma)))
    covered = 2 * np.cumsum(weights) - 1
    return int(np.searchsorted(covered, inside * covered[-1] * (1 + _NEARBY)))


def sum_half_width(laws: Sequence[tuple[str, float]], confidence: float) -> int | None:
    """Return the half-width of a sum of independent noises on one lattice; None if there are too many points.

    Args:
        laws: for each noise "laplace" with its scale, or "gaussian" with its sigma, in steps.
        confidence: the probability that is covered.

    >>> sum_half_width([("laplace", 1.0), ("laplace", 1.0)], 0.95)
    4
    """
    if 1 - confidence < _RARE:
        return _half_width_by_parts(laws, confidence)
    spread = math.sqrt(sum(2 * scale**2 if kind == "laplace" else scale**2 for kind, scale in laws))
    if 2 * _REACH * spread + 64 > _MOST_POINTS:
        return None
    # The transform of the sum's law is the product of those of its parts; points wrap around beyond its reach.
    size = 2 ** math.ceil(math.log2(2 * _REACH * spread + 64))
    spectrum = np.ones(size // 2 + 1)
    for (kind, scale), times in Counter(laws).items():
        single = _laplace_spectrum(scale, size) if kind == "laplace" else _gaussian_spectrum(scale, size)
        spectrum *= single**times
    masses = np.fft.irfft(spectrum, size)
    inside = np.cumsum(np.concatenate([masses[:1], 2 * masses[1 : size // 2]]))
    return int(np.searchsorted(inside, confidence + _NEARBY * (1 - confidence)))


def _half_width_by_parts(laws: Sequence[tuple[str, float]], confidence: float) -> int:
    """Return what covers a sum, since each part leaves its own half-width with an equal share of what is left over."""
    inside = 1 - (1 - Fraction(confidence)) / len(laws)
    widths = {
        (kind, scale): laplace_half_width(Fraction(scale), inside)
        if kind == "laplace"
        else gaussian_half_width(Fraction(scale) ** 2, inside)
        for kind, scale in set(laws)
    }
    return sum(widths[law] for law in laws)


def _laplace_spectrum(scale: float, size: int) -> NDArray[np.float64]:
    """Return the Fourier transform of discrete Laplace noise, which has a closed form."""
    turns = np.cos(2 * np.pi * np.arange(size // 2 + 1) / size)
    ratio = math.exp(-1 / scale)
    return np.asarray((1 - ratio) ** 2 / (1 - 2 * ratio * turns + ratio**2))


def _gaussian_spectrum(sigma: float, size: int) -> NDArray[Any]:
    """Return the Fourier transform of discrete Gaussian noise, from its weights on both sides of zero."""
    places = np.minimum(np.arange(size), size - np.arange(size)).astype(np.float64)
    weights = np.exp(-(places**2) / (2 * sigma**2))
    return np.fft.rfft(weights / weights.sum()).real
