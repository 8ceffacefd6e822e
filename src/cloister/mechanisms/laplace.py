"""Laplace noise on a lattice: pure or approximate differential privacy from the L1 sensitivity, also within bounds.

Dwork, McSherry, Nissim and Smith (2006) for the mechanism, Ghosh, Roughgarden and Sundararajan (2012) for its discrete
form, exact on integers. Floating-point Laplace noise leaks through its low-order bits (Mironov 2012), so none is here.

Privacy of `Laplace` and `DiscreteLaplace`: claim epsilon-DP under the stated relation. Neighbors move the vector of
lattice steps by at most n steps in L1; the noise has ``Pr[k]`` proportional to ``exp(-abs(k) * epsilon / n)``
independently per coordinate, so the ratio of the probabilities of any output is at most exp(epsilon).

`ApproximateLaplace` is Laplace noise under (epsilon, delta): three calibrations, of which the tight one is exact for a
single number.

- ``torra``: scale = sensitivity / (epsilon - ln(1 - delta)) (Torra, proposition 5.1), valid, not tight;
- ``generic``: scale = sensitivity / ln((exp(epsilon) + delta) / (1 - delta)), valid for any pure mechanism;
- ``tight``: scale = sensitivity / (epsilon - 2 ln(1 - delta)), from the privacy profile of one Laplace number.

Privacy of `ApproximateLaplace`: the first two are pure at a larger epsilon0 with exp(epsilon0) <= (exp(epsilon) +
delta) / (1 - delta), which implies (epsilon, delta)-DP for any mechanism. For the tight one, the delta of the lattice
noise is evaluated with certified bounds, and the scale is widened until it is not above the delta promised.

For a number that must stay within public bounds there are two. `ClampedLaplace` adds Laplace noise and clamps:
post-processing, no change of scale, a lump of probability at each end. `TruncatedLaplace` draws from the Laplace law
restricted to the bounds (in law the same as redrawing until inside). Done with the ordinary scale that is *not*
epsilon-private: on [0, 10] with sensitivity 1 it has epsilon 1.48985 instead of 1, because the normalization depends on
the private value. The scale that is right (Holohan, Antonatos, Braghin and Mac Aonghusa 2020) solves ``b = sensitivity
/ (epsilon - ln dC(b) - ln(1 - delta))``.

Privacy of `TruncatedLaplace`: neighbors at most n steps apart give each output probabilities within
``exp(n/s) * C(n) / C(0)``, C(x) being the mass inside the bounds around x; the extreme pair is (0, n) since C is
log-concave and exp(m/s) C(m) increases in m. The scale is widened until a certified bound of that is small enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import DiscreteLaplaceEvent, Event, PureEvent
from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Interval, Number
from cloister.core.guarantees import Adjacency, ApproxDP, DifferentialPrivacy, PureDP
from cloister.core.random import RandomSource, RandomState
from cloister.errors import ParameterError
from cloister.mechanisms.base import NoisyAnswer, mechanisms, open_source, private_reals
from cloister.mechanisms.lattice import IntegerNoise, RealNoise, steps_apart_l1
from cloister.mechanisms.sampling.discrete_noise import Sampler, discrete_laplace
from cloister.mechanisms.sampling.inversion import FixedPointInterval, search
from cloister.mechanisms.step_noise import laplace_half_width, laplace_standard_deviation


@mechanisms.register("discrete_laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(IntegerNoise):
    """Discrete Laplace ("geometric") noise for whole numbers, such as counts.

    >>> count = DiscreteLaplace(sensitivity=1, epsilon=0.1)
    >>> count.scale
    Fraction(10, 1)
    """

    epsilon: Fraction

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
    ) -> None:
        construct(self, sensitivity=sensitivity, adjacency=adjacency, unit=unit, epsilon=epsilon)

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

    def margin(self, confidence: Number = 0.95) -> float:
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

    def margin(self, confidence: Number = 0.95) -> float:
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

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
        dimensions: int = 1,
        granularity: Number | None = None,
    ) -> None:
        construct(
            self,
            sensitivity=sensitivity,
            adjacency=adjacency,
            unit=unit,
            dimensions=dimensions,
            granularity=granularity,
            steps_scale=Fraction(1),
            epsilon=epsilon,
        )

    def __post_init__(self) -> None:
        RealLaplaceNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        # The lattice comes first: neighbors are a whole number of its steps apart, and the scale is made for those.
        self._choose_granularity(self.sensitivity / self.epsilon)
        object.__setattr__(self, "steps_scale", self.steps_apart / self.epsilon)

    @property
    def guarantee(self) -> PureDP:
        """Return what a release promises."""
        return PureDP(epsilon=self.epsilon, adjacency=self.adjacency, unit=self.unit)


MODES = ("tight", "generic", "torra")
_SLIGHTLY_WIDER = Fraction(2**24 + 1, 2**24)


def approximate_laplace_scale(*, sensitivity: Number, epsilon: Number, delta: Number, mode: str = "tight") -> Fraction:
    """Return the scale of continuous Laplace noise for (epsilon, delta), rounded up.

    >>> round(float(approximate_laplace_scale(sensitivity=1, epsilon=0.5, delta=0.1, mode="torra")), 6)
    1.651908
    """
    loss, slack = validation.check_epsilon(epsilon), validation.check_delta(delta)
    # Every logarithm is rounded down: the scale divides by their sum and so is rounded up.
    kept = exact.log_bounds(1 / (1 - slack))[0]
    match validation.check_choice(mode, name="mode", allowed=MODES):
        case "torra":
            total = loss + kept
        case "generic":
            total = exact.log_bounds((exact.exp_bounds(loss)[0] + slack) / (1 - slack))[0]
        case _:
            total = loss + 2 * kept
    return validation.check_positive(sensitivity, name="sensitivity") / total


def discrete_laplace_delta(*, scale: Fraction, steps_apart: int, epsilon: Fraction) -> Fraction:
    """Return an upper bound of the delta at epsilon of discrete Laplace noise on one number.

    With K the last step whose loss exceeds epsilon, delta = 1 - (a**(K+1) + exp(epsilon) a**(n-K)) / (1 + a).
    """
    if steps_apart / scale <= epsilon:
        return Fraction(0)
    # A step whose loss equals epsilon adds nothing to delta, hence strictly below.
    last = min(math.ceil((steps_apart - epsilon * scale) / 2) - 1, steps_apart - 1)
    # Both terms are subtracted: rounded down, over a denominator rounded up, they leave an upper bound of delta.
    near = exact.exp_bounds(-(last + 1) / scale)[0]
    far = exact.exp_bounds(epsilon - (steps_apart - last) / scale)[0]
    return 1 - (near + far) / (1 + exact.exp_bounds(-1 / scale)[1])


@mechanisms.register("approximate_laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateLaplace(RealLaplaceNoise):
    """Laplace noise for real numbers under (epsilon, delta); the tight mode is for a single number only."""

    epsilon: Fraction
    delta: Fraction
    mode: str = "tight"

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
        mode: str = "tight",
    ) -> None:
        construct(
            self,
            sensitivity=sensitivity,
            adjacency=adjacency,
            unit=unit,
            dimensions=dimensions,
            granularity=granularity,
            steps_scale=Fraction(1),
            epsilon=epsilon,
            delta=delta,
            mode=mode,
        )

    def __post_init__(self) -> None:
        RealLaplaceNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", validation.check_delta(self.delta, allow_zero=False))
        if self.mode == "tight" and self.dimensions > 1:
            raise ParameterError(
                "The tight calibration is proven for a single number only.", fix='use mode="generic" for vectors.'
            )
        scale = approximate_laplace_scale(
            sensitivity=self.sensitivity, epsilon=self.epsilon, delta=self.delta, mode=self.mode
        )
        self._choose_granularity(scale)
        object.__setattr__(self, "steps_scale", self._widen(scale / self.sensitivity * self.steps_apart))

    @property
    def guarantee(self) -> ApproxDP:
        """Return what a release promises."""
        return ApproxDP(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency, unit=self.unit)

    def _widen(self, scale: Fraction) -> Fraction:
        """Return the scale, wider by as little as makes the lattice's own delta small enough."""
        # Few binary digits keep the exact sampler quick, and rounding up only adds noise.
        scale = Fraction(math.ceil(scale * 2**20), 2**20)
        while self.mode == "tight" and self._delta_at(scale) > self.delta:
            scale = Fraction(math.ceil(scale * _SLIGHTLY_WIDER * 2**20), 2**20)
        return scale

    def _delta_at(self, scale: Fraction) -> Fraction:
        return discrete_laplace_delta(scale=scale, steps_apart=self.steps_apart, epsilon=self.epsilon)


_MOST_STEPS = 2**14
_WIDER = Fraction(2**16 + 1, 2**16)


def truncated_laplace_scale(*, bounds: object, sensitivity: Number, epsilon: Number, delta: Number = 0) -> float:
    """Return the scale at which the continuous Laplace law restricted to bounds is (epsilon, delta)-private.

    >>> round(truncated_laplace_scale(bounds=(0, 10), sensitivity=1, epsilon=1), 6)
    1.61156
    """
    low, high = (float(end) for end in validation.check_bounds(bounds))
    change = float(validation.check_positive(sensitivity, name="sensitivity"))
    if change > high - low:
        raise ParameterError("The sensitivity is larger than the bounds are wide.", fix="use sensitivity <= width.")
    total = float(validation.check_epsilon(epsilon)) - math.log1p(-float(validation.check_delta(delta)))

    def inside(place: float, scale: float) -> float:
        return 1 - (math.exp(-place / scale) + math.exp(-(high - low - place) / scale)) / 2

    # The excess epsilon falls as the scale grows: bisect between a scale too small and one that is certainly enough.
    too_small, enough = change / total, 2 * change / total
    for _ in range(200):
        scale = (too_small + enough) / 2
        excess = change / scale + math.log(inside(change, scale) / inside(0.0, scale)) - total
        too_small, enough = (scale, enough) if excess > 0 else (too_small, scale)
    return enough


@mechanisms.register("clamped_laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClampedLaplace(Laplace):
    """Laplace noise, the answer clamped to public bounds."""

    bounds: tuple[Fraction, Fraction]

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number,
        bounds: Interval,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
        dimensions: int = 1,
        granularity: Number | None = None,
    ) -> None:
        construct(
            self,
            sensitivity=sensitivity,
            adjacency=adjacency,
            unit=unit,
            dimensions=dimensions,
            granularity=granularity,
            steps_scale=Fraction(1),
            epsilon=epsilon,
            bounds=bounds,
        )

    def __post_init__(self) -> None:
        Laplace.__post_init__(self)
        object.__setattr__(self, "bounds", validation.check_bounds(self.bounds))

    def _from_steps(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        low, high = (float(end) for end in self.bounds)
        return np.asarray(np.clip(self.lattice.values(steps), low, high))


@mechanisms.register("truncated_laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedLaplace:
    """One number from the Laplace law restricted to public bounds, with the scale that this needs."""

    bounds: tuple[Fraction, Fraction]
    sensitivity: Fraction
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "row"
    granularity: Fraction = field(init=False, default=Fraction(1))
    steps_scale: Fraction = field(init=False, default=Fraction(1))

    def __init__(
        self,
        *,
        bounds: Interval,
        sensitivity: Number,
        epsilon: Number,
        delta: Number = 0,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
    ) -> None:
        construct(
            self,
            bounds=bounds,
            sensitivity=sensitivity,
            epsilon=epsilon,
            delta=delta,
            adjacency=adjacency,
            unit=unit,
            granularity=Fraction(1),
            steps_scale=Fraction(1),
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", validation.check_bounds(self.bounds))
        object.__setattr__(self, "sensitivity", validation.check_positive(self.sensitivity, name="sensitivity"))
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", validation.check_delta(self.delta))
        scale = truncated_laplace_scale(
            bounds=self.bounds, sensitivity=self.sensitivity, epsilon=self.epsilon, delta=self.delta
        )
        # With a whole number of steps between them, both bounds are points of the lattice.
        object.__setattr__(self, "granularity", self._width() / _MOST_STEPS)
        object.__setattr__(self, "steps_scale", self._widen(exact.upper(scale) / self.granularity))

    @property
    def scale(self) -> float:
        """Return the scale of the law before it is restricted."""
        return float(self.steps_scale * self.granularity)

    @property
    def guarantee(self) -> DifferentialPrivacy:
        """Return what a release promises."""
        if self.delta:
            return ApproxDP(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency, unit=self.unit)
        return PureDP(epsilon=self.epsilon, adjacency=self.adjacency, unit=self.unit)

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants: pure at epsilon - ln(1 - delta)."""
        return PureEvent(epsilon=self._pure_epsilon(rounded=1))

    @property
    def standard_deviation(self) -> float:
        """Return an upper bound of the standard deviation of the error: that of the unrestricted law."""
        return math.sqrt(2) * self.scale

    def margin(self, confidence: Number = 0.95) -> float:
        """Return a half-width that covers the error with a probability, wherever the value lies in the bounds."""
        outside = 1 - float(validation.check_confidence(confidence))
        return min(float(self._width()), self.scale * math.log(1 / outside) + float(self.granularity))

    def release(self, value: object, *, random_state: RandomState = None) -> NoisyAnswer[float]:
        """Return one number from the restricted law around the value, which is first clamped to the bounds."""
        source, guarantee = open_source(random_state, self.guarantee)
        step = self._draw(source, self._step_of(value))
        answer = float(self.bounds[0] + step * self.granularity)
        return NoisyAnswer(value=answer, guarantee=guarantee, mechanism=self, event=self.event)

    def _width(self) -> Fraction:
        return self.bounds[1] - self.bounds[0]

    def _steps_apart(self) -> int:
        return exact.ceil_div(self.sensitivity, self.granularity)

    def _pure_epsilon(self, *, rounded: int) -> Fraction:
        # The event states this rounded up, the noise is made for it rounded down: the gap is on the safe side.
        return self.epsilon + (exact.log_bounds(1 / (1 - self.delta))[rounded] if self.delta else 0)

    def _widen(self, scale: Fraction) -> Fraction:
        scale = Fraction(math.ceil(scale * 2**20), 2**20)
        limit = exact.exp_bounds(self._pure_epsilon(rounded=0))[0]
        while self._largest_ratio(scale) > limit:
            scale = Fraction(math.ceil(scale * _WIDER * 2**20), 2**20)
        return scale

    def _largest_ratio(self, scale: Fraction) -> Fraction:
        """Return an upper bound of exp(n/s) * C(n) / C(0), with C(x) = 1 + a - a**(x+1) - a**(N-x+1)."""
        apart = min(self._steps_apart(), _MOST_STEPS)
        ratio = exact.exp_bounds(-1 / scale)

        def mass(place: int, side: int) -> Fraction:
            # What is subtracted rounds the other way.
            ends = [exact.exp_bounds(-exponent / scale)[1 - side] for exponent in (place + 1, _MOST_STEPS - place + 1)]
            return 1 + ratio[side] - sum(ends)

        return exact.exp_bounds(apart / scale)[1] * mass(apart, 1) / mass(0, 0)

    def _step_of(self, value: object) -> int:
        (private,) = private_reals(value, dimensions=1).ravel().tolist()
        low, high = self.bounds
        clamped = min(max(Fraction(private), low), high)
        # Half a step goes up, as on every lattice here: neighbors stay within the ceiling of their distance.
        return math.floor((clamped - low) / self.granularity + Fraction(1, 2))

    def _draw(self, source: RandomSource, place: int) -> int:
        """Return one step from 0 .. N with weights a**abs(step - place)."""

        @cache
        def power(exponent: int, bits: int) -> FixedPointInterval:
            return FixedPointInterval.exp_of_minus(exponent / self.steps_scale, bits)

        def weight(step: int, bits: int) -> FixedPointInterval:
            """Return the weight of the steps up to one, times 1 - a."""
            if step < place:
                return power(place - step, bits).minus(power(place + 1, bits))
            both = FixedPointInterval.of(Fraction(1), bits) + power(1, bits)
            return both.minus(power(place + 1, bits) + power(step - place + 1, bits))

        def cumulative(step: int, bits: int) -> FixedPointInterval:
            return weight(step, bits).over(weight(_MOST_STEPS, bits))

        # A table of 2**14 thresholds for a single draw would take longer than bisection, which computes about 14 of
        # them.
        return search(source, cumulative, _MOST_STEPS)
