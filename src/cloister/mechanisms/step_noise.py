"""Noise on whole steps, for code that has put its numbers on a lattice itself: Laplace for L1, Gaussian for L2.

Privacy: `LaplaceSteps` is the discrete Laplace mechanism of `cloister.mechanisms.laplace` on integers that neighbors
move by at most ``sensitivity`` in L1. `GaussianSteps` is the discrete Gaussian one on integers that neighbors move by
``squared_sensitivity`` in squared L2: under rho it has variance squared_sensitivity / (2 rho); under (epsilon,
delta) it dominates continuous noise of the stated multiplier, by the argument of `cloister.mechanisms.gaussian`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from numpy.typing import NDArray

from cloister.accounting.events import DiscreteGaussianEvent, DiscreteLaplaceEvent, Event, GaussianEvent
from cloister.core.random import RandomSource
from cloister.mechanisms.base import with_room
from cloister.mechanisms.sampling.discrete_gaussian import discrete_gaussian
from cloister.mechanisms.sampling.discrete_laplace import discrete_laplace

__all__ = ["GaussianSteps", "LaplaceSteps"]

_SMOOTHING = 4


@dataclass(frozen=True, slots=True)
class LaplaceSteps:
    """Discrete Laplace noise on whole numbers.

    >>> LaplaceSteps(sensitivity=2, epsilon=Fraction(1, 2)).scale
    Fraction(4, 1)
    """

    sensitivity: int
    epsilon: Fraction

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
        return float(self.scale) * math.sqrt(2)

    def add(self, values: NDArray[Any], source: RandomSource) -> NDArray[Any]:
        """Return whole numbers with independent noise on each."""
        draws = discrete_laplace(self.scale).draw(source, values.size)
        return with_room(values.ravel() + draws).reshape(values.shape)


@dataclass(frozen=True, slots=True)
class GaussianSteps:
    """Discrete Gaussian noise on whole numbers."""

    squared_sigma: Fraction
    event: Event

    @classmethod
    def concentrated(cls, squared_sensitivity: int, rho: Fraction) -> Self:
        """Return the noise that is rho-zero-concentrated private."""
        squared_sigma = squared_sensitivity / (2 * rho)
        event = DiscreteGaussianEvent(squared_sigma=squared_sigma, squared_sensitivity=Fraction(squared_sensitivity))
        return cls(squared_sigma, event)

    @classmethod
    def dominating(cls, squared_sensitivity: int, squared_multiplier: Fraction) -> Self:
        """Return noise that is no less private than continuous noise of a multiplier of the sensitivity."""
        squared_sigma = Fraction(math.ceil(squared_sensitivity * squared_multiplier)) + _SMOOTHING
        return cls(squared_sigma, GaussianEvent(squared_multiplier=squared_multiplier))

    @property
    def deviation(self) -> float:
        """Return the standard deviation in steps."""
        return math.sqrt(self.squared_sigma)

    def add(self, values: NDArray[Any], source: RandomSource) -> NDArray[Any]:
        """Return whole numbers with independent noise on each."""
        draws = discrete_gaussian(self.squared_sigma).draw(source, values.size)
        return with_room(values.ravel() + draws).reshape(values.shape)
