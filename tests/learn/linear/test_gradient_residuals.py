from __future__ import annotations

import numpy as np
import pytest

from cloister.learn.linear._design import UNIT
from cloister.learn.linear._gradient import ONE, WeightGrid, binary_residuals, class_residuals, squared_residual


def test_residuals_are_probability_less_truth() -> None:
    grid = WeightGrid(2)
    steps = np.array([[UNIT, 0], [0, UNIT], [-UNIT, UNIT]], dtype=float)
    logits = grid.logits(steps, grid.whole(np.array([[1.0], [-2.0]])))
    residuals = binary_residuals(logits, np.array([0, 1, 1])) / ONE
    expected = 1 / (1 + np.exp([-1.0, 2.0, 3.0])) - [0, 1, 1]
    np.testing.assert_allclose(residuals[:, 0], expected, atol=5e-4)


def test_class_residuals_are_the_softmax_less_truth() -> None:
    grid = WeightGrid(1)
    logits = grid.logits(np.array([[float(UNIT)]] * 3), grid.whole(np.array([[1.0, 0.0, -1.0]])))
    masses = np.exp([1.0, 0.0, -1.0])
    np.testing.assert_allclose(
        class_residuals(logits, np.arange(3)) / ONE, masses / masses.sum() - np.eye(3), atol=5e-4
    )


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_no_residual_is_larger_than_its_bound(classes: int) -> None:
    ends = np.array([-(2**15), -2000, -1, 0, 7, 900, 2**15])
    columns = 1 if classes == 2 else classes
    logits = np.stack(np.meshgrid(*[ends] * columns), axis=-1).reshape(-1, columns)
    residuals = binary_residuals if classes == 2 else class_residuals
    largest = max(
        int((residuals(logits, np.full(len(logits), place)) ** 2).sum(axis=1).max()) for place in range(classes)
    )
    assert 0.99 * squared_residual(classes) < largest <= squared_residual(classes)


def test_a_row_has_one_residual_wherever_it_stands() -> None:
    steps = np.tile([[UNIT, -123.0, 7.0]], (1001, 1))
    grid = WeightGrid(3)
    weights = grid.whole(np.array([[0.3, -1.7, 0.9], [2.0, 0.1, 5.5], [1e6, -1e6, 3.0]]))
    assert len(np.unique(class_residuals(grid.logits(steps, weights), np.ones(1001, dtype=int)), axis=0)) == 1


def test_logits_are_exact_at_the_largest_weights_and_widths() -> None:
    for width in (1, 50, 3000):
        grid = WeightGrid(width)
        whole = grid.whole(np.full((width, 1), 1e9))
        assert float(np.abs(whole).max()) * UNIT * width < 2**53
