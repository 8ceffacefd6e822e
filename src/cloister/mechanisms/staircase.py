"""Staircase noise for one number: pure differential privacy with the least expected absolute error.

Geng and Viswanath (2016). Not a kind of Laplace noise: the density is constant on steps and falls by exp(-epsilon)
over each sensitivity. Here on a lattice with n steps per sensitivity, of which the first m are high:
``Pr[k]`` is proportional to ``exp(-epsilon * (abs(k) // n))``, times exp(-epsilon) where ``abs(k) % n >= m``.

Privacy: claim epsilon-DP. The weight depends on abs(k), does not increase, and falls by exactly exp(-epsilon) over n
steps; shifting by at most n steps therefore changes it by at most a factor exp(epsilon).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import random, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency
from cloister.core.random import RandomSource
from cloister.errors import ParameterError
from cloister.mechanisms.base import PurePromise, mechanisms
from cloister.mechanisms.lattice import RealNoise, steps_apart_l1
from cloister.mechanisms.sampling.discrete_noise import Sampler, Symmetric, geometric
from cloister.mechanisms.sampling.inversion import FixedPointInterval, bernoulli

_FITS = 2**50


class _Magnitudes:
    """Samples the one-sided law: a stair, its high or low part, and a place in that part."""

    def __init__(self, epsilon: Fraction, steps: int, high: int) -> None:
        self._stair = geometric(1 / epsilon)
        self._is_wide = steps / epsilon >= _FITS
        self._steps, self._high, self._low = steps, high, steps - high
        self._is_low = bernoulli(lambda bits: self._low_probability(epsilon, bits))

    def draw(self, source: RandomSource, count: int) -> NDArray[Any]:
        """Return ``count`` independent draws."""
        # All stairs have the same shape, so that the stair, the part and the place in it are independent.
        is_low = self._is_low.draw(source, count).astype(np.bool_)
        in_high = random.integers_below(source, self._high, count)
        in_low = self._high + random.integers_below(source, self._low, count)
        stairs: NDArray[Any] = self._stair.draw(source, count)
        # Stairs times their width could pass 64 bits.
        if self._is_wide:
            stairs = stairs.astype(object)
        return np.asarray(stairs * self._steps + np.where(is_low, in_low, in_high))

    def _low_probability(self, epsilon: Fraction, bits: int) -> FixedPointInterval:
        falling = FixedPointInterval.exp_of_minus(epsilon, bits)
        low = FixedPointInterval(falling.low * self._low, falling.high * self._low, bits)
        return low.over(FixedPointInterval.of(Fraction(self._high), bits) + low)


@lru_cache(maxsize=64)
def staircase(epsilon: Fraction, steps: int, high: int) -> Symmetric:
    """Return the sampler of an epsilon, a number of steps per stair and how many of them are high."""
    return Symmetric(_Magnitudes(epsilon, steps, high))


@mechanisms.register("staircase")
@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(PurePromise, RealNoise):
    """Staircase noise for one real number; ``gamma`` is the share of the high part, by default the best one."""

    epsilon: Fraction
    gamma: Fraction | None = None
    high_steps: int = field(init=False, default=1)

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
        dimensions: int = 1,
        granularity: Number | None = None,
        gamma: Number | None = None,
    ) -> None:
        construct(
            self,
            sensitivity=sensitivity,
            adjacency=adjacency,
            unit=unit,
            dimensions=dimensions,
            granularity=granularity,
            epsilon=epsilon,
            gamma=gamma,
            high_steps=1,
        )

    def __post_init__(self) -> None:
        RealNoise.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        if self.dimensions != 1 or self.granularity is not None:
            raise ParameterError(
                "Staircase noise is for a single number and chooses its own lattice.",
                fix="leave out dimensions and granularity; use Laplace for vectors.",
            )
        # A large epsilon would overflow exp, and its best share is far below one lattice step anyway.
        best = Fraction(1 / (1 + math.exp(min(float(self.epsilon), 80.0) / 2)))
        gamma = best if self.gamma is None else validation.check_probability(self.gamma, name="gamma")
        object.__setattr__(self, "gamma", gamma)
        self._choose_granularity(self.sensitivity / self.epsilon)
        # Each part keeps at least one step, since a place is drawn in both.
        high = min(max(round(gamma * self.steps_apart), 1), self.steps_apart - 1)
        object.__setattr__(self, "high_steps", high)

    @property
    def steps_apart(self) -> int:
        """Return how many lattice steps neighbors are apart at most: the width of a stair."""
        return steps_apart_l1(self.sensitivity, self.lattice.granularity, 1)

    @property
    def _stair_width(self) -> float:
        return float(self.steps_apart * self.lattice.granularity)

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise."""
        # Stair and place are independent: the second moment of their sum needs only the moments of each.
        share, fall = self.high_steps / self.steps_apart, math.exp(-float(self.epsilon))
        high, low = share, (1 - share) * fall
        mean = fall / (1 - fall)
        second = fall * (1 + fall) / (1 - fall) ** 2
        middle = (high * share / 2 + low * (share + (1 - share) / 2)) / (high + low)
        square = (high * share**2 / 3 + low * (1 - share**3) / (3 * (1 - share))) / (high + low)
        return self._stair_width * math.sqrt(second + 2 * mean * middle + square)

    def margin(self, confidence: Number = 0.95) -> float:
        """Return a half-width that covers the noise with a probability: where the stair reached has that coverage."""
        outside = 1 - float(validation.check_confidence(confidence))
        share, fall = self.high_steps / self.steps_apart, math.exp(-float(self.epsilon))
        stair = max(0, math.floor(math.log(outside) / math.log(fall)))
        # The noise gets beyond so many stairs with probability fall**stair; the rest is looked for within the next.
        left = (1 - outside / fall**stair) / (1 - fall)
        high, low = share, (1 - share) * fall
        within = left * (high + low)
        place = within if within <= high else share + (within - high) / fall
        return self._stair_width * (stair + min(1.0, place)) + 2 * float(self.lattice.granularity)

    def _sampler(self) -> Sampler:
        return staircase(self.epsilon, self.steps_apart, self.high_steps)
