from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes

import cloister as cl
from cloister.accounting.events import GaussianEvent
from cloister.core.whole_rows import exact_product
from cloister.errors import MissingBoundsError, ParameterError, PrivacyParameterWarning
from cloister.learn import PrivateLinearRegression
from cloister.learn._encoding import encoding_of
from cloister.learn.linear._design import UNIT, LinearDesign
from cloister.mechanisms.calibration import NoiseCalibration
from tests.learn.linear.draws import Draws

Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def line(count: int = 3000) -> Arrays:
    draws = Draws(0)
    X = draws.uniform(count, 2) * [5, 1] + [5, 0]
    return X, 2 * X[:, 0] - 5 * X[:, 1] + 7 + draws.normal(count)


def model(**parameters: Any) -> PrivateLinearRegression:
    given = {"epsilon": 5, "delta": 1e-6, "bounds": ([0, -1], [10, 1]), "target_bounds": (0, 35), **parameters}
    return PrivateLinearRegression(**given)


METHODS: list[dict[str, Any]] = [{"method": "ridge"}, {"method": "functional", "delta": 0}, {"method": "adassp"}]


@pytest.mark.parametrize("parameters", METHODS)
def test_every_method_finds_the_line_in_its_units(parameters: dict[str, Any]) -> None:
    X, y = line()
    fitted = model(**{**parameters, "epsilon": 100}).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, [2, -5], rtol=0.05)
    assert fitted.intercept_ == pytest.approx(7, abs=0.5)
    assert fitted.method_ == parameters["method"]
    assert fitted.score(X, y) > 0.9


def test_auto_is_ridge_with_a_delta_and_functional_without() -> None:
    X, y = line(100)
    assert model().fit(X, y).method_ == "ridge"
    assert model(delta=0).fit(X, y).method_ == "functional"


def test_without_an_intercept_the_line_goes_through_zero() -> None:
    X, y = line()
    fitted = model(fit_intercept=False, epsilon=100).fit(X, y - 7)
    assert fitted.intercept_ == 0
    assert fitted.predict([[0.0, 0.0]]).tolist() == [0.0]
    np.testing.assert_allclose(fitted.coef_, [2, -5], rtol=0.05)


def test_regularization_shrinks() -> None:
    X, y = line()
    for method in ("ridge", "adassp"):
        fitted = model(method=method, regularization=1e7, epsilon=100).fit(X, y)
        assert np.abs(fitted.coef_).max() < 0.1


def test_one_row_moves_the_products_by_no_more_than_the_noise_is_for() -> None:
    """All rows at the ends and in between, with all targets; the moments are tested with the design."""
    design = LinearDesign.of(encoding_of(["a", "b"], bounds=(-1, 1)), constant=UNIT)
    largest = [0, 0]
    for a, b, y in product((-1.0, 0.3, 1.0), (-1.0, 1.0), (-UNIT, 17, UNIT)):
        moved = exact_product(design.rows(np.array([[a, b]])), np.array([[float(y)]]), np.array([1]), most=UNIT**2)
        found = [int(item) for item in moved[:, 0]]
        largest = [max(largest[0], sum(map(abs, found))), max(largest[1], sum(item**2 for item in found))]
    assert largest == [UNIT * design.norm, UNIT**2 * design.squared_norm]


def test_the_noise_costs_what_was_allowed() -> None:
    X, y = line(50)
    squared = NoiseCalibration.of(epsilon=Fraction(5), delta=Fraction(1, 10**6)).squared_multiplier
    halves = [step.event for step in model().fit(X, y).steps_]
    assert sum(1 / event.squared_multiplier for event in halves if isinstance(event, GaussianEvent)) == 1 / squared
    thirds = [step.event for step in model(method="adassp").fit(X, y).steps_]
    assert len(thirds) == 3
    assert sum(1 / event.squared_multiplier for event in thirds if isinstance(event, GaussianEvent)) <= 1 / squared
    (both,) = model(method="functional", delta=0).fit(X, y).steps_
    design = LinearDesign.of(encoding_of(["a", "b"], bounds=(-1, 1)), constant=UNIT)
    assert both.event.scale == Fraction(design.moment + UNIT * design.norm) / 5


def test_adassp_never_has_less_noise_than_its_share() -> None:
    X, y = line(50)
    steps = model(method="adassp", epsilon=100, delta=0.3).fit(X, y).steps_
    squared = NoiseCalibration.of(epsilon=Fraction(100), delta=Fraction(3, 10)).squared_multiplier
    assert {step.event.squared_multiplier for step in steps} == {3 * squared}


def test_the_smallest_eigenvalue_grows_by_no_more_than_the_norm() -> None:
    design, draws = LinearDesign.of(encoding_of(["a", "b"], bounds=(-1, 1)), constant=UNIT), Draws(1)
    for _ in range(200):
        rows = design.rows(draws.choice([-1.0, 0.5, 1.0], 6, 2))
        before, after = (
            np.linalg.eigvalsh(design.symmetric(design.moments(rows[:size], np.ones(size, dtype=np.int64))))[0]
            for size in (5, 6)
        )
        assert -1e-9 <= after - before <= design.squared_norm / UNIT**2 + 1e-9


def test_public_facts_and_a_delta_are_asked_for() -> None:
    X, y = line(20)
    with pytest.raises(MissingBoundsError, match="bounds"):
        model(bounds=None).fit(X, y)
    with pytest.raises(MissingBoundsError, match="bounds"):
        model(target_bounds=None).fit(X, y)
    for method in ("ridge", "adassp"):
        with pytest.raises(ParameterError, match="functional"):
            model(method=method, delta=0).fit(X, y)
    with pytest.raises(ParameterError, match="ridge"):
        model(method="least squares").fit(X, y)
    with pytest.raises(ParameterError, match="regularization"):
        model(regularization=-1).fit(X, y)


def test_a_table_is_learned_from_in_its_engine() -> None:
    import pyarrow as pa

    X, y = line(500)
    table = cl.open_table(pa.table({"a": np.round(X[:, 0]), "b": np.round(X[:, 1]), "y": np.round(y)}))
    bounds = {"a": (0, 10), "b": (-1, 1)}
    fitted = PrivateLinearRegression(epsilon=50, delta=1e-6, bounds=bounds, target_bounds=(0, 35)).fit(table, "y")
    assert fitted.coef_[0] == pytest.approx(2, abs=0.4)


def test_parameters_can_be_cloned() -> None:
    first = model(method="adassp", data_norm=12, regularization=1, fit_intercept=False)
    before = first.get_params()
    first.fit(*line(100))
    assert first.get_params() == before == clone(first).get_params()


@pytest.mark.slow
def test_ml_09_adassp_on_diabetes() -> None:
    """Published: medians over 100 splits of the score of weights without an intercept, y measured from its middle."""
    published = {0.5: -0.11, 1: -0.05, 2: 0.015, 5: 0.14, 10: 0.22}
    for epsilon, expected in published.items():
        assert diabetes(epsilon, method="adassp", fit_intercept=False) == pytest.approx(expected, abs=0.05)


@pytest.mark.slow
def test_the_default_is_better_than_adassp_on_diabetes() -> None:
    assert diabetes(1, splits=40) > 0.15
    assert diabetes(10, splits=40) > 0.35


def diabetes(epsilon: float, splits: int = 120, **parameters: Any) -> float:
    X, y = load_diabetes(return_X_y=True)
    scores, draws = [], Draws(0)
    for _ in range(splits):
        places = draws.permutation(442)
        known, unknown = places[:353], places[353:]
        fitted = model(
            epsilon=epsilon, delta=1e-5, bounds=(-1, 1), data_norm=0.35, target_bounds=(-160.5, 160.5), **parameters
        ).fit(X[known], y[known] - 185.5)
        scores.append(fitted.score(X[unknown], y[unknown] - 185.5))
    return float(np.median(scores))


@pytest.mark.slow
def test_many_rows_lose_little_on_adult(shared_data: Path) -> None:
    table = pyarrow.csv.read_csv(shared_data / "adult" / "adult.csv")
    X = np.stack([table[name].to_numpy() for name in ("age", "education-num", "hours-per-week")], axis=1).astype(float)
    y = np.array([str(value).strip().startswith(">") for value in table["salary-class"].to_pylist()]).astype(float)
    fitted = model(epsilon=1, delta=1e-5, bounds=([17, 1, 1], [90, 16, 100]), target_bounds=(0, 1)).fit(X, y)
    assert fitted.score(X, y) > 0.17


@pytest.mark.parametrize(("epsilon", "is_worse"), [(1, True), (2, True), (10, False)])
def test_a_model_worse_than_the_mean_is_said_by_preview_and_fit(epsilon: float, is_worse: bool) -> None:
    X, y = load_diabetes(return_X_y=True)
    rows, numbers = X[:353], y[:353]
    made = PrivateLinearRegression(epsilon=epsilon, bounds=(-0.2, 0.2), target_bounds=(25, 346))
    expected = made.preview(rows, numbers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.fit(rows, numbers)
    said = [str(item.message) for item in caught if issubclass(item.category, PrivacyParameterWarning)]
    assert said == ([expected.problem] if is_worse else [])
    assert (expected.problem is not None) == is_worse
    assert not is_worse or "worse predictions than from giving the same number" in str(expected.problem)
    assert expected.to_dict()["problem"] == expected.problem


def test_a_declared_number_of_rows_is_judged_for_tables_too() -> None:
    table = cl.open_table(pa.table({"x": [0.0, 1.0], "y": [0.0, 1.0]}))
    made = PrivateLinearRegression(epsilon=0.01, bounds={"x": (0, 1)}, target_bounds=(0, 1))
    assert made.preview(table, "y").problem is None
    assert "worse predictions" in str(made.set_params(expected_rows=300).preview(table, "y").problem)
    with pytest.raises(ParameterError, match="expected_rows"):
        made.set_params(expected_rows=0).preview(table, "y")
