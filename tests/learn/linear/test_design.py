from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from cloister.errors import ParameterError
from cloister.learn._encoding import Encoding, encoding_of
from cloister.learn.linear._design import UNIT, LinearDesign


@pytest.fixture
def mixed() -> Encoding:
    return encoding_of(["age", "sex"], bounds={"age": (20, 40)}, domain={"sex": ["f", "m"]}, named=True)


def rows_of(encoding: Encoding) -> np.ndarray[Any, Any]:
    """All rows at the ends, the middle and beyond, with each category and none."""
    return np.array(
        [[age, *sex] for age, sex in product((0, 20, 30, 33, 40, 99), ((1, 0), (0, 1), (0, 0)))], dtype=float
    )


def test_numbers_are_measured_from_the_middle_and_categories_from_nothing(mixed: Encoding) -> None:
    design = LinearDesign.of(mixed, constant=UNIT)
    steps = design.rows(np.array([[30.0, 0, 1], [40.0, 1, 0], [15.0, 0, 0]]))
    assert steps.tolist() == [[0, 0, UNIT, UNIT], [UNIT, UNIT, 0, UNIT], [-UNIT, 0, 0, UNIT]]


def test_without_an_intercept_zero_stays_zero(mixed: Encoding) -> None:
    design = LinearDesign.of(mixed, constant=0, centered=False)
    assert design.width == 3
    assert design.rows(np.array([[20.0, 0, 1]])).tolist() == [[UNIT // 2, 0, UNIT]]
    coefficients, intercepts = design.in_units(np.array([[1.0], [2.0], [3.0]]))
    assert coefficients.tolist() == [[1 / 40, 2.0, 3.0]]
    assert intercepts.tolist() == [0.0]


@pytest.mark.parametrize("constant", [0, UNIT // 2, UNIT])
@pytest.mark.parametrize("norm", [None, Fraction(1, 2), 30])
def test_no_row_is_longer_than_the_public_bounds(mixed: Encoding, constant: int, norm: Any) -> None:
    design = LinearDesign.of(mixed, constant=constant, data_norm=norm)
    for steps in design.rows(rows_of(mixed)).astype(int).tolist():
        products = [a * b for place, a in enumerate(steps) for b in steps[place:]]
        assert sum(item * item for item in steps) <= design.squared_norm
        assert sum(map(abs, steps)) <= design.norm
        assert sum(item * item for item in products) <= design.squared_moment
        assert sum(map(abs, products)) <= design.moment


def test_the_bounds_of_moments_are_reached_but_for_what_the_diagonal_saves(mixed: Encoding) -> None:
    design = LinearDesign.of(mixed, constant=UNIT)
    steps = design.rows(np.array([[40.0, 1, 0]])).astype(int).tolist()[0]
    products = [a * b for place, a in enumerate(steps) for b in steps[place:]]
    assert sum(item * item for item in products) == design.squared_moment - 1
    assert sum(products) == design.moment - 1


def test_moments_leave_out_what_is_zero_by_itself_and_come_back_as_a_matrix(mixed: Encoding) -> None:
    design = LinearDesign.of(mixed, constant=UNIT)
    steps, weights = design.rows(rows_of(mixed)), np.arange(1, 19)
    matrix = design.symmetric(design.moments(steps, weights))
    assert design.free_pairs.sum() == 9
    np.testing.assert_array_equal(matrix, (steps.T * weights) @ steps / UNIT**2)


def test_one_row_moves_moments_by_its_own_products(mixed: Encoding) -> None:
    design = LinearDesign.of(mixed, constant=UNIT)
    steps = design.rows(rows_of(mixed))
    without = design.moments(steps[1:], np.ones(17, dtype=np.int64))
    moved = design.moments(steps, np.ones(18, dtype=np.int64)) - without
    assert (moved == np.outer(steps[0], steps[0])[design.free_pairs]).all()


def test_weights_come_back_in_the_units_of_the_features(mixed: Encoding) -> None:
    design, rows = LinearDesign.of(mixed, constant=UNIT // 2), rows_of(mixed)[6:]
    weights = np.array([[1.0], [2.0], [-3.0], [0.5]])
    coefficients, intercepts = design.in_units(weights)
    inside = np.clip(rows, *mixed.bounds)
    np.testing.assert_allclose(inside @ coefficients.T + intercepts, design.rows(rows) @ weights / UNIT, atol=1e-3)


def test_a_norm_scales_all_columns_alike_and_limits_the_constant(mixed: Encoding) -> None:
    assert LinearDesign.of(mixed, constant=UNIT, data_norm=2).constant == UNIT // 2
    assert LinearDesign.of(mixed, constant=UNIT, data_norm=0.1).constant == UNIT
    with pytest.raises(ParameterError, match="data_norm"):
        LinearDesign.of(mixed, constant=UNIT, data_norm=0)
