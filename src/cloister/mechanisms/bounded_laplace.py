"""Laplace noise for a number that must stay within public bounds.

`ClampedLaplace` adds Laplace noise and clamps: post-processing, no change of scale, a lump of probability at each end.
`TruncatedLaplace` draws from the Laplace law restricted to the bounds (in law the same as redrawing until inside).
Done with the ordinary scale that is *not* epsilon-private: on [0, 10] with sensitivity 1 it has epsilon 1.48985 instead
of 1, because the normalization depends on the private value. The scale that is right (Holohan, Antonatos, Braghin and
Mac Aonghusa 2020) solves ``b = sensitivity / (epsilon - ln dC(b) - ln(1 - delta))``.

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

from cloister.accounting.events import Event, PureEvent
from cloister.core import exact, validation
from cloister.core.guarantees import Adjacency, ApproxDP, DifferentialPrivacy, PureDP
from cloister.core.random import RandomSource, RandomState
from cloister.errors import ParameterError
from cloister.mechanisms.base import NoisyAnswer, mechanisms, open_source, private_reals
from cloister.mechanisms.laplace import Laplace
from cloister.mechanisms.sampling.fixed import Interval
from cloister.mechanisms.sampling.inversion import search

_MOST_STEPS = 2**14
_WIDEN = Fraction(2**16 + 1, 2**16)


def truncated_laplace_scale(*, bounds: object, sensitivity: object, epsilon: object, delta: object = 0) -> float:
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", validation.check_bounds(self.bounds))
        object.__setattr__(self, "sensitivity", validation.check_positive(self.sensitivity, name="sensitivity"))
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", validation.check_delta(self.delta))
        scale = truncated_laplace_scale(
            bounds=self.bounds, sensitivity=self.sensitivity, epsilon=self.epsilon, delta=self.delta
        )
        object.__setattr__(self, "granularity", self._width() / _MOST_STEPS)
        object.__setattr__(self, "steps_scale", self._widened(exact.upper(scale) / self.granularity))

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

    def margin(self, confidence: object = 0.95) -> float:
        """Return a half-width that covers the error with a probability, wherever the value lies in the bounds."""
        outside = 1 - float(validation.check_confidence(confidence))
        return min(float(self._width()), self.scale * math.log(1 / outside) + float(self.granularity))

    def release(self, value: object, *, random_state: RandomState = None) -> NoisyAnswer:
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
        return self.epsilon + (exact.log_bounds(1 / (1 - self.delta))[rounded] if self.delta else 0)

    def _widened(self, scale: Fraction) -> Fraction:
        scale = Fraction(math.ceil(scale * 2**20), 2**20)
        limit = exact.exp_bounds(self._pure_epsilon(rounded=0))[0]
        while self._largest_ratio(scale) > limit:
            scale = Fraction(math.ceil(scale * _WIDEN * 2**20), 2**20)
        return scale

    def _largest_ratio(self, scale: Fraction) -> Fraction:
        """Return an upper bound of exp(n/s) * C(n) / C(0), with C(x) = 1 + a - a**(x+1) - a**(N-x+1)."""
        apart = min(self._steps_apart(), _MOST_STEPS)
        ratio = exact.exp_bounds(-1 / scale)

        def mass(place: int, side: int) -> Fraction:
            ends = [exact.exp_bounds(-exponent / scale)[1 - side] for exponent in (place + 1, _MOST_STEPS - place + 1)]
            return 1 + ratio[side] - sum(ends)

        return exact.exp_bounds(apart / scale)[1] * mass(apart, 1) / mass(0, 0)

    def _step_of(self, value: object) -> int:
        (private,) = private_reals(value, dimensions=1).ravel().tolist()
        low, high = self.bounds
        clamped = min(max(Fraction(private), low), high)
        return math.floor((clamped - low) / self.granularity + Fraction(1, 2))

    def _draw(self, source: RandomSource, place: int) -> int:
        """Return one step from 0 .. N with weights a**abs(step - place)."""

        @cache
        def power(exponent: int, bits: int) -> Interval:
            return Interval.exp_of_minus(exponent / self.steps_scale, bits)

        def weight(step: int, bits: int) -> Interval:
            """Return the weight of the steps up to one, times 1 - a."""
            if step < place:
                return power(place - step, bits).minus(power(place + 1, bits))
            both = Interval.of(Fraction(1), bits) + power(1, bits)
            return both.minus(power(place + 1, bits) + power(step - place + 1, bits))

        def cumulative(step: int, bits: int) -> Interval:
            return weight(step, bits).over(weight(_MOST_STEPS, bits))

        return search(source, cumulative, _MOST_STEPS)
