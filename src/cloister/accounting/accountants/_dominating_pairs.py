"""Dominating pairs: the worst privacy loss of Laplace-like releases, in one family of two numbers.

``LaplaceLike(epsilon, steps)`` is scalar discrete Laplace noise of which neighbors are ``steps`` lattice steps apart,
together ``epsilon``. One step is randomized response, the worst of all epsilon-private mechanisms (Kairouz, Oh and
Viswanath 2017); many steps approach the continuous Laplace mechanism.

With ``a = exp(-epsilon/steps)`` the loss is ``epsilon (1 - 2 m/steps)`` for m = 0..steps, with probability 1/(1+a) for
m = 0, a**steps/(1+a) for m = steps and (1-a)/(1+a) a**m between. Its hockey-stick curve at the points
``t_m = epsilon (1 - 2 m/steps)`` is ``1 - a**m``, the curve of the continuous mechanism, and linear in exp(t) between
them. Hence three facts, each checked by enumeration in the tests:

- the continuous mechanism is dominated by any number of steps of the same epsilon, since its curve is convex;
- ``g * n`` steps are dominated by ``n`` steps of the same epsilon, since the points of the latter are among those of
  the former;
- noise on a vector is dominated by noise on a scalar: if neighbors differ by d_1 and d_2 steps in two coordinates, the
  curve at ``t_m >= 0`` is ``1 - a**m (1 + min(m, d_1, d_2) (1-a)/(1+a))``, which is not above ``1 - a**m``; negative
  ``t`` follow by symmetry, more coordinates by induction, because domination survives composition (Zhu, Dong and
  Wang 2022, theorem 10).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.accountants.base import approx_loss
from cloister.accounting.events import DiscreteLaplaceEvent, Event, LaplaceEvent
from cloister.core import exact

Floats = NDArray[np.float64]

CONTINUOUS = 2**50
"""So many steps stand for the continuous mechanism."""

_NEVER = Fraction(0)


class LaplaceLike(NamedTuple):
    """The dominating pair of an event: total epsilon (rounded up) in so many lattice steps."""

    epsilon: float
    steps: int

    def with_steps_near(self, target: int) -> LaplaceLike:
        """Return a pair that dominates this one, with about ``target`` steps if it has more."""
        if self.steps <= target:
            return self
        if self.steps == CONTINUOUS:
            return LaplaceLike(self.epsilon, target)
        fewer, width = _factor_steps(self.steps, target)
        # First to n * g steps that lose as much each, which dominates, then g of them at a time become one.
        return LaplaceLike(self.epsilon * (fewer * width / self.steps) * (1 + 1e-15), fewer)


def laplace_like(event: Event) -> tuple[LaplaceLike, Fraction]:
    """Return the dominating pair of an event with an epsilon of its own, and the probability of an unbounded loss."""
    match event:
        case LaplaceEvent(noise_multiplier=multiplier):
            return LaplaceLike(_above(multiplier.denominator, multiplier.numerator), CONTINUOUS), _NEVER
        case DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity):
            epsilon = _above(sensitivity * scale.denominator, scale.numerator)
            # Very many steps must not be taken for the mark of the continuous mechanism.
            return LaplaceLike(epsilon, min(sensitivity, CONTINUOUS - 1)), _NEVER
        case _:
            epsilon_of_any, chance = approx_loss(event)
            return LaplaceLike(exact.float_above(epsilon_of_any), 1), chance


def log_moment(order: Floats, epsilon: Floats, steps: Floats) -> Floats:
    """Return ln E[exp(order * loss)], a geometric series in closed form; arguments broadcast, order > -1/2."""
    unit = epsilon / steps
    # At an order of -1/2 the ratio is 1 and the closed form would divide zero by zero.
    step = np.maximum((2 * order + 1) * unit, np.finfo(float).tiny)
    series = np.exp(-step) * np.expm1(-(steps - 1) * step) / np.expm1(-step)
    first = order * epsilon + np.log(1 / (1 + np.exp(-unit)) + np.tanh(unit / 2) * series)
    last = -(order + 1) * epsilon - np.log1p(np.exp(-unit))
    return np.asarray(np.logaddexp(first, last), dtype=float)


def atoms(pair: LaplaceLike) -> tuple[Floats, Floats]:
    """Return the possible losses of a pair and their probabilities."""
    unit = pair.epsilon / pair.steps
    index = np.arange(pair.steps + 1.0)
    probabilities = math.tanh(unit / 2) * np.exp(-unit * index)
    probabilities[0] = 1 / (1 + math.exp(-unit))
    probabilities[-1] = math.exp(-pair.epsilon) / (1 + math.exp(-unit))
    return pair.epsilon - 2 * unit * index, probabilities


def _above(numerator: int, denominator: int) -> float:
    """Return a float above a ratio; the division of integers is correctly rounded."""
    return math.nextafter(numerator / denominator, math.inf)


@lru_cache(maxsize=65536)
def _factor_steps(steps: int, target: int) -> tuple[int, int]:
    """Return (n, g), n at most ``target`` and not much less, such that n * g is closely above ``steps``."""
    candidates = ((count, -(-steps // count)) for count in range(target, target // 2, -1))
    return min(candidates, key=lambda pair: pair[0] * pair[1])
