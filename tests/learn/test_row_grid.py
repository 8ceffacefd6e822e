from __future__ import annotations

import itertools

import numpy as np
import pytest

from cloister.errors import ParameterError
from cloister.learn._encoding import Encoding
from cloister.learn._features import Categorical, Numeric
from cloister.learn._row_grid import BITS, grid_of

MIXED = Encoding((Numeric("age", 0, 100), Categorical("sex", ("f", "m", "x")), Numeric("gain", 10, 1000)))
ROWS = np.array(
    [
        [age, *(float(place == code) for place in range(3)), gain]
        for age, code, gain in itertools.product([-5.0, 0, 33, 100, 200], [0, 1, 2, 3], [10.0, 500, 1000])
    ]
)


@pytest.mark.parametrize(
    ("scale", "origin"), [("range", "inside"), ("given", "inside"), ("given", "middle"), ("given", "zero")]
)
def test_no_row_is_larger_than_its_bounds_and_some_row_is_as_large(scale: str, origin: str) -> None:
    grid = grid_of(MIXED, scale=scale, origin=origin)
    steps = grid.steps(ROWS)
    assert (steps == np.rint(steps)).all()
    bounds = grid.row_bounds
    for bound, found in (
        (bounds.total, np.abs(steps).sum(axis=1)),
        (bounds.squares, (steps**2).sum(axis=1)),
        (bounds.fourths, (steps**4).sum(axis=1)),
        (bounds.largest, np.abs(steps).max(axis=1)),
    ):
        assert found.max() <= bound
        assert found.max() >= 0.99 * bound


def test_shrunk_rows_keep_to_the_norm() -> None:
    grid = grid_of(MIXED, scale="range")
    most = int(0.6 * 2**BITS)
    steps, bounds = grid.steps(ROWS, most=most), grid.row_bounds.limited(most, 5)
    assert (steps**2).sum(axis=1).max() <= bounds.squares == most**2
    assert np.abs(steps).sum(axis=1).max() <= bounds.total
    assert (steps**4).sum(axis=1).max() <= bounds.fourths
    assert np.abs(steps).max() <= bounds.largest
    assert grid.row_bounds.limited(10**9, 5).squares == grid.row_bounds.squares


@pytest.mark.parametrize("scale", ["range", "given"])
def test_values_come_back(scale: str) -> None:
    grid = grid_of(MIXED, scale=scale)
    inside = np.clip(ROWS, *MIXED.bounds)
    assert grid.values(grid.steps(ROWS)) == pytest.approx(inside, abs=float(grid.sizes.max()))


def test_each_row_is_placed_by_itself() -> None:
    grid = grid_of(MIXED, scale="range")
    many = np.tile(ROWS, (100, 1))
    assert (grid.steps(many)[-len(ROWS) :] == grid.steps(ROWS)).all()
    assert (grid.steps(ROWS[[7]]) == grid.steps(ROWS)[[7]]).all()


def test_centers_are_brought_to_where_means_can_lie() -> None:
    grid = grid_of(MIXED, scale="range")
    one = 2**BITS
    places = np.array([[9 * one, 0.7 * one, 0.6 * one, -0.1 * one, -9 * one], [0, 0.2 * one, -one, 0.1 * one, 0]])
    found = grid.inside(places) / one
    assert found[0] == pytest.approx([0.5, 0.55, 0.45, 0, -0.5], abs=1e-4)
    assert found[1] == pytest.approx([0, 0.2, 0, 0.1, 0])


def test_indicators_of_one_category_never_meet() -> None:
    assert grid_of(MIXED, scale="range").structure().sum() == 25 - 6
    assert grid_of(MIXED, scale="given", origin="middle").structure().all()


@pytest.mark.parametrize("scale", ["range", "given"])
def test_huge_numbers_are_clipped_without_a_word(scale: str) -> None:
    grid = grid_of(MIXED, scale=scale)
    huge = np.array([[1e308, 0, 0, 0, -1e308], [np.inf, 0, 0, 0, -np.inf]])
    assert (grid.steps(huge) == grid.steps(np.array([[200.0, 0, 0, 0, -200]]))).all()


def test_bounds_that_are_far_away_are_refused_before_anybody_looks() -> None:
    far = Encoding((Numeric("age", 0, 100), Numeric("second", 1e9, 1e9 + 1e-3)))
    with pytest.raises(ParameterError, match="center="):
        grid_of(far, scale="range", origin="zero")
