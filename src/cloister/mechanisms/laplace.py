"""Laplace noise on a lattice: pure differential privacy from the L1 sensitivity.

Dwork, McSherry, Nissim and Smith (2006) for the mechanism, Ghosh, Roughgarden and Sundararajan (2012) for its discrete
form, exact on integers. Floating-point Laplace noise leaks through its low-order bits (Mironov 2012), so none is here.

Privacy: claim epsilon-DP under the stated relation. Neighbors move the vector of lattice steps by at most n steps in
L1; the noise has ``Pr[k]`` proportional to ``exp(-abs(k) * epsilon / n)`` independently per coordinate, so the ratio
of the probabilities of any output is at most exp(epsilon).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from cloister.accounting.events import DiscreteLaplaceEvent, Event
from cloister.core import validation
from cloister.core.guarantees import PureDP
from cloister.mechanisms.additive import IntegerNoise, RealNoise
from cloister.mechanisms.base import mechanisms
from cloister.mechanisms.lattice import steps_apart_l1
from cloister.mechanisms.noise_laws import laplace_half_width, laplace_standard_deviation
from cloister.mechanisms.sampling.blocks import Sampler
from cloister.mechanisms.sampling.discrete_laplace import discrete_laplace


@mechanisms.register("discrete_laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(IntegerNoise):
    """Discrete Laplace ("geometric") noise for whole numbers, such as counts.

    >>> count = DiscreteLaplace(sensitivity=1, epsilon=0.1)
    >>> count.scale
    Fraction(10, 1)
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        IntegerNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))

    @property
    def scale(self) -> Fraction:
        """Return the scale of the noise: the L1 sensitivity, in whole steps, over epsilon."""
        return math.ceil(self.sensitivity) / self.epsilon

    @property
    def guarantee(self) -> PureDP:
        """Return what a release promises."""
        return PureDP(epsilon=self.epsilon, adjacency=self.adjacency, unit=self.unit)

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return DiscreteLaplaceEvent(scale=self.scale, sensitivity=math.ceil(self.sensitivity))

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise on one coordinate."""
        return laplace_standard_deviation(self.scale)

    def margin(self, confidence: object = 0.95) -> float:
        """Return the half-width that covers the noise on one coordinate with a probability."""
        return float(laplace_half_width(self.scale, confidence))

    def _sampler(self) -> Sampler:
        return discrete_laplace(self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealLaplaceNoise(RealNoise):
    """Discrete Laplace noise on the lattice steps of real numbers; subclasses calibrate its scale."""

    steps_scale: Fraction = field(init=False, default=Fraction(1))

    @property
    def steps_apart(self) -> int:
        """Return how many lattice steps neighbors are apart at most (L1)."""
        return steps_apart_l1(self.sensitivity, self.lattice.granularity, self.dimensions)

    @property
    def scale(self) -> float:
        """Return the scale of the noise."""
        return float(self.steps_scale * self.lattice.granularity)

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return DiscreteLaplaceEvent(scale=self.steps_scale, sensitivity=self.steps_apart)

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise on one coordinate."""
        return laplace_standard_deviation(self.steps_scale) * float(self.lattice.granularity)

    def margin(self, confidence: object = 0.95) -> float:
        """Return the half-width that covers noise and rounding on one coordinate with a probability."""
        steps = laplace_half_width(self.steps_scale, confidence) + Fraction(1, 2)
        return float(steps * self.lattice.granularity)

    def _sampler(self) -> Sampler:
        return discrete_laplace(self.steps_scale)


@mechanisms.register("laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(RealLaplaceNoise):
    """Laplace noise for real numbers, such as sums, on a lattice a million times finer than the noise.

    >>> Laplace(sensitivity=110, epsilon=0.5).scale
    220.0
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        RealLaplaceNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        self._choose_granularity(self.sensitivity / self.epsilon)
        object.__setattr__(self, "steps_scale", self.steps_apart / self.epsilon)

    @property
    def guarantee(self) -> PureDP:
        """Return what a release promises."""
        return PureDP(epsilon=self.epsilon, adjacency=self.adjacency, unit=self.unit)
