"""Duchi's protocol for several numbers: one bit for each, drawn together.

Duchi, Jordan and Wainwright (2018), corrected for even dimensions. Each number t in [-1, 1] is rounded at random to a
sign, +1 with probability (1 + t) / 2, which gives a corner v of the cube. The report is a corner that agrees with v in
more than half of its signs with a certain probability, else one that does not; uniformly among the corners of either
half. With d numbers there are C corners in the first half, ``2**(d-1)``, less half of the middle binomial coefficient
when d is even, and its probability is ``e C / ((e - 1) C + 2**d)`` with e = exp(epsilon). The printed versions take
``e / (e + 1)``, or put ties into both halves, which is right for odd d only: two numbers then have epsilon 2.0986 or
1.3133 in place of 1. Signs are read as +B or -B, ``B = ((e - 1) C + 2**d) / ((e - 1) binomial(d-1, floor(d/2)))``.

A uniform corner of a half is a uniform set of at least k agreeing (or disagreeing) places, found from a uniform rank by
counting; exact up to 60 numbers.

Privacy: claim epsilon-LDP. Given v, a corner of the first half has probability P / C and one of the other
(1 - P) / (2**d - C); the threshold of P is rounded down so that their ratio is at most exp(epsilon). Given the numbers,
the probability of a report is an average of the two, and it reaches both when all numbers are at their bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, cached_property, partial
from math import comb, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ParameterError
from cloister.local import plausibility_numbers
from cloister.local.domain import Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.numeric.grid import STEPS, Floats
from cloister.local.numeric.vectors import VectorProtocol
from cloister.local.output_space import Bits, OutputSpace, Payload
from cloister.local.plausibility import Test
from cloister.local.protocol import lie_threshold, protocols

__all__ = ["MOST_DIMENSIONS", "DuchiVector", "subsets", "uniform_subset"]

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

    def __init__(self, *, bounds: object = None, epsilon: object, steps: object = STEPS) -> None:
        super().__init__(bounds=bounds, epsilon=epsilon, steps=steps)
        if self.dimensions > MOST_DIMENSIONS:
            raise ParameterError(
                f"This protocol takes at most {MOST_DIMENSIONS} numbers of one person.", fix="use PiecewiseVector."
            )
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
        signs = draws.below(self.steps, codes.size).reshape(codes.shape) < codes
        agrees = draws.chances(self.truth, len(codes))
        same = np.empty(codes.shape, dtype=np.bool_)
        near, far, d = np.flatnonzero(agrees), np.flatnonzero(~agrees), self.dimensions
        same[near] = uniform_subset(draws.below(self.agreeing, near.size), d, d // 2 + 1)
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
        """Yield what honest reports are compared with; see `plausibility`."""
        yield partial(plausibility_numbers.corners, dimensions=self.dimensions, size=float(self.size))

    def _params(self) -> dict[str, Any]:
        return {"steps": self.steps, "truth": str(self.truth)}
