"""The rounds of private k-means: which noise they add to the size and the sums of each cluster.

A row is in one cluster. It adds 1 to the size and itself to the sum, so what differs between the ways to spend the
epsilon of a round is only how it is divided, and in which unit sizes are counted:

- ``balanced``, the default: sizes and sums in one release, sizes weighed so that their noise matters as much as that of
  the sums. With a delta it is Gaussian, and all rounds are accounted together.
- ``dplloyd`` (Blum, Dwork, McSherry and Nissim 2005): one release of sizes and sums, where a size counts as one unit;
  for d numbers in [-r, r] the scale is (1 + d r) T / epsilon.
- ``lecture``: half of epsilon for sizes, half for sums; scales 2T / epsilon and 2T d r / epsilon. (The second is often
  printed without d, which holds for d = 1 only.)
- ``su`` (Su, Cao, Li, Bertino and Jin 2016): each feature has its share, and sizes cbrt(4 d 0.225**2) times as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.learn.grid import Grid
from cloister.learn.products import column_sums
from cloister.learn.rows import Floats, exact_product
from cloister.learn.second_moments import weight_of_count
from cloister.mechanisms.allowance import Allowance, Step, StepNoise

__all__ = ["SPLITS", "Round", "nearest_centers", "plan_round"]

SPLITS = ("balanced", "dplloyd", "lecture", "su")

_CERTAIN = 3.0
"""A center moves if its noisy size is so many standard deviations above 0."""


@dataclass(frozen=True, eq=False)
class Round:
    """What one round releases: the noise of sizes, and of the sums of groups of columns."""

    grid: Grid
    constant: int
    parts: tuple[tuple[slice, StepNoise, str], ...]
    """Columns, the size being the first, their noise, and what they are."""

    def steps(self, number: int) -> tuple[Step, ...]:
        """Return what a round pays for."""
        return tuple(Step(f"round {number}: {label}", noise.event) for _, noise, label in self.parts)

    @property
    def size_deviation(self) -> float:
        """Return the standard deviation of the noise of a size, in rows."""
        return self.parts[0][1].deviation / self.constant

    def sum_deviations(self) -> Floats:
        """Return the standard deviation of the noise of each sum, in steps."""
        found = np.zeros(1 + len(self.grid.origins))
        for columns, noise, _ in self.parts:
            found[columns] = noise.deviation
        return found[1:]

    def move(
        self, centers: Floats, steps: Floats, weights: NDArray[np.int64], source: RandomSource
    ) -> tuple[Floats, Floats]:
        """Return the centers after a round, and the noisy sizes; a center without enough rows stays."""
        nearest = nearest_centers(steps, centers)
        members = (nearest[:, None] == np.arange(len(centers))).astype(np.float64)
        sums = exact_product(steps, members, weights, most=self.grid.row_bounds.largest).T
        exactly = np.concatenate([self.constant * column_sums(members, weights, most=1)[:, None], sums], axis=1)
        noisy = np.zeros(exactly.shape)
        for part, noise, _ in self.parts:
            noisy[:, part] = noise.add(exactly[:, part], source).astype(np.float64)
        sizes = noisy[:, 0] / self.constant
        moved = self.grid.inside(noisy[:, 1:] / np.maximum(sizes, 1.0)[:, None])
        return np.where(self.enough(sizes)[:, None], np.rint(moved), centers), sizes

    def enough(self, sizes: Floats) -> NDArray[np.bool_]:
        """Return which noisy sizes stand out of the noise."""
        return sizes > max(1.0, _CERTAIN * self.size_deviation)


def nearest_centers(steps: Floats, centers: Floats) -> NDArray[np.int64]:
    """Return the position of the nearest center, the first of several; exactly, since all are whole numbers."""
    return np.asarray(((centers * centers).sum(axis=1) - 2.0 * (steps @ centers.T)).argmin(axis=1))


def plan_round(grid: Grid, allowance: Allowance, *, split: str, share: Fraction) -> Round:
    """Return one round that has a share of everything."""
    row, width = grid.row_bounds, len(grid.origins)
    everything = slice(0, width + 1)
    unit = max(1, round(grid.steps_per_unit))
    match split:
        case "balanced":
            constant = weight_of_count(row, width, pure=allowance.is_pure)
            noise = allowance.noise(
                share, sensitivity=row.total + constant, squared_sensitivity=row.squares + constant**2
            )
            return Round(grid, constant, ((everything, noise, "sizes and sums"),))
        case "dplloyd":
            together = allowance.laplace(share, sensitivity=unit + row.total)
            return Round(grid, unit, ((everything, together, "sizes and sums"),))
        case "lecture":
            sizes = allowance.laplace(share / 2, sensitivity=unit)
            sums = allowance.laplace(share / 2, sensitivity=row.total)
            return Round(grid, unit, ((slice(0, 1), sizes, "sizes"), (slice(1, width + 1), sums, "sums")))
        case _:
            return Round(grid, unit, _su_parts(grid, allowance, unit, share))


def _su_parts(grid: Grid, allowance: Allowance, unit: int, share: Fraction) -> tuple[tuple[slice, StepNoise, str], ...]:
    """Return sizes and each feature by itself; a category counts as one, since a row has one of its values at most."""
    count = len(grid.parts)
    ratio = Fraction(round((4 * count * 0.225**2) ** (1 / 3) * 2**20), 2**20)
    each = share / (count + ratio)
    parts: list[tuple[slice, StepNoise, str]] = [
        (slice(0, 1), allowance.laplace(share - count * each, sensitivity=unit), "sizes")
    ]
    for place, part in enumerate(grid.parts):
        noise = allowance.laplace(each, sensitivity=int(grid.limits[part].max()))
        parts.append((slice(part.start + 1, part.stop + 1), noise, f"sums of feature {place}"))
    return tuple(parts)
