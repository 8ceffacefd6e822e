"""The minimum of a penalized logistic loss, found and certified whatever the rows are.

The objective is the sum of log(1 + exp(-s * w.x)) over rows, plus strength / 2 * |w|**2 + b.w, with |x| <= 1. A point w
is a vector of whole numbers of 2**-digits, so that neither its own rounding nor that of its logits matters: logits are
summed from parts of a point that are so short that their products with rows of whole steps are exact in floats, and
have a relative error of a few units in the last place. An error of z by a share moves 1 / (1 + exp(z)) by at most a
quarter of that share, however large w is. Residuals are put on a grid of 2**-52 and summed as whole numbers, so the
norm of the gradient is known to within 2**-49 for each row: far less than the smallest ``tol`` for ten million of them.

Why no rows can prevent it, up to `MOST_ROWS` rows and down to `WEAKEST`:

- The matrix of second derivatives is summed in blocks, so that its error is below a hundredth of `WEAKEST` (2**14 + 611
  roundings of a sum of at most MOST_ROWS / 4). Its eigenvalues, which are at least ``strength``, are clipped there: the
  direction exists, is finite and goes down. Nothing is factorized that a constant column could make singular.
- The third derivative along a direction d is at most |d| times the second (Bach 2010), so that a step of
  log(1 + |d|) / |d| times Newton's goes down by at least 0.38 of decrease / max(1, |d|), without looking at any value
  (Sun and Tran-Dinh 2019). Longer steps are taken only if the value shows that they go down. The objective is bounded
  from below and strongly convex, so |d| comes below 1, where steps square the distance, or where the error of the
  matrix of second derivatives is what counts, divide it by a hundred.
- Strong convexity turns a gradient of norm g into a distance of at most g / strength from the exact minimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cloister.core.whole_rows import Floats, exact_product
from cloister.learn.linear._design import BITS, UNIT

__all__ = ["MOST_ROWS", "STRONGEST", "WEAKEST", "Objective", "Point", "digits_for", "minimum"]

MOST_ROWS: int = 10**7
"""For how many rows the minimum is certain to be found."""
WEAKEST = Fraction(1, 1000)
"""The smallest strength for which it is."""
STRONGEST = Fraction(10**12)
"""The largest strength that anybody may ask for; beyond it, rows do not move the weights."""

_PART = 2**26
_ULP = 2.0**-52
_BY_ROW = 2.0**-49
_BLOCK = 2**14

Point = tuple[int, ...]
"""Whole numbers of 2**-digits."""


def digits_for(*, strength: Fraction, tol: Fraction, width: int) -> int:
    """Return how many binary digits after the point make the rounding of a point a small part of ``tol``."""
    steepest = (MOST_ROWS + strength) * width * 64 / tol
    return max(32, math.ceil(steepest).bit_length())


@dataclass(frozen=True, slots=True)
class Objective:
    """A penalized logistic loss with a linear term.

    Args:
        steps: rows of whole steps.
        length: a whole number of steps that no row is longer than.
        signs: 1 or -1 for each row.
        weights: how often each row occurs.
        strength: the weight of the penalty.
        term: the coefficients of the linear term, in whole numbers of 2**-digits.
        digits: how fine a point is.
    """

    steps: Floats
    length: int
    signs: Floats
    weights: NDArray[np.int64]
    strength: Fraction
    term: Point
    digits: int

    def margins(self, at: Point) -> Floats:
        """Return the logit of each row times its sign, with a small relative error."""
        # A part times 2**12 steps, summed over the columns, is a whole number below 2**53.
        bits = 53 - BITS - len(at).bit_length()
        parts = _parts(at, bits)
        products = self.steps @ np.array(parts, dtype=np.float64).T
        logits = np.zeros(len(self.steps))
        # The largest part first: what is added later is smaller than the last place of what may cancel.
        for place in reversed(range(len(parts))):
            logits += products[:, place] * 2.0 ** (place * bits - self.digits)
        return np.asarray(self.signs * (logits / self.length))

    def value(self, at: Point, margins: Floats) -> tuple[float, float]:
        """Return the objective, and a bound of the error of its rounding."""
        losses = float((self.weights * np.logaddexp(0.0, -margins)).sum())
        weights, term = self.floats(at), self.floats(self.term)
        penalty, linear = float(self.strength) / 2 * float(weights @ weights), float(term @ weights)
        size = losses + penalty + float(np.abs(term) @ np.abs(weights)) + 1.0
        return losses + penalty + linear, 64 * _ULP * size

    def floats(self, at: Point) -> Floats:
        """Return a point in floats."""
        return np.array([item / 2**self.digits for item in at])

    def gradient(self, margins: Floats, at: Point) -> tuple[Floats, float]:
        """Return the gradient, and a bound of the norm of the exact one."""
        # Residuals are whole numbers of 2**-52, in two halves whose products with whole steps are exact in
        # floats.
        fine = np.rint(-self.signs * expit(-margins) * _PART**2)
        high = np.rint(fine / _PART)
        both = np.stack([high, fine - high * _PART], axis=1)
        sums = exact_product(self.steps, both, self.weights, most=UNIT * _PART)
        unit = Fraction(1, 2**self.digits)
        found = [
            Fraction(int(large) * _PART + int(small), _PART**2 * self.length) + (self.strength * place + term) * unit
            for (large, small), place, term in zip(sums, at, self.term, strict=True)
        ]
        gradient = np.array([float(item) for item in found])
        # What rounding may have hidden is added to the norm, so that the certificate is on the safe side.
        by_rows = int(self.weights.sum()) * _BY_ROW + math.sqrt(len(at)) * float(unit)
        return gradient, (float(np.linalg.norm(gradient)) + by_rows) * (1 + 2.0**-40)

    def curvature(self, margins: Floats) -> Floats:
        """Return the matrix of second derivatives."""
        shares = expit(-margins)
        bends = self.weights * shares * (1.0 - shares) / float(self.length) ** 2
        second = np.zeros((self.steps.shape[1],) * 2)
        for start in range(0, len(bends), _BLOCK):
            part = self.steps[start : start + _BLOCK]
            second += part.T @ (bends[start : start + _BLOCK, None] * part)
        second[np.diag_indices_from(second)] += float(self.strength)
        return second


def _parts(at: Point, bits: int) -> list[list[int]]:
    """Return whole numbers in parts of so many bits with their sign, the smallest parts first."""
    parts: list[list[int]] = []
    left, half = list(at), 2 ** (bits - 1)
    while not parts or any(left):
        low = [(item + half) % 2**bits - half for item in left]
        left = [(item - part) >> bits for item, part in zip(left, low, strict=True)]
        parts.append(low)
    return parts


def minimum(objective: Objective, *, tol: float, max_iter: int) -> Point | None:
    """Return a point at which the gradient is certified to be at most ``tol`` in norm; None if none is found."""
    at: Point = (0,) * objective.steps.shape[1]
    margins = objective.margins(at)
    for _ in range(max_iter):
        gradient, most = objective.gradient(margins, at)
        if most <= tol:
            return at
        at, margins = _next(objective, at, margins, gradient)
    return None


def _next(objective: Objective, at: Point, margins: Floats, gradient: Floats) -> tuple[Point, Floats]:
    """Return the next point and its margins: a full step of Newton's method, a part of it, or one that is safe."""
    values, vectors = np.linalg.eigh(objective.curvature(margins))
    direction = vectors @ ((vectors.T @ gradient) / np.maximum(values, float(objective.strength)))
    size, decrease = float(np.linalg.norm(direction)), float(gradient @ direction)
    safe = math.log1p(size) / size if size > 2.0**-20 else 1.0
    (before, error), step = objective.value(at, margins), 1.0
    while step > safe:
        reached = _move(objective, at, step * direction)
        found = objective.margins(reached)
        # Near the minimum the difference of two values is all rounding, and the full step is right.
        if objective.value(reached, found)[0] <= before - 1e-4 * step * decrease + error:
            return reached, found
        step /= 2
    reached = _move(objective, at, safe * direction)
    return reached, objective.margins(reached)


def _move(objective: Objective, at: Point, by: Floats) -> Point:
    return tuple(
        place - round(Fraction(change) * 2**objective.digits) for place, change in zip(at, by.tolist(), strict=True)
    )
