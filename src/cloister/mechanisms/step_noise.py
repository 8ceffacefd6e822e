"""Noise on whole steps, for code that has put its numbers on a lattice itself: Laplace for L1, Gaussian for L2.

Privacy: `LaplaceSteps` is the discrete Laplace mechanism of `cloister.mechanisms.laplace` on integers that neighbors
move by at most ``sensitivity`` in L1. `GaussianSteps` is the discrete Gaussian one on integers that neighbors move by
``squared_sensitivity`` in squared L2: under rho it has variance squared_sensitivity / (2 rho); under (epsilon,
delta) it dominates continuous noise of the stated multiplier, by the argument of `cloister.mechanisms.gaussian`.

That argument costs 4 in variance, in squared steps of the lattice on which noise is drawn. Where sigma is a few steps,
this would be most of the noise, so that the noise is drawn on a lattice ``refinement`` times as fine: whole numbers lie
on it, too, and neighbors are apart by ``refinement`` times as many of its steps. Claim and argument are the same there,
and the 4 and at most 1 from rounding up are at most 5/1024 of the needed variance: sigma is at most 1.0025 times
what continuous noise needs. Answers are then multiples of 1 / refinement.

The laws of this noise, standard deviations and half-widths in steps, are here for every place that states them.
A half-width at a confidence is the smallest whole m with ``Pr[abs(noise) <= m] >= confidence``. For Laplace noise that
is decided with rational bounds of exponentials; for Gaussian noise and for sums in floating point, rounded outward.
Of sums, a half-width that is left with a probability below 1e-6 is the sum of those of its parts, which is larger.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import DiscreteGaussianEvent, DiscreteLaplaceEvent, Event, GaussianEvent
from cloister.core import exact, validation
from cloister.core.exact import Number
from cloister.core.random import RandomSource
from cloister.mechanisms.base import ROOM, with_room
from cloister.mechanisms.sampling.discrete_noise import discrete_gaussian, discrete_laplace

__all__ = [
    "GaussianSteps",
    "LaplaceSteps",
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


def laplace_half_width(scale: Fraction, confidence: Number) -> int:
    """Return the half-width of discrete Laplace noise of a scale.

    The tail is ``Pr[abs(noise) > m] = 2 a**(m + 1) / (1 + a)`` with ``a = exp(-1/scale)``.

    >>> laplace_half_width(Fraction(1, 2), 0.95)
    1
    """
    outside = 1 - validation.check_confidence(confidence)
    rate = 1 / Fraction(scale)
    ratio = exact.exp_bounds(-rate)[0]

    def covers(steps: int) -> bool:
        # The tail is rounded up (its numerator up, 1 + a down), so that a half-width is never too small.
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
    # Beyond 40 sigma weights are below exp(-800), which is zero in doubles.
    places = np.arange(1, math.ceil(40 * math.sqrt(squared_sigma)) + 2, dtype=np.float64)
    weights = np.exp(-(places**2) / (2 * float(squared_sigma)))
    return math.sqrt(float(2 * (weights * places**2).sum() / (1 + 2 * weights.sum())))


def gaussian_half_width(squared_sigma: Fraction, confidence: Number) -> int:
    """Return the half-width of discrete Gaussian noise; above a thousand steps, at most two more than that."""
    covered_share = validation.check_confidence(confidence)
    inside, outside = float(covered_share), float(1 - covered_share)
    sigma = math.sqrt(squared_sigma)
    if sigma > _WIDE:
        # The lower tail keeps its digits where 1 - outside / 2 would round to 1; a step more pays for being discrete.
        return math.ceil(sigma * -NormalDist().inv_cdf(outside / 2)) + 1
    weights = np.exp(-(np.arange(math.ceil(40 * sigma) + 2) ** 2) / (2 * float(squared_sigma)))
    # Zero counts once, every other magnitude for both of its signs.
    covered = 2 * np.cumsum(weights) - 1
    # Looking for a hair more than asked turns rounding errors into a wider half-width, never a narrower one.
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
    # The law is symmetric, and its negative half stands in the second half of the array.
    inside = np.cumsum(np.concatenate([masses[:1], 2 * masses[1 : size // 2]]))
    return int(np.searchsorted(inside, confidence + _NEARBY * (1 - confidence)))


def _half_width_by_parts(laws: Sequence[tuple[str, float]], confidence: float) -> int:
    """Return what covers a sum, since each part leaves its own half-width with an equal share of what is left over."""
    # By the union bound the shares of what may be left over add up.
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
    # In a transform the negative places follow the positive ones, counted from the end.
    places = np.minimum(np.arange(size), size - np.arange(size)).astype(np.float64)
    weights = np.exp(-(places**2) / (2 * sigma**2))
    return np.fft.rfft(weights / weights.sum()).real


_SMOOTHING = 4
_ENOUGH = 2**10
"""The least variance, in squared steps of the finer lattice, beside which the smoothing does not matter."""


@dataclass(frozen=True, slots=True)
class LaplaceSteps:
    """Discrete Laplace noise on whole numbers.

    >>> LaplaceSteps(sensitivity=2, epsilon=Fraction(1, 2)).scale
    Fraction(4, 1)
    """

    sensitivity: int
    epsilon: Fraction
    refinement: ClassVar[int] = 1
    """How many points the noise has to a step."""

    @property
    def scale(self) -> Fraction:
        """Return the scale in steps."""
        return self.sensitivity / self.epsilon

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return DiscreteLaplaceEvent(scale=self.scale, sensitivity=self.sensitivity)

    @property
    def deviation(self) -> float:
        """Return the standard deviation in steps."""
        return laplace_standard_deviation(self.scale)

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width, in steps, that covers the noise on one number with a probability."""
        return float(laplace_half_width(self.scale, confidence))

    def add(self, values: NDArray[Any], source: RandomSource) -> NDArray[Any]:
        """Return whole numbers with independent noise on each."""
        draws = discrete_laplace(self.scale).draw(source, values.size)
        return with_room(values.ravel() + draws).reshape(values.shape)


@dataclass(frozen=True, slots=True)
class GaussianSteps:
    """Discrete Gaussian noise on whole numbers.

    Attributes:
        squared_sigma: the variance parameter, in squared steps.
        event: what a release is for the accountants.
        refinement: a power of two: how many points the noise has to a step.

    >>> noise = GaussianSteps.dominating(1, Fraction(9, 4))
    >>> noise.refinement, round(noise.deviation, 3)
    (32, 1.501)
    """

    squared_sigma: Fraction
    event: Event
    refinement: int = 1

    @classmethod
    def for_rho(cls, squared_sensitivity: int, rho: Fraction) -> Self:
        """Return the noise that is rho-zero-concentrated private."""
        squared_sigma = squared_sensitivity / (2 * rho)
        event = DiscreteGaussianEvent(squared_sigma=squared_sigma, squared_sensitivity=Fraction(squared_sensitivity))
        return cls(squared_sigma, event)

    @classmethod
    def dominating(cls, squared_sensitivity: int, squared_multiplier: Fraction) -> Self:
        """Return noise that is no less private than continuous noise of a multiplier of the sensitivity."""
        needed = squared_sensitivity * squared_multiplier
        refinement = 1
        while needed * refinement**2 < _ENOUGH:
            refinement *= 2
        # Both the rounding and the smoothing add noise to what continuous noise needs.
        fine = Fraction(math.ceil(needed * refinement**2)) + _SMOOTHING
        return cls(fine / refinement**2, GaussianEvent(squared_multiplier=squared_multiplier), refinement)

    @property
    def deviation(self) -> float:
        """Return the standard deviation in steps."""
        return gaussian_standard_deviation(self._fine) / self.refinement

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width, in steps, that covers the noise on one number with a probability."""
        return gaussian_half_width(self._fine, confidence) / self.refinement

    def add(self, values: NDArray[Any], source: RandomSource) -> NDArray[Any]:
        """Return whole numbers with independent noise on each: whole numbers, or floats on the finer lattice."""
        draws = discrete_gaussian(self._fine).draw(source, values.size)
        fine = with_room(_times(values, self.refinement).ravel() + draws).reshape(values.shape)
        return fine if self.refinement == 1 else _divide(fine, self.refinement)

    @property
    def _fine(self) -> Fraction:
        """Return the variance parameter in squared steps of the lattice on which noise is drawn."""
        return self.squared_sigma * self.refinement**2


def _times(values: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return whole numbers times a factor; as Python's own where 64 bits would be too few."""
    if factor == 1 or (np.abs(values) <= ROOM // factor).all():
        return values * factor
    return values.astype(object) * factor


def _divide(fine: NDArray[Any], factor: int) -> NDArray[np.float64]:
    """Return the nearest floats to fine steps; rounding here touches only what is private already."""
    if fine.dtype != object:
        return np.asarray(fine / factor)
    return np.array([float(Fraction(step, factor)) for step in fine.ravel()]).reshape(fine.shape)
