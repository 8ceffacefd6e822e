"""What the piecewise protocol and the square wave share: a device with a sliding window, and how its cells are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import log
from typing import Any

from cloister.local import plausibility_numbers
from cloister.local.domain import Codes
from cloister.local.draws import Draws
from cloister.local.numeric.base import NumericProtocol
from cloister.local.numeric.grid import STEPS, Floats
from cloister.local.numeric.window import Window
from cloister.local.output_space import Integer, OutputSpace, Payload
from cloister.local.plausibility import Test

__all__ = ["SlidingProtocol"]


class SlidingProtocol(NumericProtocol):
    """A protocol whose report is a cell, likelier in a window that slides with the number.

    Attributes:
        window: its cells and thresholds.
    """

    window: Window

    def __init__(self, *, bounds: object = None, epsilon: object, steps: object = STEPS) -> None:
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
        """Yield what honest reports are compared with; see `plausibility`."""
        low, high = plausibility_numbers.cells_between(self.window)
        yield partial(plausibility_numbers.cells, count=self.window.cells, low=low, high=high)

    def _params(self) -> dict[str, Any]:
        return self.window.params()
