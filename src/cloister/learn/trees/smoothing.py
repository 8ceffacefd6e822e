"""What a feature's noisy residuals say about its effect: a Bayesian estimate, all of it post-processing.

The effect of each cell of a feature is a normal variable beforehand: of a category, one of deviation ``spread`` by
itself; of a number, close to that of the next bin, the whole range being a random walk of variance ``roughness``. A
noisy sum of residuals in a cell of n rows is the curvature of the loss, about n p (1 - p), times what is missing from
the effect, plus noise that is known. Each further observation counts fully, earlier ones a little less, since the
other features have moved in between: the estimate averages the noise of all rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cloister.learn.rows import Floats

__all__ = ["Effect", "onto_total", "prior_precision"]

_WEAK = 0.1
_FORGETTING = 0.5
_MOST = 12.0
_ROW_VARIANCE = 1 / 6
"""The variance of a residual, roughly."""


def prior_precision(cells: int, *, is_ordered: bool, spread: float, roughness: float) -> Floats:
    """Return the inverse covariance of the effects beforehand."""
    if not is_ordered:
        return np.eye(cells) / spread**2
    steps = np.diff(np.eye(cells), axis=0)
    return np.asarray(np.eye(cells) * _WEAK / spread**2 + steps.T @ steps * (cells / roughness))


@dataclass(slots=True, eq=False)
class Effect:
    """The effect of a feature's cells on one score, as estimated so far."""

    precision: Floats
    value: Floats = field(init=False)
    known: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.value = np.zeros(len(self.precision))
        self.known = np.zeros(len(self.precision))

    def observe(self, sums: Floats, *, counts: Floats, doubt: float, curvature: float, deviation: float) -> None:
        """Take in a noisy sum of residuals in each cell.

        Args:
            sums: the sums.
            counts: noisy numbers of rows, at least zero.
            doubt: the deviation of the noise of the counts, which makes what the sums are compared with uncertain.
            curvature: of the loss of one row.
            deviation: of the noise of each sum.
        """
        slope = counts * curvature
        variance = deviation**2 + counts * _ROW_VARIANCE + (doubt * curvature) ** 2
        self.known = _FORGETTING * self.known + slope**2 / variance
        change = np.linalg.solve(self.precision + np.diag(self.known), slope / variance * sums)
        self.value = np.clip(self.value + change, -_MOST, _MOST)


def onto_total(noisy: Floats, total: float) -> Floats:
    """Return the closest numbers that are at least zero and add up to a total: noisy counts made consistent."""
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(noisy) + 1)
    last = int(np.flatnonzero(falling > excess).max(initial=0))
    return np.asarray(np.maximum(noisy - excess[last], 0.0))
