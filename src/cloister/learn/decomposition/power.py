"""The noisy power method: the main directions of X'X, a few columns at a time (Hardt and Price 2014).

Each iteration multiplies X'X with an orthonormal guess V, adds noise and orthonormalizes. There are far fewer noisy
numbers than in X'X when few directions are wanted of many columns, but each iteration is paid for.

Privacy: a row x moves (X'X) V by x (x'V), of Frobenius norm |x| |x'V| <= |x|**2 |V|, |V| being the spectral norm. The
guess is rounded to whole numbers of 2**-12 so that its spectral norm, bounded by the largest sum of absolute values in
a row of V'V, is at most 1; what follows from earlier releases is no secret. So the squared sensitivity is |x|**4 2**24.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.learn.grid import RowBounds
from cloister.learn.products import column_sums
from cloister.learn.rows import Floats, exact_product
from cloister.mechanisms.allowance import Allowance
from cloister.mechanisms.step_noise import GaussianSteps

__all__ = ["FirstMoments", "Power", "plan_first_moments", "plan_power", "whole_directions"]

_FINE = 2**12


@dataclass(frozen=True, eq=False)
class FirstMoments:
    """A planned release of the number of rows, and of the sums of columns if they are wanted."""

    noise: GaussianSteps
    constant: int
    largest: int
    centered: bool

    def release(self, steps: Floats, weights: NDArray[np.int64], source: RandomSource) -> tuple[float, Floats]:
        """Return the noisy number of rows, and their noisy mean or nothing but zeros, in steps."""
        exactly = np.zeros(1 + steps.shape[1] * self.centered, dtype=object)
        exactly[0] = self.constant * int(weights.sum())
        if self.centered:
            exactly[1:] = column_sums(steps, weights, most=self.largest)
        noisy = self.noise.add(exactly, source).astype(np.float64)
        count = max(1.0, noisy[0] / self.constant)
        if not self.centered:
            return count, np.zeros(steps.shape[1])
        return count, np.clip(noisy[1:] / count, -self.largest, self.largest)


def plan_first_moments(row: RowBounds, allowance: Allowance, *, share: Fraction, centered: bool) -> FirstMoments:
    """Return what a share buys; the number of rows weighs as much as half of a largest row."""
    constant = max(1, row.largest)
    moved = constant**2 + (row.squares if centered else 0)
    return FirstMoments(allowance.gaussian(share, squared_sensitivity=moved), constant, row.largest, centered)


@dataclass(frozen=True, eq=False)
class Power:
    """Planned iterations."""

    noise: GaussianSteps
    iterations: int
    largest: int

    def release(
        self,
        steps: Floats,
        weights: NDArray[np.int64],
        source: RandomSource,
        *,
        guess: Floats,
        mean: Floats,
        count: float,
    ) -> tuple[Floats, Floats]:
        """Return orthonormal directions and the variances along them, in steps, from a first guess and the moments."""
        exactly = exact_product(steps, steps, weights, most=self.largest**2).astype(object)
        variances = np.zeros(guess.shape[1])
        for _ in range(self.iterations):
            whole = whole_directions(guess)
            noisy = self.noise.add(np.asarray(exactly @ whole), source).astype(np.float64)
            moved = noisy / _FINE / count - np.outer(mean, mean @ (whole.astype(np.float64) / _FINE))
            guess, variances, _ = np.linalg.svd(moved, full_matrices=False)
        return guess, variances


def plan_power(row: RowBounds, allowance: Allowance, *, share: Fraction, iterations: int) -> Power:
    """Return iterations that have a share together."""
    noise = allowance.gaussian(share / iterations, squared_sensitivity=row.squares**2 * _FINE**2)
    return Power(noise, iterations, row.largest)


def whole_directions(guess: Floats) -> NDArray[Any]:
    """Return directions in whole numbers of 2**-12, of spectral norm at most 1; exactly."""
    factor = float(_FINE)
    while True:
        whole = np.trunc(guess * factor).astype(np.int64).astype(object)
        if max(sum(map(abs, row)) for row in whole.T @ whole) <= _FINE**2:
            return np.asarray(whole)
        factor *= 0.995
