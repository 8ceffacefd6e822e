"""A window of cells that slides with the number: the device of the piecewise protocol and of the square wave.

Steps 0 .. N, a window of L cells, M = N + L cells in all. The window of step t covers the cells t .. t+L-1. A device
reports a uniform cell of its window with probability p, else a uniform one of the N cells outside. So each cell inside
has probability p / L, each outside (1 - p) / N, whatever t is.

Privacy: the largest ratio of a cell's probabilities is ``(p / L) / ((1 - p) / N)``; the threshold of p is rounded down,
so that it is at most exp(epsilon).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.local.domain import Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.numeric.grid import Floats
from cloister.local.protocol import lie_threshold

__all__ = ["Window"]


@dataclass(frozen=True)
class Window:
    """A sliding window.

    Attributes:
        steps: N, the last step.
        width: L, the number of cells in the window.
        truth: the threshold of a cell inside.
    """

    steps: int
    width: int
    truth: int

    @classmethod
    def of(cls, epsilon: Fraction, steps: int, share: Fraction) -> Window:
        """Return the window of an epsilon whose width is about a share of the steps, and at least one cell."""
        width = max(1, int(steps * share + Fraction(1, 2)))
        return cls(steps, width, CERTAIN - lie_threshold(epsilon, Fraction(steps, width)))

    @property
    def cells(self) -> int:
        """Return M, the number of cells."""
        return self.steps + self.width

    @property
    def inside(self) -> Fraction:
        """Return the probability of the window."""
        return Fraction(self.truth, CERTAIN)

    @property
    def likeliest(self) -> Fraction:
        """Return the probability of the likeliest cell."""
        return max(self.inside / self.width, (1 - self.inside) / self.steps)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return how much likelier a cell inside is than one outside."""
        return (self.inside / self.width) / ((1 - self.inside) / self.steps)

    def slide(self, codes: Codes, draws: Draws) -> Codes:
        """Return a cell for each step: a toss whether inside, then which cell."""
        inside = draws.chances(self.truth, len(codes))
        near, far = np.flatnonzero(inside), np.flatnonzero(~inside)
        cells = np.empty_like(codes)
        cells[near] = codes[near] + draws.below(self.width, near.size)
        outside = draws.below(self.steps, far.size)
        cells[far] = outside + self.width * (outside >= codes[far])
        return cells

    @property
    def slope(self) -> Fraction:
        """Return how much the expected cell rises with each step."""
        return self.inside - (1 - self.inside) * Fraction(self.width, self.steps)

    @property
    def start(self) -> Fraction:
        """Return the expected cell of step 0."""
        return self.inside * Fraction(self.width - 1, 2) + (1 - self.inside) * (
            self.width + Fraction(self.steps - 1, 2)
        )

    def places(self, cells: NDArray[Any]) -> Floats:
        """Return the unbiased reading of each cell, in steps."""
        return (cells.astype(np.float64) - float(self.start)) / float(self.slope)

    def variance(self, step: int) -> Fraction:
        """Return the variance of a reading for a true step, in squared steps."""
        mean = self.start + self.slope * step
        return (self._second_moment(step) - mean**2) / self.slope**2

    def _second_moment(self, t: int) -> Fraction:
        n, w = self.steps, self.width
        near = t * t + t * (w - 1) + Fraction((w - 1) * (2 * w - 1), 6)
        far = Fraction((n - 1) * (2 * n - 1), 6) + Fraction(w * (n * (n - 1) - t * (t - 1)) + w * w * (n - t), n)
        return self.inside * near + (1 - self.inside) * far

    def params(self) -> dict[str, Any]:
        """Return what a device needs, as JSON-ready values."""
        return {"steps": self.steps, "window": self.width, "truth": str(self.truth)}
