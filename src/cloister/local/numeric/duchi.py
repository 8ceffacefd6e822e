"""Duchi's protocol: a single bit about a number, likelier to be 1 for larger ones; for several, one for each, together.

Duchi, Jordan and Wainwright (2018), in the form of Wang et al. (2019): for t in [-1, 1] the bit is 1 with probability
``1/2 + t (e - 1) / (2 e + 2)``, where e = exp(epsilon). Read as +B or -B with ``B = (e + 1) / (e - 1)``, it is unbiased
with variance ``B**2 - t**2``. No other protocol has a smaller worst case at small epsilons.

Privacy: claim epsilon-LDP. A 1 has probability between T0 / 2**64 at the lower bound and T1 / 2**64 = 1 - T0 / 2**64
at the upper one, a 0 the rest; T0 is rounded up, so that both ratios are at most ``T1 / T0 <= exp(epsilon)``.

Several numbers: the same authors, corrected for even dimensions. Each number t in [-1, 1] is rounded at random to a
sign, +1 with probability (1 + t) / 2, which gives a corner v of the cube. The report is a corner that agrees with v in
more than half of its signs with a certain probability, else one that does not; uniformly among the corners of either
half. With d numbers there are C corners in the first half, ``2**(d-1)``, less half of the middle binomial coefficient
when d is even, and its probability is ``e C / ((e - 1) C + 2**d)`` with e = exp(epsilon). The printed versions take
``e / (e + 1)``, or put ties into both halves, which is right for odd d only: two numbers then have epsilon 2.0986 or
1.3133 in place of 1. Signs are read as +B or -B, ``B = ((e - 1) C + 2**d) / ((e - 1) binomial(d-1, floor(d/2)))``.

A uniform corner of a half is a uniform set of at least k agreeing (or disagreeing) places, found from a uniform rank by
counting; exact up to 60 numbers.

Privacy of several numbers: claim epsilon-LDP. Given v, a corner of the first half has probability P / C and one of the
other (1 - P) / (2**d - C); the threshold of P is rounded down so that their ratio is at most exp(epsilon). Given the
numbers, the probability of a report is an average of the two, and it reaches both when all numbers are at their bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from math import comb, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.random import Words
from cloister.errors import ParameterError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Bits, Integer, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.numeric._bounds import STEPS, Floats
from cloister.local.numeric.base import MeanProtocol, VectorProtocol
from cloister.local.protocol import lie_threshold, protocols

__all__ = ["MOST_DIMENSIONS", "Bit", "Duchi", "DuchiVector", "subsets", "uniform_subset"]


_HALF = np.uint64(32)


@dataclass(frozen=True)
class Bit:
    """A coin whose threshold rises evenly from ``low`` at step 0 to ``high`` at the last step."""

    steps: int
    low: int
    high: int

    @classmethod
    def of(cls, epsilon: Fraction, steps: int) -> Bit:
        """Return the coin of an epsilon."""
        low = lie_threshold(epsilon)
        return cls(steps, low, CERTAIN - low)

    def thresholds(self, codes: Codes) -> Words:
        """Return ``low + floor(t (high - low) / steps)`` for each step t, exactly: by halves of 32 bits."""
        steps, rise = codes.astype(np.uint64), self.high - self.low
        count, upper, lower = np.uint64(self.steps), np.uint64(rise >> 32), np.uint64(rise & (2**32 - 1))
        # A long division by halves: no intermediate number reaches 2**64, as the plain product would.
        whole, rest = np.divmod(steps * upper, count)
        return np.asarray(np.uint64(self.low) + (whole << _HALF) + ((rest << _HALF) + steps * lower) // count)

    def toss(self, codes: Codes, draws: Draws) -> Codes:
        """Return a bit for each step: one toss."""
        return draws.chances(self.thresholds(codes), len(codes)).astype(np.int64)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return high / low."""
        return Fraction(self.high, self.low)

    def places(self, bits: Codes) -> Floats:
        """Return the unbiased reading of each bit, in steps."""
        rise = self.high - self.low
        readings = [float(Fraction(-self.low * self.steps, rise)), float(Fraction(self.high * self.steps, rise))]
        return np.array(readings)[bits]

    def variance(self, step: int) -> Fraction:
        """Return the variance of a reading for a true step, in squared steps."""
        one = Fraction(self.low + step * (self.high - self.low) // self.steps, CERTAIN)
        return Fraction(self.steps * CERTAIN, self.high - self.low) ** 2 * one * (1 - one)

    def params(self) -> dict[str, Any]:
        """Return what a device needs, as JSON-ready values."""
        return {"steps": self.steps, "low": str(self.low), "high": str(self.high)}


@protocols.register("duchi")
class Duchi(MeanProtocol):
    """One bit about a number: the best mean at small epsilons.

    >>> protocol = Duchi(bounds=(0, 100), epsilon=1)
    >>> reports = protocol.randomize([20, 35, 50] * 1000)
    >>> protocol.estimate(reports).reports
    3000
    """

    name = "duchi"
    in_browsers = True

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = STEPS) -> None:
        super().__init__(bounds=bounds, epsilon=epsilon, steps=steps)
        self.bit = Bit.of(self.epsilon, self.grid.steps)
        self.output_space = OutputSpace((Integer("y", 0, 1),))
        self._check_epsilon()

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the ratio at the two bounds."""
        return self.bit.likelihood_ratio

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: one toss each."""
        return self.output_space.rows(y=self.bit.toss(codes, draws))

    def _places(self, payload: Payload) -> Floats:
        return self.bit.places(payload["y"])

    def _step_variance(self, step: int) -> Fraction:
        return self.bit.variance(step)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return log(self.bit.high / CERTAIN)

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        low, high = plausibility.bits_between(self.bit)
        yield partial(plausibility.bits, low=low, high=high)

    def _params(self) -> dict[str, Any]:
        return self.bit.params()


MOST_DIMENSIONS = 60
"""So many that ranks of corners are exact uniform integers."""


@cache
def subsets(size: int, least: int) -> int:
    """Return how many subsets of so many places have at least so many of them."""
    return sum(comb(size, count) for count in range(max(least, 0), size + 1))


def uniform_subset(ranks: Codes, size: int, least: int) -> NDArray[np.bool_]:
    """Return for each rank below ``subsets(size, least)`` its own subset, a row of places.

    At each place, subsets with the place come first; how many these are depends on how many are still needed.
    """
    chosen = np.empty((len(ranks), size), dtype=np.bool_)
    rest, needed = ranks.copy(), np.full(len(ranks), least)
    for place in range(size):
        after = size - place - 1
        with_it = np.array([subsets(after, need - 1) for need in range(least + 1)], dtype=np.int64)[needed]
        chosen[:, place] = rest < with_it
        rest -= np.where(chosen[:, place], 0, with_it)
        # Once enough places are chosen, every further one is free and the need stays at zero.
        needed = np.maximum(needed - chosen[:, place], 0)
    return chosen


@protocols.register("duchi_vector")
class DuchiVector(VectorProtocol):
    """One bit about each of several numbers: good means at small epsilons.

    >>> protocol = DuchiVector(bounds=[(0, 100), (0, 1)], epsilon=1)
    >>> reports = protocol.randomize([[20, 0.5], [35, 0.25]] * 500)
    >>> len(protocol.estimate(reports))
    2
    """

    name = "duchi_vector"

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = STEPS) -> None:
        super().__init__(bounds=bounds, epsilon=epsilon, steps=steps)
        if self.dimensions > MOST_DIMENSIONS:
            raise ParameterError(
                f"This protocol takes at most {MOST_DIMENSIONS} numbers of one person.", fix="use PiecewiseVector."
            )
        # The halves differ in size for even dimensions; weighed by it, single corners keep the ratio exp(epsilon).
        self.truth = CERTAIN - lie_threshold(self.epsilon, Fraction(self.disagreeing, self.agreeing))
        self.output_space = OutputSpace((Bits("y", self.dimensions),))
        self._check_epsilon()

    @property
    def agreeing(self) -> int:
        """Return how many corners agree with a given one in more than half of their signs."""
        return subsets(self.dimensions, self.dimensions // 2 + 1)

    @property
    def disagreeing(self) -> int:
        """Return how many do not."""
        return subsets(self.dimensions, (self.dimensions + 1) // 2)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return how much likelier an agreeing corner is than another."""
        return Fraction(self.truth, self.agreeing) / Fraction(CERTAIN - self.truth, self.disagreeing)

    @cached_property
    def size(self) -> Fraction:
        """Return B: a bit is read as +B or -B, in bounds of [-1, 1]."""
        truth, middle = Fraction(self.truth, CERTAIN), comb(self.dimensions - 1, self.dimensions // 2)
        return 1 / (middle * (truth / self.agreeing - (1 - truth) / self.disagreeing))

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return reports: a sign for each number, a toss whether to agree, then the rank of the corner."""
        # A uniform step is below the number's own with probability (1 + t) / 2: unbiased rounding, in integers alone.
        signs = draws.below(self.steps, codes.size).reshape(codes.shape) < codes
        agrees = draws.chances(self.truth, len(codes))
        same = np.empty(codes.shape, dtype=np.bool_)
        near, far, d = np.flatnonzero(agrees), np.flatnonzero(~agrees), self.dimensions
        same[near] = uniform_subset(draws.below(self.agreeing, near.size), d, d // 2 + 1)
        # A corner of the other half disagrees in at least half of its places: the drawn set is where it differs.
        same[far] = ~uniform_subset(draws.below(self.disagreeing, far.size), d, (d + 1) // 2)
        return self.output_space.rows(y=np.packbits(signs == same, axis=1, bitorder="little"))

    def _places(self, payload: Payload) -> Floats:
        return np.stack(list(self._columns(payload)), axis=1)

    def _columns(self, payload: Payload) -> Iterator[Floats]:
        bits = np.unpackbits(payload["y"], axis=1, count=self.dimensions, bitorder="little")
        readings = self.steps / 2 * (1 + float(self.size) * np.array([-1.0, 1.0]))
        return (readings[column] for column in bits.T)

    def _step_variance(self, step: int) -> Fraction:
        return Fraction(self.steps, 2) ** 2 * (self.size**2 - (Fraction(2 * step, self.steps) - 1) ** 2)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        near = Fraction(self.truth, CERTAIN * self.agreeing)
        return log(max(near, Fraction(CERTAIN - self.truth, CERTAIN * self.disagreeing)))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        yield partial(plausibility.corners, dimensions=self.dimensions, size=float(self.size))

    def _params(self) -> dict[str, Any]:
        return {"steps": self.steps, "truth": str(self.truth)}
