"""Where k-means starts: at random in the box, spread out in it, or at the centers of a noisy sketch of the rows.

The first two do not look at the rows. A *sketch* is paid for: noisy second moments (see `_second_moments`) give the few
directions in which the rows differ most, and a noisy histogram of the rows along these directions is clustered as often
as one likes, without privacy, since it is released already (k-means++, Arthur and Vassilvitskii 2007). The idea to
cluster a noisy summary is that of Su, Cao, Li, Bertino and Jin (2016), to do so after a projection that of Balcan,
Dick, Liang, Mou and Zhang (2017).

Privacy: directions and cells follow from the noisy moments. They are whole numbers, as the rows are, so that the cell
of a row depends on nothing else. A row added or removed changes one cell by 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.learn._row_grid import RowGrid
from cloister.learn._second_moments import ReleasedMoments, SecondMoments, plan_moments
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise

__all__ = ["Sketch", "plan_sketch", "spread_centers", "uniform_centers"]

_DIRECTIONS = 4
_CELLS = 256
_FINE = 2**12
_REACH = 2.2
_COUNT = 2**8
_TRIES = 10
_ROUNDS = 20
_CANDIDATES = 64


# Without looking at the rows -----------------------------------------------------------------------------------------


def uniform_centers(grid: RowGrid, count: int, source: RandomSource) -> Floats:
    """Return random places at which rows can lie, in steps."""
    places = _uniform(source, (count, len(grid.origins))) * (grid.highs - grid.lows) + grid.lows
    return np.rint(grid.inside(np.asarray(places, dtype=np.float64)))


def spread_centers(grid: RowGrid, count: int, source: RandomSource) -> Floats:
    """Return random places far from each other: each is, of many, the one farthest from those before it."""
    drawn = uniform_centers(grid, _CANDIDATES * count, source)
    chosen = drawn[:1]
    while len(chosen) < count:
        nearest = _squared_distances(drawn, chosen).min(axis=1)
        chosen = np.concatenate([chosen, drawn[[int(nearest.argmax())]]])
    return chosen


# A paid sketch -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sketch:
    """A planned sketch."""

    grid: RowGrid
    moments: SecondMoments
    noise: StepNoise

    @property
    def steps(self) -> tuple[FitStep, ...]:
        """Return what is paid for."""
        return FitStep("second moments", self.moments.noise.event), FitStep("histogram of directions", self.noise.event)

    def centers(self, count: int, steps: Floats, weights: NDArray[np.int64], source: RandomSource) -> Floats:
        """Return centers to start from, in steps."""
        moments = self.moments.release(steps, weights, source)
        directions, spreads = _directions(moments, self.grid)
        middle = np.rint(moments.mean @ directions)
        ends, places = _cells(middle, spreads)
        cells = _cell_of(steps @ directions, ends)
        exactly = np.bincount(cells, weights=weights, minlength=len(places)).astype(np.int64) * _COUNT
        noisy = self.noise.add(exactly, source).astype(np.float64)
        # Cells that do not stand out of the noise would pull centers to where there are no rows.
        masses = np.where(noisy > self.noise.deviation, noisy, 0.0)
        if not masses.any():
            masses += 1.0
        found = cluster_points(places, masses, count, source)
        return np.rint(self.grid.inside(moments.mean + found @ (directions / _FINE).T / _FINE))


def plan_sketch(grid: RowGrid, calibration: NoiseCalibration, *, moments: Fraction, histogram: Fraction) -> Sketch:
    """Return the sketch that two shares buy."""
    return Sketch(
        grid=grid,
        moments=plan_moments(grid, grid.row_bounds, calibration, share=moments),
        noise=calibration.noise(histogram, sensitivity=_COUNT, squared_sensitivity=_COUNT**2),
    )


def _directions(moments: ReleasedMoments, grid: RowGrid) -> tuple[Floats, Floats]:
    """Return the directions of largest variance as whole numbers, and how far rows spread along them."""
    values, vectors = np.linalg.eigh(moments.covariance)
    kept = min(_DIRECTIONS, len(values))
    most = grid.row_bounds.squares / 4
    spreads = np.sqrt(np.clip(values[::-1][:kept], 1e-4 * most, most))
    return np.rint(vectors[:, ::-1][:, :kept] * _FINE), spreads * _FINE


def _cells(middle: Floats, spreads: Floats) -> tuple[Floats, Floats]:
    """Return the inner ends of the cells of each direction, and the middle of each cell, from the middle of all."""
    bins = int(_CELLS ** (1 / len(spreads)) + 1e-9)
    marks = np.linspace(-_REACH, _REACH, bins + 1)
    ends = np.rint(middle[:, None] + spreads[:, None] * marks[1:-1])
    centers = (marks[1:] + marks[:-1]) / 2
    places = np.stack(np.meshgrid(*[spread * centers for spread in spreads], indexing="ij"), axis=-1)
    return ends, places.reshape(-1, len(spreads))


def _cell_of(projected: Floats, ends: Floats) -> NDArray[np.int64]:
    bins = ends.shape[1] + 1
    cells = np.zeros(len(projected), dtype=np.int64)
    for direction, inner in enumerate(ends):
        cells = cells * bins + np.searchsorted(inner, projected[:, direction], side="right")
    return cells


# k-means of released points ------------------------------------------------------------------------------------------


def cluster_points(points: Floats, masses: Floats, count: int, source: RandomSource) -> Floats:
    """Return the best of several runs of k-means on points that are released already."""
    runs = [_one_run(points, masses, count, source) for _ in range(_TRIES)]
    losses = [float(_squared_distances(points, run).min(axis=1) @ masses) for run in runs]
    return runs[int(np.argmin(losses))]


def _one_run(points: Floats, masses: Floats, count: int, source: RandomSource) -> Floats:
    centers = points[[_draw_place(masses, source)]]
    while len(centers) < count:
        chances = _squared_distances(points, centers).min(axis=1) * masses
        centers = np.concatenate([centers, points[[_draw_place(chances if chances.any() else masses, source)]]])
    for _ in range(_ROUNDS):
        nearest = _squared_distances(points, centers).argmin(axis=1)
        members = (nearest[:, None] == np.arange(count)) * masses[:, None]
        totals = members.sum(axis=0)[:, None]
        moved = np.where(totals > 0, members.T @ points / np.maximum(totals, 1e-300), centers)
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


def _draw_place(chances: Floats, source: RandomSource) -> int:
    cumulated = np.cumsum(chances)
    place = np.searchsorted(cumulated, _uniform(source, (1,))[0] * cumulated[-1], side="right")
    return int(min(place, len(chances) - 1))


def _squared_distances(points: Floats, centers: Floats) -> Floats:
    return np.asarray(((points[:, None, :] - centers) ** 2).sum(axis=2))


def _uniform(source: RandomSource, shape: tuple[int, ...]) -> Floats:
    words = source.words(int(np.prod(shape)))
    return (words >> np.uint64(11)).astype(np.float64).reshape(shape) / 2.0**53
