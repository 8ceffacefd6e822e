"""The piecewise protocol for one number: a point that is likelier to lie near the number.

Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019). For t in [-1, 1], ``s = exp(epsilon / 2)`` and
``C = (s + 1) / (s - 1)`` the reading lies in [-C, C]: with probability s / (s + 1) uniformly in a piece of length C - 1
around t, else uniformly in all the rest. The rest is one set: its left and right part are as likely as they are long
(each with 1/2, as printed elsewhere, gives an end of the range a point mass and epsilon infinity). It is unbiased with
variance ``t**2 / (s - 1) + (s + 3) / (3 (s - 1)**2)``.

On steps the piece is a `Window` whose width is the whole number next to N / s, and the reading of a cell is a linear
function of it with exact constants: unbiased for the rounded number. Numbers above are met to about 1e-8.

Privacy: claim epsilon-LDP; see `Window`.
"""

from __future__ import annotations

from fractions import Fraction

from cloister.core import exact
from cloister.local.numeric.base import MeanProtocol
from cloister.local.numeric.sliding import SlidingProtocol
from cloister.local.numeric.window import Window
from cloister.local.protocol import protocols

__all__ = ["Piecewise", "piecewise_window"]


def piecewise_window(epsilon: Fraction, steps: int) -> Window:
    """Return the window of the piecewise protocol."""
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

    def _window(self) -> Window:
        return piecewise_window(self.epsilon, self.grid.steps)
