"""Forcing whatever foreign code returned into a public set of whole-number vectors.

Each number becomes a number of steps of its output's public scale. A *box* output has from 0 to STEPS steps between the
lower and the upper bound of each coordinate; a *norm* output has at most STEPS steps in L1 or L2 around zero. Missing,
infinite and undefined numbers become the public default first.

Privacy: the result lies in the set for every input whatsoever, and the set's diameter is known. So if one person can
change the outputs of one block only, the sum over blocks changes by at most the diameter, which is what noise is
calibrated to. Rounding happens before the sum and sums are of integers, so no floating-point error adds to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact

STEPS = 2**20
"""How many steps lie between the bounds of a coordinate, or between zero and the largest norm."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clip:
    """One output with its shape and the public set that its values are forced into.

    ``low`` and ``high`` have one entry for each coordinate. ``norm`` is "box", "l1" or "l2"; for norms the entries are
    minus and plus the radius. ``default`` stands in for what is missing.
    """

    name: str
    shape: tuple[int, ...]
    norm: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    default: NDArray[np.float64]
    steps: int = STEPS

    @property
    def size(self) -> int:
        """Return the number of coordinates."""
        return math.prod(self.shape)

    @property
    def l1(self) -> Fraction:
        """Return how far apart two results can be in L1, in steps (rounded up)."""
        match self.norm:
            case "box":
                return Fraction(self.size * self.steps)
            case "l1":
                return Fraction(2 * self.steps)
        return min(2 * self.steps * exact.sqrt_bounds(Fraction(self.size))[1], Fraction(2 * self.size * self.steps))

    @property
    def squared_l2(self) -> Fraction:
        """Return how far apart two results can be in L2, squared, in steps."""
        return Fraction(self.size * self.steps**2 if self.norm == "box" else 4 * self.steps**2)

    def to_steps(self, values: NDArray[np.float64] | None) -> NDArray[np.int64]:
        """Return any numbers, or none at all, as steps inside of the set."""
        given = self.default if values is None else np.where(np.isfinite(values), values, self.default)
        if self.norm == "box":
            share = (np.clip(given, self.low, self.high) - self.low) / (self.high - self.low)
            return np.clip(np.rint(share * self.steps), 0, self.steps).astype(np.int64)
        share = np.clip(given, self.low, self.high) / self.high
        return self._shrunk(np.clip(np.rint(share * self.steps), -self.steps, self.steps).astype(np.int64))

    def from_steps(self, total: NDArray[np.int64], blocks: int) -> NDArray[np.float64]:
        """Return the average that a (noisy) sum of steps over blocks stands for, within the bounds."""
        share = total.astype(np.float64) / (blocks * self.steps)
        if self.norm == "box":
            return np.clip(self.low + share * (self.high - self.low), self.low, self.high).reshape(self.shape)
        return np.clip(share * self.high, self.low, self.high).reshape(self.shape)

    def scale(self, blocks: int) -> NDArray[np.float64]:
        """Return by how much one step moves the average of each coordinate."""
        width = self.high - self.low if self.norm == "box" else self.high
        return np.asarray(width / (blocks * self.steps)).reshape(self.shape)

    def _shrunk(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return whole numbers whose norm is at most the limit: scaled down, then rounded towards zero."""
        size = np.abs(steps)
        if self.norm == "l1":
            length = int(size.sum())
        else:
            square = int((size * size).sum())
            length = math.isqrt(square)
            length += length * length < square
        if length <= self.steps:
            return steps
        return np.asarray(np.sign(steps) * (size * self.steps // length), dtype=np.int64)
