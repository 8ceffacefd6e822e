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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import DiscreteGaussianEvent, DiscreteLaplaceEvent, Event, GaussianEvent
from cloister.core.random import RandomSource
from cloister.mechanisms.base import ROOM, with_room
from cloister.mechanisms.noise_laws import (
    gaussian_half_width,
    gaussian_standard_deviation,
    laplace_half_width,
    laplace_standard_deviation,
)
from cloister.mechanisms.sampling.discrete_gaussian import discrete_gaussian
from cloister.mechanisms.sampling.discrete_laplace import discrete_laplace

__all__ = ["GaussianSteps", "LaplaceSteps"]

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

    def margin(self, confidence: object = 0.95) -> float:
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
    def concentrated(cls, squared_sensitivity: int, rho: Fraction) -> Self:
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
        fine = Fraction(math.ceil(needed * refinement**2)) + _SMOOTHING
        return cls(fine / refinement**2, GaussianEvent(squared_multiplier=squared_multiplier), refinement)

    @property
    def deviation(self) -> float:
        """Return the standard deviation in steps."""
        return gaussian_standard_deviation(self._fine) / self.refinement

    def margin(self, confidence: object = 0.95) -> float:
        """Return the half-width, in steps, that covers the noise on one number with a probability."""
        return gaussian_half_width(self._fine, confidence) / self.refinement

    def add(self, values: NDArray[Any], source: RandomSource) -> NDArray[Any]:
        """Return whole numbers with independent noise on each: whole numbers, or floats on the finer lattice."""
        draws = discrete_gaussian(self._fine).draw(source, values.size)
        fine = with_room(_times(values, self.refinement).ravel() + draws).reshape(values.shape)
        return fine if self.refinement == 1 else _divided(fine, self.refinement)

    @property
    def _fine(self) -> Fraction:
        """Return the variance parameter in squared steps of the lattice on which noise is drawn."""
        return self.squared_sigma * self.refinement**2


def _times(values: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return whole numbers times a factor; as Python's own where 64 bits would be too few."""
    if factor == 1 or (np.abs(values) <= ROOM // factor).all():
        return values * factor
    return values.astype(object) * factor


def _divided(fine: NDArray[Any], factor: int) -> NDArray[np.float64]:
    """Return the nearest floats to fine steps; rounding here touches only what is private already."""
    if fine.dtype != object:
        return np.asarray(fine / factor)
    return np.array([float(Fraction(step, factor)) for step in fine.ravel()]).reshape(fine.shape)
