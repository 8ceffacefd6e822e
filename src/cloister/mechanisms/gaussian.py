"""Gaussian noise on a lattice, from the L2 sensitivity: by one curator, or in shares by several parties.

`DiscreteGaussian` adds discrete Gaussian noise to whole numbers and promises zero-concentrated differential privacy
(Canonne, Kamath and Steinke 2020). `Gaussian` takes (epsilon, delta) and real numbers, calibrated exactly (Balle and
Wang 2018) or by the textbook formula, which is proven for epsilon below 1 only.

Privacy of `Gaussian`: claim (epsilon, delta)-DP. Let sigma be what continuous noise needs for neighbors at most s steps
apart. Adding continuous noise of variance sigma**2 and then drawing from the discrete Gaussian of variance 4 centered
there is a post-processing of the continuous mechanism. By Poisson summation the result differs from the discrete
Gaussian of variance sigma**2 + 4 by a factor within 1 ± 2.1 exp(-8 pi**2) per coordinate (about 1e-34). The noise here
has that variance, and epsilon is first reduced by 1e-15, which pays for that factor in up to 1e17 coordinates.

`SharedGaussian` is noise that several parties make together, so that nobody knows all of it.

Each of ``shares`` parties adds discrete Gaussian noise to its own whole numbers before they are added up in secret.
Each share is so large that the shares of any ``honest`` of them are enough, whatever the others do or tell.

Privacy of `SharedGaussian`: claim (epsilon, delta)-DP of the sum towards anyone who knows the other shares, for whole
numbers that neighbors move by ``squared_sensitivity`` in squared L2. A sum of k discrete Gaussians of variance t is no
discrete Gaussian. Adding one of variance b to one of variance a gives, at x, ``exp(-x**2 / (2 (a + b)))`` times the sum
over whole y of ``exp(-(y - c)**2 / (2 s))`` with s = a b / (a + b) and a c that depends on x. By Poisson summation that
sum is constant up to a factor between 1 - h and 1 + h with ``h = 2 exp(-2 pi**2 s) + ...``, so that the probabilities
differ from those of the discrete Gaussian of variance a + b by a factor of at most (1 + h) / (1 - h). Here t >= 8, s >=
4 and h < 1.1e-34; the factors of k - 1 additions and of d coordinates multiply. (Kairouz, Liu and Steinke 2021 bound
the same sums, with the same exponents, for concentrated privacy.) Towards neighbors the factor counts twice: with k d
<= 1e16 it takes less than 1e-17 of epsilon, and multiplies delta by less than 1 + 1e-17. The discrete Gaussian of
variance k t dominates continuous noise of variance k t - 4 (see above), which takes another 1e-15 of epsilon at most.
Noise is calibrated to epsilon - 2e-15 and (1 - 1e-12) delta, which pays for all of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from numpy.typing import NDArray

from cloister.accounting.conversions import classic_gaussian_multiplier, gaussian_multiplier
from cloister.accounting.events import DiscreteGaussianEvent, Event, GaussianEvent
from cloister.core import validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, ApproxDP, ZeroConcentratedDP
from cloister.core.random import RandomSource
from cloister.errors import ParameterError
from cloister.mechanisms.base import mechanisms
from cloister.mechanisms.lattice import IntegerNoise, RealNoise, steps_apart_l2
from cloister.mechanisms.sampling.discrete_noise import Sampler, discrete_gaussian
from cloister.mechanisms.step_noise import gaussian_half_width, gaussian_standard_deviation

__all__ = ["SharedGaussian"]


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

    def __init__(
        self,
        *,
        sensitivity: Number,
        rho: Number,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
    ) -> None:
        construct(self, sensitivity=sensitivity, adjacency=adjacency, unit=unit, rho=rho)

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

    def margin(self, confidence: Number = 0.95) -> float:
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

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number,
        delta: Number,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
        dimensions: int = 1,
        granularity: Number | None = None,
        calibration: str = "analytic",
    ) -> None:
        construct(
            self,
            sensitivity=sensitivity,
            adjacency=adjacency,
            unit=unit,
            dimensions=dimensions,
            granularity=granularity,
            epsilon=epsilon,
            delta=delta,
            calibration=calibration,
            noise_multiplier=Fraction(1),
        )

    def __post_init__(self) -> None:
        RealNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", validation.check_delta(self.delta, allow_zero=False))
        validation.check_choice(self.calibration, name="calibration", allowed=_CALIBRATIONS)
        if self.epsilon < _SMALLEST_EPSILON:
            raise ParameterError("epsilon is too small for Gaussian noise.", fix="use epsilon of at least 1e-9.")
        # The slack pays for the step from continuous noise to the lattice.
        multiplier = _CALIBRATIONS[self.calibration](self.epsilon - _SLACK, self.delta)
        object.__setattr__(self, "noise_multiplier", multiplier)
        self._choose_granularity(self.noise_multiplier * self.sensitivity)

    @property
    def steps_squared_sigma(self) -> Fraction:
        """Return the variance parameter of the noise in lattice steps."""
        apart = steps_apart_l2(self.sensitivity, self.lattice.granularity, self.dimensions)
        # Rounding up and smoothing both add to what continuous noise of this multiplier needs.
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

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width that covers noise and rounding on one coordinate with a probability."""
        steps = gaussian_half_width(self.steps_squared_sigma, confidence) + Fraction(1, 2)
        return float(steps * self.lattice.granularity)

    def _sampler(self) -> Sampler:
        return discrete_gaussian(self.steps_squared_sigma)


_LEAST_SHARE = 8
_SHARE_SLACK = Fraction(2, 10**15)
_LESS_DELTA = 1 - Fraction(1, 10**12)
_FINE = 2**40
_MOST = 10**16
_TAIL = 16
"""In standard deviations. Sums of discrete Gaussians are subgaussian: beyond lies less than 2 exp(-128)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedGaussian:
    """Discrete Gaussian noise in shares.

    Attributes:
        squared_share: the variance parameter of each share, in squared steps.
        shares: how many parties add one.
        honest: how many of them are enough.
        event: what the noise of those is for the accountants.

    >>> noise = SharedGaussian.calibrate(
    ...     epsilon=1, delta=1e-6, squared_sensitivity=10**6, dimensions=10, shares=3, colluding=1
    ... )
    >>> noise.honest, round(noise.deviation / 1000, 1)
    (2, 5.2)
    """

    squared_share: int
    shares: int
    honest: int
    event: GaussianEvent

    @classmethod
    def calibrate(
        cls,
        *,
        epsilon: Number,
        delta: Number,
        squared_sensitivity: int,
        dimensions: int,
        shares: int,
        colluding: int,
    ) -> Self:
        """Return the least noise for an (epsilon, delta) that ``colluding`` parties cannot take away.

        Raises:
            ParameterError: if a number is out of range, or everybody colludes.
        """
        loss = validation.check_epsilon(epsilon)
        slack = validation.check_delta(delta, allow_zero=False)
        if loss < _SMALLEST_EPSILON:
            raise ParameterError("epsilon is too small for Gaussian noise.", fix="use epsilon of at least 1e-9.")
        honest = shares - colluding
        if honest < 1 or colluding < 0:
            raise ParameterError(
                f"Of {shares} parties, {colluding} cannot collude: somebody's noise has to stay secret.",
                fix=f"assume at most {max(shares - 1, 0)} that collude.",
            )
        # The proof pays for the factors of this many additions and coordinates, and no more.
        if honest * dimensions > _MOST:
            raise ParameterError("There are too many shares of too many numbers.", fix="release fewer numbers.")
        squared = gaussian_multiplier(loss - _SHARE_SLACK, slack * _LESS_DELTA) ** 2
        squared_multiplier = Fraction(math.ceil(squared * _FINE), _FINE)
        whole = math.ceil(squared_sensitivity * squared_multiplier) + _SMOOTHING
        return cls(
            # The honest shares alone have to reach the whole, so that each rounds up.
            squared_share=max(_LEAST_SHARE, -(-whole // honest)),
            shares=shares,
            honest=honest,
            event=GaussianEvent(squared_multiplier=squared_multiplier),
        )

    @property
    def deviation(self) -> float:
        """Return the standard deviation of all shares together, in steps."""
        return math.sqrt(self.shares * self.squared_share)

    @property
    def largest(self) -> int:
        """Return what all shares together stay below, but for a probability under 2 exp(-128)."""
        return _TAIL * (math.isqrt(self.shares * self.squared_share) + 1)

    def draw(self, source: RandomSource, count: int) -> NDArray[Any]:
        """Return one party's share of the noise for so many numbers."""
        return discrete_gaussian(Fraction(self.squared_share)).draw(source, count)
