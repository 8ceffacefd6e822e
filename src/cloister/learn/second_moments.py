"""The noisy number of rows, their mean and their covariance, from one release of all products of columns.

Dwork, Talwar, Thakurta and Zhang (2014, "Analyze Gauss") put Gaussian noise on the upper triangle of X'X. Here a
constant column stands before X, so that the number of rows and the sums of columns are in the same release.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP without a delta, for one row added or removed. A row z of whole steps,
constant included, moves the upper triangle by exactly (|z|_1**2 + |z|_2**2) / 2 in L1 and by
(|z|_2**4 + |z|_4**4) / 2 in squared L2, which is at most |z|_2**4, the squared Frobenius norm of zz'. Both grow with
every entry of z, so the largest row gives the bound. Products of two indicators of one category are 0 in every row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.learn.grid import Grid, RowBounds
from cloister.learn.products import Products, products_of
from cloister.learn.rows import Floats
from cloister.mechanisms.allowance import Allowance, StepNoise

__all__ = ["Moments", "SecondMoments", "plan_moments", "weight_of_count"]


@dataclass(frozen=True, eq=False)
class Moments:
    """Released: the number of rows, their mean, and their mean product of columns, in steps; and the noise of these."""

    count: float
    mean: Floats
    products: Floats
    deviation: float

    @property
    def covariance(self) -> Floats:
        """Return the mean product of columns around the mean."""
        return np.asarray(self.products - np.outer(self.mean, self.mean))


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """A planned release."""

    grid: Grid
    largest: int
    constant: int
    centered: bool
    noise: StepNoise

    def release(self, steps: Floats, weights: NDArray[np.int64], source: RandomSource) -> Moments:
        """Return the moments of rows of steps, with noise."""
        return self.release_products(products_of(steps, weights, most=self.largest), source)

    def release_products(self, exactly: Products, source: RandomSource) -> Moments:
        """Return the moments that follow from products of columns, with noise."""
        width = len(self.grid.origins)
        is_wide = exactly.count * max(self.largest, self.constant) ** 2 >= 2**62
        full = np.zeros((width + 1, width + 1), dtype=object if is_wide else np.int64)
        full[1:, 1:] = exactly.products
        full[0, 1:] = self.constant * (exactly.sums.astype(object) if is_wide else exactly.sums)
        full[0, 0] = self.constant**2 * exactly.count
        above = np.triu_indices(width + 1)
        if not self.centered:
            kept = (above[0] > 0) | (above[1] == 0)
            above = above[0][kept], above[1][kept]
        noisy = np.zeros(full.shape)
        noisy[above] = self.noise.add(full[above], source).astype(np.float64)
        return self._moments(noisy + np.triu(noisy, 1).T)

    def _moments(self, products: Floats) -> Moments:
        count = max(1.0, products[0, 0] / self.constant**2)
        mean = self.grid.inside(products[:1, 1:] / self.constant / count)[0] if self.centered else np.zeros(0)
        return Moments(
            count=count,
            mean=mean,
            products=np.where(self.grid.structure(), products[1:, 1:], 0.0) / count,
            deviation=self.noise.deviation / count,
        )


def weight_of_count(row: RowBounds, width: int, *, pure: bool) -> int:
    """Return how many steps one row counts as, so that the number of rows neither has nor causes much noise."""
    root = math.isqrt(width)
    return max(1, row.total // root if pure else math.isqrt(row.squares // root))


def plan_moments(
    grid: Grid, row: RowBounds, allowance: Allowance, *, share: Fraction = Fraction(1), centered: bool = True
) -> SecondMoments:
    """Return what a share buys.

    Args:
        grid: the columns.
        row: how large a row can be.
        allowance: what may be spent.
        share: which part of it.
        centered: whether the sums of columns are wanted too.
    """
    constant = weight_of_count(row, len(grid.origins), pure=allowance.is_pure)
    return SecondMoments(
        grid=grid,
        largest=row.largest,
        constant=constant,
        centered=centered,
        noise=allowance.noise(
            share,
            sensitivity=_moved(row, constant, centered=centered),
            squared_sensitivity=_moved_squared(row, constant, centered=centered),
        ),
    )


def _moved(row: RowBounds, constant: int, *, centered: bool) -> int:
    if not centered:
        return constant**2 + -(-(row.total**2 + row.squares) // 2)
    return -(-((row.total + constant) ** 2 + row.squares + constant**2) // 2)


def _moved_squared(row: RowBounds, constant: int, *, centered: bool) -> int:
    if not centered:
        return constant**4 + -(-(row.squares**2 + row.fourths) // 2)
    return -(-((row.squares + constant**2) ** 2 + row.fourths + constant**4) // 2)
