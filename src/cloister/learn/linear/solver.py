"""The minimum of a penalized logistic loss, with a certificate of how near it is.

The objective is the sum of log(1 + exp(-s * w.x)) over rows, plus strength / 2 * |w|**2 + b.w, with |x| <= 1. Newton's
method with backtracking finds its minimum, from any start: the objective is smooth and strongly convex. Then the norm
of its gradient is bounded, rounding included: residuals are put on a grid of 2**-46, split in two parts of 23 bits, and
summed as whole numbers without rounding, so that the error grows with the number of rows only, by less than 2**-45 for
a row plus what the rounding of its logit makes. Strong convexity turns a gradient of norm g into a distance of at most
g / strength from the exact minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from cloister.learn.linear.design import UNIT
from cloister.learn.rows import Floats, exact_product

__all__ = ["Objective", "minimum"]

_PART = 2**23
_ULP = 2.0**-52


@dataclass(frozen=True, slots=True)
class Objective:
    """A penalized logistic loss with a linear term.

    Args:
        steps: rows of whole steps.
        length: a whole number of steps that no row is longer than.
        signs: 1 or -1 for each row.
        weights: how often each row occurs.
        strength: the weight of the penalty.
        term: the coefficients of the linear term.
    """

    steps: Floats
    length: int
    signs: Floats
    weights: NDArray[np.int64]
    strength: float
    term: Floats

    def value(self, at: Floats) -> float:
        """Return the objective."""
        margins = self.signs * (self.steps @ at) / self.length
        losses = self.weights * np.logaddexp(0.0, -margins)
        return float(losses.sum() + self.strength / 2 * (at @ at) + self.term @ at)

    def slopes(self, at: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the matrix of second derivatives."""
        residuals = self._residuals(at)
        gradient = self.steps.T @ (self.weights * residuals) / self.length + self.strength * at + self.term
        bends = self.weights * np.abs(residuals) * (1.0 - np.abs(residuals)) / float(self.length) ** 2
        second = self.steps.T @ (bends[:, None] * self.steps)
        second[np.diag_indices_from(second)] += self.strength
        return np.asarray(gradient), second

    def _residuals(self, at: Floats) -> Floats:
        return np.asarray(-self.signs * expit(-self.signs * (self.steps @ at) / self.length))

    def certified(self, at: Floats) -> float:
        """Return a bound of the norm of the exact gradient."""
        fine = np.rint(self._residuals(at) * _PART**2)
        high = np.rint(fine / _PART)
        parts = np.stack([high, fine - high * _PART], axis=1)
        sums = exact_product(self.steps, parts, self.weights, most=UNIT * _PART).astype(np.float64)
        total = (sums[:, 0] / _PART + sums[:, 1] / _PART**2) / self.length
        gradient = total + self.strength * at + self.term
        norm = float(np.linalg.norm(at))
        rows = int(self.weights.sum())
        by_row = 2.0**-45 + (self.steps.shape[1] + 8) * _ULP * (1.0 + norm)
        by_sums = 16 * _ULP * float(np.linalg.norm(np.abs(total) + self.strength * np.abs(at) + np.abs(self.term)))
        return float((np.linalg.norm(gradient) + rows * by_row + by_sums) * (1 + 2.0**-40))


def minimum(objective: Objective, *, tol: float, max_iter: int) -> Floats | None:
    """Return a point at which the gradient is certified to be at most ``tol`` in norm; None if none is found."""
    at = np.zeros(objective.steps.shape[1])
    for _ in range(max_iter):
        gradient, second = objective.slopes(at)
        if np.linalg.norm(gradient) <= tol / 4:
            break
        at = _newton(objective, at, gradient, second)
    return at if objective.certified(at) <= tol else None


def _newton(objective: Objective, at: Floats, gradient: Floats, second: Floats) -> Floats:
    """Return the next point: a full step of Newton's method, or a half of a half of it that goes down."""
    direction = cho_solve(cho_factor(second), gradient)
    decrease, before = float(gradient @ direction), objective.value(at)
    # Near the minimum the difference of two values is all rounding, and the full step is right.
    floor = 64 * _ULP * (abs(before) + 1.0)
    for halvings in range(40):
        step = 0.5**halvings
        reached = at - step * direction
        if objective.value(reached) <= before - 1e-4 * step * decrease + floor:
            return np.asarray(reached)
    return np.asarray(at - direction)
