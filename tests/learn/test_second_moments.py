from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cloister.core.random import random_source
from cloister.learn._encoding import Encoding
from cloister.learn._features import Categorical, Numeric
from cloister.learn._row_grid import grid_of
from cloister.learn._second_moments import column_sums, plan_moments
from cloister.mechanisms.calibration import NoiseCalibration

MIXED = Encoding((Numeric("age", 0, 1), Categorical("sex", ("f", "m"))))
ROWS = np.array([[0.1, 1, 0], [0.5, 0, 1], [0.9, 1, 0], [0.3, 0, 0]])


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_moments_are_those_of_the_rows_when_there_is_hardly_any_noise(delta: float) -> None:
    grid = grid_of(MIXED, scale="range")
    planned = plan_moments(grid, grid.row_bounds, NoiseCalibration.of(epsilon=10**8, delta=delta))
    weights = np.array([5, 0, 2, 1000], dtype=np.int64)
    steps = grid.steps(ROWS)
    found = planned.release(steps, weights, random_source())
    rows = np.repeat(steps, weights, axis=0)
    assert found.count == pytest.approx(1007, abs=1e-3)
    assert found.mean == pytest.approx(rows.mean(axis=0), abs=1)
    assert found.products == pytest.approx(rows.T @ rows / len(rows), rel=1e-3, abs=2**12)
    assert found.covariance == pytest.approx(np.cov(rows.T, bias=True), rel=1e-2, abs=2**10)
    assert found.products[1, 2] == 0


def test_numbers_beyond_64_bits_are_exact() -> None:
    grid = grid_of(MIXED, scale="range")
    planned = plan_moments(grid, grid.row_bounds, NoiseCalibration.of(epsilon=1))
    found = planned.release(grid.steps(ROWS), np.full(4, 2**40, dtype=np.int64), random_source())
    assert found.count == pytest.approx(2**42)
    assert found.mean == pytest.approx(grid.steps(ROWS).mean(axis=0), abs=1)


def test_sums_are_exact() -> None:
    columns = np.array([[1.0, -2.0], [3.0, 2.0**20]])
    assert column_sums(columns, np.array([2**40, 2**41]), most=2**20).tolist() == [7 * 2**40, 2**61 - 2**41]


def test_shares_are_shares() -> None:
    grid = grid_of(MIXED, scale="range")
    calibration = NoiseCalibration.of(epsilon=1)
    whole, half = (plan_moments(grid, grid.row_bounds, calibration, share=Fraction(1, part)) for part in (1, 2))
    assert half.noise.deviation == pytest.approx(2 * whole.noise.deviation)
