from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cloister.accounting.events import GaussianEvent, SequenceEvent
from cloister.core.random import random_source
from cloister.learn._encoding import encoding_of
from cloister.learn._rows import WeightedRows
from cloister.learn.linear._design import UNIT, LinearDesign
from cloister.learn.linear._gradient import _Gradients, learn_by_gradients, plan_gradients, signal, squared_residual
from cloister.mechanisms.calibration import NoiseCalibration

CALIBRATION = NoiseCalibration.of(epsilon=Fraction(1), delta=Fraction(1, 10**5))


def design(columns: int = 1, constant: int = UNIT // 2) -> LinearDesign:
    return LinearDesign.of(encoding_of([f"x{place}" for place in range(columns)], bounds=(-1, 1)), constant=constant)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_row_moves_a_gradient_by_no_more_than_the_noise_is_for(classes: int) -> None:
    """All tables of up to two rows on a small grid, all rows added to them, at weights small and huge."""
    found, bound = 0, design().squared_norm * squared_residual(classes)
    points = list(product((-1.0, 1.0), range(classes)))
    columns = 1 if classes == 2 else classes
    for scale in (0.0, 1.0, 30.0):
        weights = scale * np.linspace(-1, 1, 2 * columns).reshape(2, columns)
        for size in (0, 1, 2):
            for table in product(points, repeat=size):
                before = exactly(list(table), weights, classes)
                for added in points:
                    moved = exactly([*table, added], weights, classes) - before
                    found = max(found, int((moved.astype(object) ** 2).sum()))
    assert found <= bound
    assert found > 0.99 * bound


def exactly(table: list[tuple[float, int]], weights: NDArray[Any], classes: int) -> NDArray[Any]:
    features = np.array([[x] for x, _ in table]).reshape(len(table), 1)
    rows = WeightedRows(features, np.array([y for _, y in table], dtype=np.int64), np.ones(len(table), dtype=np.int64))
    return _Gradients(design(), design().rows(features), rows, classes).exactly(weights)


def test_weights_of_rows_are_the_rows_repeated() -> None:
    features, target = np.array([[0.2], [-0.7]]), np.array([1, 0])
    once = WeightedRows(features, target, np.array([3, 1]))
    many = WeightedRows(features[[0, 0, 0, 1]], target[[0, 0, 0, 1]], np.ones(4, dtype=np.int64))
    at = np.array([[0.4], [1.0]])
    results = [_Gradients(design(), design().rows(rows.features), rows, 2).exactly(at) for rows in (once, many)]
    assert (results[0] == results[1]).all()


def test_all_releases_together_cost_the_whole_budget_and_no_more() -> None:
    plan = plan_gradients(design(3), CALIBRATION, classes=2, rows=10_000, most=None, penalty=1.0)
    events = [plan.steps[0].event, *sequence(plan.steps[1].event)]
    spent = sum(1 / event.squared_multiplier for event in events if isinstance(event, GaussianEvent))
    assert len(events) == len(plan.gradients) + 1
    assert spent == 1 / CALIBRATION.squared_multiplier


def sequence(event: object) -> tuple[object, ...]:
    assert isinstance(event, SequenceEvent)
    return event.events


def test_noise_is_as_large_as_sensitivity_times_multiplier() -> None:
    plan = plan_gradients(design(3), CALIBRATION, classes=3, rows=10_000, most=1, penalty=1.0)
    (only,) = plan.gradients
    squared = CALIBRATION.squared_multiplier / Fraction(17, 20) * design(3).squared_norm * squared_residual(3)
    assert 0 <= only.squared_sigma - squared <= 5
    squared = CALIBRATION.squared_multiplier / Fraction(3, 20) * design(3).squared_moment
    assert 0 <= plan.moments.squared_sigma - squared <= 5


def test_more_rows_or_epsilon_mean_more_gradients_within_limits() -> None:
    numbers = [
        len(plan_gradients(design(3), CALIBRATION, classes=2, rows=rows, most=None, penalty=0.0).gradients)
        for rows in (1, 1000, 3000, 10**9)
    ]
    assert numbers[0] == 6
    assert sorted(set(numbers)) == numbers
    assert numbers[-1] == 48
    assert signal(design(3), CALIBRATION, 2000) == pytest.approx(
        2000 / math.sqrt(float(CALIBRATION.squared_multiplier) * 3.25 * 4)
    )


def test_with_hardly_any_noise_the_minimum_is_found() -> None:
    loud = NoiseCalibration.of(epsilon=Fraction(10**4), delta=Fraction(1, 100))
    features = np.array([[-0.8], [-0.3], [0.1], [0.9]])
    rows = WeightedRows(features[[0, 1, 2, 3] * 2], np.array([0, 0, 1, 1, 0, 1, 0, 1]), np.full(8, 500, dtype=np.int64))
    plan = plan_gradients(design(), loud, classes=2, rows=4000, most=None, penalty=1.0)
    weights = learn_by_gradients(design(), rows, plan, random_source(None), classes=2, intercept=True)
    steps = design().rows(rows.features) / UNIT
    probability = 1 / (1 + np.exp(-steps @ weights))
    gradient = steps.T @ (500 * (probability - rows.target[:, None])) + weights  # type: ignore[index]
    assert float(np.abs(gradient).max()) < 4
