"""Means of tables whose size is known, or known to be at least something, without looking.

Three of the four ways to a mean (the fourth, for tables of any size, is a question like others):

- ``public_size`` under replace: the exact number of rows n is public, and one row moves the mean by range / n;
- ``min_size``: the owner attests at least S rows, for the table and its neighbors: range / S under replace, and
  range / (S + 1) when a row comes or goes;
- ``truncated``: as before, and the mean is clamped to an interval that is narrower than that: the smaller of the two.

Missing values count as the middle of the bounds, so that the size is the size of the table.

Privacy: the mean is an exact rational of whole steps, clamped and rounded to a grid, which moves neighbors apart by at
most ceil(sensitivity / grid); discrete Laplace noise is scaled to that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cloister.core import exact
from cloister.core.random import RandomSource
from cloister.queries._aggregates import CountRows
from cloister.queries._cells import Component
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._measurements import ROWS
from cloister.queries._question import FixedPointNumber, QueryRows, Question
from cloister.queries._uncertainty import LaplaceNoise, Noise

__all__ = ["SizedMean"]

_FINENESS = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedMean:
    """A mean of a table of known, or at least known, size."""

    rows: QueryRows
    number: FixedPointNumber
    size: int
    is_exact_size: bool
    interval: tuple[Fraction, Fraction] | None
    epsilon: Fraction
    contribution: Contribution

    @property
    def sensitivity(self) -> Fraction:
        """Return by how much neighbors move the mean."""
        low, high = self.number.bounds
        grows = self.contribution.adjacency == "add_remove" and not self.is_exact_size
        moved = (high - low) / (self.size + 1 if grows else self.size)
        return moved if self.interval is None else min(moved, self.interval[1] - self.interval[0])

    @property
    def grid(self) -> Fraction:
        """Return the step to which the mean is rounded."""
        # The grid is a million times finer than the sensitivity, so rounding that up to whole steps adds next
        # to no noise.
        return exact.power_of_two_below(self.sensitivity / _FINENESS)

    @property
    def noise(self) -> LaplaceNoise:
        """Return the noise, in steps of the grid."""
        return LaplaceNoise(exact.ceil_div(self.sensitivity, self.grid), self.epsilon)

    @property
    def law(self) -> Noise:
        """Return the law of the error."""
        return self.noise.law(self.grid)

    def canonical(self) -> str:
        """Return a text that is the same for the same mean."""
        return f"{self.rows} || {self.number} || {self.size} {self.is_exact_size} {self.interval}"

    def measure(self, source: RandomSource) -> int:
        """Return the noisy mean in steps of the grid. The budget must have been charged before."""
        question = Question(rows=self.rows, aggregates=(CountRows(),))
        total = Component.of_number("total", self.number, self.number.center)
        core = ExactCore(question, self.contribution, self.contribution.reach(question))
        numbers = core.cells([ROWS, total]).numbers
        # An empty table divides by one and does not fail: no row may decide whether there is an answer.
        count = max(int(numbers[ROWS][0]), 1)
        mean = (self.number.center + Fraction(int(numbers[total][0]), count)) * self.number.unit
        if self.interval is not None:
            mean = min(max(mean, self.interval[0]), self.interval[1])
        # Rounding this way keeps the order of numbers, so neighbors end up at most ceil(sensitivity / grid)
        # steps apart.
        steps = math.floor(mean / self.grid + Fraction(1, 2))
        return int(self.noise.add(_array(steps), source)[0])

    def value(self, steps: int) -> float:
        """Return a noisy mean within its public range."""
        low, high = self.interval or self.number.bounds
        return float(min(max(steps * self.grid, low), high))


def _array(step: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([step])
