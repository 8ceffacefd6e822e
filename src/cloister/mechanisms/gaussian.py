"""Gaussian noise on a lattice, from the L2 sensitivity.

`DiscreteGaussian` adds discrete Gaussian noise to whole numbers and promises zero-concentrated differential privacy
(Canonne, Kamath and Steinke 2020). `Gaussian` takes (epsilon, delta) and real numbers, calibrated exactly (Balle and
Wang 2018) or by the textbook formula, which is proven for epsilon below 1 only.

Privacy of `Gaussian`: claim (epsilon, delta)-DP. Let sigma be what continuous noise needs for neighbors at most s steps
apart. Adding continuous noise of variance sigma**2 and then drawing from the discrete Gaussian of variance 4 centered
there is a post-processing of the continuous mechanism. By Poisson summation the result differs from the discrete
Gaussian of variance sigma**2 + 4 by a factor within 1 ± 2.1 exp(-8 pi**2) per coordinate (about 1e-34). The noise here
has that variance, and epsilon is first reduced by 1e-15, which pays for that factor in up to 1e17 coordinates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from cloister.accounting.events import DiscreteGaussianEvent, Event, GaussianEvent
from cloister.accounting.gaussian import classic_gaussian_multiplier, gaussian_multiplier
from cloister.core import validation
from cloister.core.guarantees import ApproxDP, ZeroConcentratedDP
from cloister.errors import ParameterError
from cloister.mechanisms.additive import IntegerNoise, RealNoise
from cloister.mechanisms.base import mechanisms
from cloister.mechanisms.lattice import steps_apart_l2
from cloister.mechanisms.noise_laws import gaussian_half_width, gaussian_standard_deviation
from cloister.mechanisms.sampling.blocks import Sampler
from cloister.mechanisms.sampling.discrete_gaussian import discrete_gaussian

_SMOOTHING = 4
_SLACK = Fraction(1, 10**15)
_SMALLEST_EPSILON = Fraction(1, 10**9)
_CALIBRATIONS = {"analytic": gaussian_multiplier, "classic": classic_gaussian_multiplier}


@mechanisms.register("discrete_gaussian")
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(IntegerNoise):
    """Discrete Gaussian noise for whole numbers, under zero-concentrated differential privacy.

    >>> DiscreteGaussian(sensitivity=1, rho=0.005).squared_sigma
    Fraction(100, 1)
    """

    rho: Fraction

    def __post_init__(self) -> None:
        IntegerNoise.__post_init__(self)
        object.__setattr__(self, "rho", validation.check_positive(self.rho, name="rho"))

    @property
    def squared_sigma(self) -> Fraction:
        """Return the variance parameter, sensitivity**2 / (2 rho)."""
        return self.sensitivity**2 / (2 * self.rho)

    @property
    def guarantee(self) -> ZeroConcentratedDP:
        """Return what a release promises."""
        return ZeroConcentratedDP(rho=self.rho, adjacency=self.adjacency, unit=self.unit)

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return DiscreteGaussianEvent(squared_sigma=self.squared_sigma, squared_sensitivity=self.sensitivity**2)

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise on one coordinate."""
        return gaussian_standard_deviation(self.squared_sigma)

    def margin(self, confidence: object = 0.95) -> float:
        """Return the half-width that covers the noise on one coordinate with a probability."""
        return float(gaussian_half_width(self.squared_sigma, confidence))

    def _sampler(self) -> Sampler:
        return discrete_gaussian(self.squared_sigma)


@mechanisms.register("gaussian")
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(RealNoise):
    """Gaussian noise for real numbers, under (epsilon, delta)-differential privacy.

    >>> round(Gaussian(sensitivity=1, epsilon=1, delta=1e-5).standard_deviation, 4)
    3.7306
    """

    epsilon: Fraction
    delta: Fraction
    calibration: str = "analytic"
    noise_multiplier: Fraction = field(init=False, default=Fraction(1))
    """sigma over sensitivity of the continuous Gaussian noise that this noise dominates"""

    def __post_init__(self) -> None:
        RealNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", validation.check_delta(self.delta, allow_zero=False))
        validation.check_choice(self.calibration, name="calibration", allowed=_CALIBRATIONS)
        if self.epsilon < _SMALLEST_EPSILON:
            raise ParameterError("epsilon is too small for Gaussian noise.", fix="use epsilon of at least 1e-9.")
        multiplier = _CALIBRATIONS[self.calibration](self.epsilon - _SLACK, self.delta)
        object.__setattr__(self, "noise_multiplier", multiplier)
        self._choose_granularity(self.noise_multiplier * self.sensitivity)

    @property
    def steps_squared_sigma(self) -> Fraction:
        """Return the variance parameter of the noise in lattice steps."""
        apart = steps_apart_l2(self.sensitivity, self.lattice.granularity, self.dimensions)
        return Fraction(math.ceil((apart * self.noise_multiplier) ** 2)) + _SMOOTHING

    @property
    def guarantee(self) -> ApproxDP:
        """Return what a release promises."""
        return ApproxDP(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency, unit=self.unit)

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return GaussianEvent(squared_multiplier=self.noise_multiplier**2)

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise on one coordinate."""
        return gaussian_standard_deviation(self.steps_squared_sigma) * float(self.lattice.granularity)

    def margin(self, confidence: object = 0.95) -> float:
        """Return the half-width that covers noise and rounding on one coordinate with a probability."""
        steps = gaussian_half_width(self.steps_squared_sigma, confidence) + Fraction(1, 2)
        return float(steps * self.lattice.granularity)

    def _sampler(self) -> Sampler:
        return discrete_gaussian(self.steps_squared_sigma)
