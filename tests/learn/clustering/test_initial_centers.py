from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.core.random import SeededRandomSource, random_source
from cloister.learn._encoding import Encoding
from cloister.learn._features import Categorical, Numeric
from cloister.learn._row_grid import grid_of
from cloister.learn.clustering._initial_centers import cluster_points, plan_sketch, spread_centers, uniform_centers
from cloister.mechanisms.calibration import NoiseCalibration

MIXED = Encoding((Numeric("age", 0, 100), Categorical("sex", ("f", "m")), Numeric("gain", 10, 1000)))
GRID = grid_of(MIXED, scale="range")


def sketch(**options: Any) -> Any:
    calibration = NoiseCalibration.of(**{"epsilon": 100, **options})
    return plan_sketch(GRID, calibration, moments=Fraction(1, 2), histogram=Fraction(1, 2))


@pytest.mark.parametrize("start", [uniform_centers, spread_centers])
def test_free_centers_lie_where_rows_can(start: Any) -> None:
    centers = start(GRID, 20, random_source())
    assert centers.shape == (20, 4)
    assert (centers == np.rint(centers)).all()
    assert ((centers >= GRID.lows) & (centers <= GRID.highs)).all()
    assert (centers[:, 1:3].sum(axis=1) <= 2**15 + 2).all()


def test_packed_centers_are_farther_apart() -> None:
    def nearest(centers: Any) -> float:
        distances = ((centers[:, None] - centers) ** 2).sum(axis=2) + np.diag([np.inf] * len(centers))
        return float(np.sqrt(distances.min()))

    line = grid_of(Encoding((Numeric("x", 0, 1), Numeric("y", 0, 1))), scale="range")
    for seed in range(5):
        packed, drawn = (
            nearest(start(line, 6, SeededRandomSource(seed))) for start in (spread_centers, uniform_centers)
        )
        assert packed > drawn


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_sketch_finds_groups(delta: float) -> None:
    rows = np.array([[10.0, 1, 0, 100], [90.0, 0, 1, 100], [50.0, 0, 1, 900]])
    steps, weights = GRID.steps(rows), np.array([3000, 2000, 1000], dtype=np.int64)
    centers = sketch(delta=delta).centers(3, steps, weights, random_source())
    distances = ((steps[:, None] - centers) ** 2).sum(axis=2) / 2**30
    assert distances.min(axis=1).max() < 0.1
    assert len(set(distances.argmin(axis=1))) == 3


def test_a_sketch_pays_for_moments_and_histogram() -> None:
    labels = [step.label for step in sketch().steps]
    assert labels == ["second moments", "histogram of directions"]


@dataclass
class Silence:
    """Noise of which nothing stands out."""

    deviation: float = np.inf

    def add(self, values: Any, source: Any) -> Any:  # as noise has it
        return values


def test_a_sketch_without_anything_in_it_still_has_centers() -> None:
    quiet = replace(sketch(), noise=Silence())
    centers = quiet.centers(5, np.zeros((0, 4)), np.zeros(0, dtype=np.int64), random_source())
    assert centers.shape == (5, 4)
    assert np.isfinite(centers).all()


def test_released_points_are_clustered_by_mass() -> None:
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    found = cluster_points(points, np.array([1.0, 3.0, 2.0, 2.0]), 2, random_source())
    assert sorted(found[:, 0].tolist()) == pytest.approx([0.75, 10.5])
    more = cluster_points(points[:1], np.ones(1), 3, random_source())
    assert more[:, 0].tolist() == [0, 0, 0]
