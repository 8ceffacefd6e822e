"""Duchi's protocol for one number: a single bit, likelier to be 1 for larger numbers.

Duchi, Jordan and Wainwright (2018), in the form of Wang et al. (2019): for t in [-1, 1] the bit is 1 with probability
``1/2 + t (e - 1) / (2 e + 2)``, where e = exp(epsilon). Read as +B or -B with ``B = (e + 1) / (e - 1)``, it is unbiased
with variance ``B**2 - t**2``. No other protocol has a smaller worst case at small epsilons.

Privacy: claim epsilon-LDP. A 1 has probability between T0 / 2**64 at the lower bound and T1 / 2**64 = 1 - T0 / 2**64
at the upper one, a 0 the rest; T0 is rounded up, so that both ratios are at most ``T1 / T0 <= exp(epsilon)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import log
from typing import Any

import numpy as np

from cloister.core.random import Words
from cloister.local import plausibility_numbers
from cloister.local.domain import Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.numeric.base import MeanProtocol
from cloister.local.numeric.grid import STEPS, Floats
from cloister.local.output_space import Integer, OutputSpace, Payload
from cloister.local.plausibility import Test
from cloister.local.protocol import lie_threshold, protocols

__all__ = ["Bit", "Duchi"]

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

    def __init__(self, *, bounds: object = None, epsilon: object, steps: object = STEPS) -> None:
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
        """Yield what honest reports are compared with; see `plausibility`."""
        low, high = plausibility_numbers.bits_between(self.bit)
        yield partial(plausibility_numbers.bits, low=low, high=high)

    def _params(self) -> dict[str, Any]:
        return self.bit.params()
