"""The piecewise protocol: a point that is likelier to lie near the number, for one number or for a few of several.

Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019). For t in [-1, 1], ``s = exp(epsilon / 2)`` and
``C = (s + 1) / (s - 1)`` the reading lies in [-C, C]: with probability s / (s + 1) uniformly in a piece of length C - 1
around t, else uniformly in all the rest. The rest is one set: its left and right part are as likely as they are long
(each with 1/2, as printed elsewhere, gives an end of the range a point mass and epsilon infinity). It is unbiased with
variance ``t**2 / (s - 1) + (s + 3) / (3 (s - 1)**2)``.

On steps the piece is a `Window` whose width is the whole number next to N / s, and the reading of a cell is a linear
function of it with exact constants: unbiased for the rounded number. Numbers above are met to about 1e-8.

Several numbers: of d numbers a device reports ``k = max(1, min(d, floor(epsilon / 2.5)))`` different ones, chosen
uniformly, each by the piecewise protocol with epsilon / k. `debias` gives the published reading, d/k times the reported
number and the middle of the bounds for all others, which is unbiased. `estimate` instead takes for each number the mean
of the reports about it: unbiased as well, and with less variance, because it does not depend on how many there are.

Privacy: claim epsilon-LDP; for one number see `Window`. Of several, which ones are reported does not depend on any
number; the k reports are independent with ratio at most ``exp(epsilon / k)`` each. They must be different ones: chosen
with replacement, as printed elsewhere, they collide and bias the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import comb, floor, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import Number
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integers, OutputSpace, Payload, report_error
from cloister.local._plausibility import Test
from cloister.local.draws import Draws
from cloister.local.numeric._bounds import STEPS, Floats
from cloister.local.numeric._window import SlidingProtocol, Window
from cloister.local.numeric.base import MeanProtocol, VectorProtocol
from cloister.local.protocol import protocols

__all__ = ["Piecewise", "PiecewiseVector", "distinct_places", "piecewise_window"]


def piecewise_window(epsilon: Fraction, steps: int) -> Window:
    """Return the window of the piecewise protocol."""
    # The width may be rounded either way: the promise rests on the threshold, worked out for the width that came of it.
    return Window.of(epsilon, steps, exact.exp_bounds(-epsilon / 2)[0])


@protocols.register("piecewise")
class Piecewise(SlidingProtocol, MeanProtocol):
    """A point near a number: a good mean above epsilon 1.29, where it beats one bit.

    >>> protocol = Piecewise(bounds=(0, 100), epsilon=2)
    >>> reports = protocol.randomize([20, 35, 50] * 1000)
    >>> protocol.estimate(reports).reports
    3000
    """

    name = "piecewise"
    in_browsers = True

    def _window(self) -> Window:
        return piecewise_window(self.epsilon, self.grid.steps)


_EPSILON_EACH = Fraction(5, 2)


@dataclass(frozen=True)
class _Chosen(OutputSpace):
    """Different numbers in rising order, and a cell for each."""

    def check(self, payload: Payload) -> Payload:
        super().check(payload)
        # One set of numbers is one report: another order would be a second name for it.
        if (np.diff(payload["numbers"].astype(np.int64), axis=1) <= 0).any():
            raise report_error()
        return payload

    def parse(self, values: Any) -> Payload:  # JSON values
        return self.check(super().parse(values))


def distinct_places(size: int, chosen: int, count: int, draws: Draws) -> NDArray[np.int64]:
    """Return rows of so many different places below a size, each set equally likely, in rising order.

    Every draw is uniform among the places not yet taken: places already taken are stepped over.
    """
    rows = np.empty((count, 0), dtype=np.int64)
    for taken in range(chosen):
        place = draws.below(size - taken, count)
        for column in rows.T:
            # The taken places are in rising order, so that stepping over each in turn keeps the rest equally likely.
            place += place >= column
        rows = np.sort(np.column_stack([rows, place]), axis=1)
    return rows


@protocols.register("piecewise_vector")
class PiecewiseVector(VectorProtocol):
    """Points near a few of several numbers: good means for many numbers.

    >>> protocol = PiecewiseVector(bounds=[(0, 100), (0, 1)], epsilon=1)
    >>> reports = protocol.randomize([[20, 0.5], [35, 0.25]] * 500)
    >>> len(protocol.estimate(reports))
    2
    """

    name = "piecewise_vector"

    def __init__(self, *, bounds: object = None, epsilon: Number, steps: object = STEPS) -> None:
        super().__init__(bounds=bounds, epsilon=epsilon, steps=steps)
        self.chosen = max(1, min(self.dimensions, floor(self.epsilon / _EPSILON_EACH)))
        self.window = piecewise_window(self.epsilon / self.chosen, self.steps)
        self.output_space = _Chosen(
            (
                Integers("numbers", self.chosen, 0, self.dimensions - 1),
                Integers("y", self.chosen, 0, self.window.cells - 1),
            )
        )
        self._check_epsilon()

    @property
    def share(self) -> Fraction:
        """Return k / d, the share of the reports that speak about any one of the numbers."""
        return Fraction(self.chosen, self.dimensions)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the ratio of all reported numbers together."""
        return self.window.likelihood_ratio**self.chosen

    def perturb(self, codes: NDArray[Any], draws: Draws) -> Payload:
        """Return reports: which numbers, whether inside of their windows, then which cells."""
        numbers = distinct_places(self.dimensions, self.chosen, len(codes), draws)
        steps = np.take_along_axis(codes, numbers, axis=1).ravel()
        return self.output_space.rows(numbers=numbers, y=self.window.slide(steps, draws).reshape(numbers.shape))

    def _places(self, payload: Payload) -> Floats:
        middle = self.steps / 2
        places = np.full((len(payload), self.dimensions), middle)
        readings = middle + (self.window.places(payload["y"]) - middle) / float(self.share)
        np.put_along_axis(places, payload["numbers"].astype(np.int64), readings, axis=1)
        return places

    def _columns(self, payload: Payload) -> list[Floats]:
        numbers, readings = payload["numbers"].ravel(), self.window.places(payload["y"]).ravel()
        order = np.argsort(numbers, kind="stable")
        # Sorted by number, the readings about each of them are one slice.
        ends = np.cumsum(np.bincount(numbers, minlength=self.dimensions))[:-1]
        return np.split(readings[order], ends)

    def _step_variance(self, step: int) -> Fraction:
        return self.window.variance(step)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return self.chosen * log(self.window.likeliest) - log(comb(self.dimensions, self.chosen))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        share = float(self.share)
        yield partial(plausibility.which_numbers, dimensions=self.dimensions, share=share)
        yield partial(plausibility.cells_of_numbers, window=self.window)

    def _params(self) -> dict[str, Any]:
        return {"chosen": self.chosen, **self.window.params()}
