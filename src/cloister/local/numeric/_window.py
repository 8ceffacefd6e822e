"""A window of cells that slides with the number: the device of the piecewise protocol and of the square wave.

Steps 0 .. N, a window of L cells, M = N + L cells in all. The window of step t covers the cells t .. t+L-1. A device
reports a uniform cell of its window with probability p, else a uniform one of the N cells outside. So each cell inside
has probability p / L, each outside (1 - p) / N, whatever t is.

Privacy: the largest ratio of a cell's probabilities is ``(p / L) / ((1 - p) / N)``; the threshold of p is rounded down,
so that it is at most exp(epsilon).

`SlidingProtocol` is what the protocols with such a device share: its reports, and how their cells are read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integer, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.numeric._bounds import STEPS, Floats
from cloister.local.numeric.base import NumericProtocol
from cloister.local.protocol import lie_threshold

__all__ = ["SlidingProtocol", "Window"]


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
        # Numbers from the step on skip the window, so that every cell outside is equally likely.
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
        # The expected cell rises linearly with the step, so that undoing the line is unbiased for every step.
        return (cells.astype(np.float64) - float(self.start)) / float(self.slope)

    def variance(self, step: int) -> Fraction:
        """Return the variance of a reading for a true step, in squared steps."""
        mean = self.start + self.slope * step
        return (self._second_moment(step) - mean**2) / self.slope**2

    def _second_moment(self, t: int) -> Fraction:
        n, w = self.steps, self.width
        near = t * t + t * (w - 1) + Fraction((w - 1) * (2 * w - 1), 6)
        # Outside are k below t and k + w from t on, for all k below n: their squares add up in closed form.
        far = Fraction((n - 1) * (2 * n - 1), 6) + Fraction(w * (n * (n - 1) - t * (t - 1)) + w * w * (n - t), n)
        return self.inside * near + (1 - self.inside) * far

    def params(self) -> dict[str, Any]:
        """Return what a device needs, as JSON-ready values."""
        return {"steps": self.steps, "window": self.width, "truth": str(self.truth)}


class SlidingProtocol(NumericProtocol):
    """A protocol whose report is a cell, likelier in a window that slides with the number.

    Attributes:
        window: its cells and thresholds.
    """

    window: Window

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = STEPS) -> None:
        super().__init__(bounds=bounds, epsilon=epsilon, steps=steps)
        self.window = self._window()
        self.output_space = OutputSpace((Integer("y", 0, self.window.cells - 1),))
        self._check_epsilon()

    @abstractmethod
    def _window(self) -> Window:
        """Return the window for the epsilon and the steps."""

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return how much likelier a cell of the window is than another."""
        return self.window.likelihood_ratio

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: a toss whether inside of the window, then which cell."""
        return self.output_space.rows(y=self.window.slide(codes, draws))

    def _places(self, payload: Payload) -> Floats:
        return self.window.places(payload["y"])

    def _step_variance(self, step: int) -> Fraction:
        return self.window.variance(step)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return log(self.window.likeliest)

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        low, high = plausibility.cells_between(self.window)
        yield partial(plausibility.cells, count=self.window.cells, low=low, high=high)

    def _params(self) -> dict[str, Any]:
        return self.window.params()
