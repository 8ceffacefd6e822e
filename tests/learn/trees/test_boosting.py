from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import cloister as cl
from cloister.accounting.events import DiscreteLaplaceEvent, GaussianEvent, RepeatedEvent
from cloister.core.random import SeededRandomSource, random_source
from cloister.errors import BudgetExceededError, MissingBoundsError, ParameterError
from cloister.learn import PrivateGradientBoosting
from cloister.learn.trees._splits import Sample
from cloister.learn.trees.boosting import WHOLE, Boosted, Boosting
from cloister.testing import check_scale
from cloister.testing.distributions import discrete_gaussian, discrete_laplace
from tests.learn.trees.models import planned, unexpected

COMMON = {"bounds": {"age": (0, 100)}, "domain": {"color": ["red", "blue"]}}


def _frame(rows=600):
    place = np.arange(rows)
    frame = pd.DataFrame({"age": place * 37 % 100, "color": np.where(place % 3 == 0, "red", "blue")})
    return frame, np.where(frame["age"] > 50, "yes", "no")


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_learns_what_is_clear(delta: float) -> None:
    X, y = _frame()
    model = PrivateGradientBoosting(epsilon=20, delta=delta, classes=["no", "yes"], **COMMON).fit(X, y)
    assert model.score(X, y) > 0.9
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "yes")).all()
    assert model.feature_importances_[0] > 0.7
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.guarantee_.holds


def test_several_classes() -> None:
    X, _ = _frame()
    y = np.digitize(X["age"], [33, 66])
    model = PrivateGradientBoosting(epsilon=30, classes=[0, 1, 2], rounds=4, **COMMON).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.decision_function(X).shape == (600, 3)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.intercept_.shape == (3,)


def test_keeps_noisy_numbers_only() -> None:
    X, y = _frame(60)
    model = PrivateGradientBoosting(epsilon=1, classes=["no", "yes"], **COMMON).fit(X, y)
    assert unexpected(model) == set()


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
def test_undeclared_values_one_class_and_tiny_epsilon() -> None:
    X, _ = _frame(30)
    X.loc[:9, "color"] = "green"
    model = PrivateGradientBoosting(epsilon=1e-6, classes=["no", "yes"], **COMMON).fit(X, ["no"] * 30)
    assert np.isfinite(model.predict_proba(X)).all()
    clear = PrivateGradientBoosting(epsilon=100, classes=["no", "yes"], **COMMON).fit(X, ["no"] * 30)
    assert set(clear.predict(X)) == {"no"}


def test_no_effects_have_no_importance() -> None:
    nothing = Boosted(np.array([0]), [np.zeros((1, 3), dtype=np.int64)] * 2, [np.ones(3)] * 2)
    assert nothing.importances().tolist() == [0.5, 0.5]


def test_rounds_follow_epsilon_and_delta() -> None:
    def rounds(**arguments):
        return planned(PrivateGradientBoosting(**arguments))[1].settings.rounds

    assert [rounds(epsilon=epsilon) for epsilon in (0.1, 1, 10)] == [1, 2, 4]
    assert [rounds(epsilon=epsilon, delta=1e-6) for epsilon in (0.1, 1, 10)] == [3, 3, 6]


def test_many_features_are_expected_to_matter_less() -> None:
    few, many = (planned(PrivateGradientBoosting(), width=width)[1].settings for width in (3, 44))
    assert (few.spread, few.roughness) == (1, 3)
    assert (many.spread, many.roughness) == pytest.approx((0.5**0.5, 1.5))
    given = planned(PrivateGradientBoosting(spread=2, roughness=5), width=44)[1].settings
    assert (given.spread, given.roughness) == (2, 5)


@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
def test_pure_shares_add_up(classes) -> None:
    _, plan = planned(PrivateGradientBoosting(epsilon=3, rounds=5), width=7, classes=classes)
    first, second, sums = (step.event for step in plan.steps)
    assert isinstance(sums, RepeatedEvent)
    assert isinstance(sums.event, DiscreteLaplaceEvent)
    assert sums.count == 35
    assert sums.event.sensitivity == WHOLE * (len(classes) - 1)
    assert (first.sensitivity, second.sensitivity) == (1, 7)
    assert first.epsilon + second.epsilon + 35 * sums.event.epsilon == 3


def test_gaussian_shares_add_up() -> None:
    model = PrivateGradientBoosting(epsilon=3, delta=1e-6, rounds=5)
    _, plan = planned(model, width=7)
    first, second, sums = (step.event for step in plan.steps)
    assert isinstance(first, GaussianEvent)
    total = 1 / first.squared_multiplier + 1 / second.squared_multiplier + 35 / sums.event.squared_multiplier
    assert total == 1 / model._calibration().squared_multiplier
    settings = plan.settings
    assert settings.bin_noise.squared_sigma >= 7 * second.squared_multiplier
    assert settings.sum_noise.squared_sigma >= WHOLE**2 * sums.event.squared_multiplier


# Noise ---------------------------------------------------------------------------------------------------------------


def _boosting(model, source=None):
    _, plan = planned(model)
    nothing = np.empty(0, dtype=np.int64)
    return Boosting(plan.settings, Sample(nothing.reshape(0, 1), nothing, nothing), source or random_source())


def _sums(boosting, size):
    cells = boosting.recipe.bins.cells[0]
    scores = np.empty((0, 1), dtype=np.int64)
    parts = [boosting._sums(scores, 0).ravel() for _ in range(-(-size // cells))]
    return np.rint(np.concatenate(parts)[:size] * WHOLE).astype(np.int64)


@pytest.mark.statistical
def test_sums_have_the_stated_noise() -> None:
    boosting = _boosting(PrivateGradientBoosting(epsilon=2, bins=1000, rounds=2))
    scale = WHOLE * 2 / (2 * (1 - Fraction(3, 100) - Fraction(1, 5)))
    check_scale(lambda size: _sums(boosting, size), discrete_laplace, scale=float(scale))


@pytest.mark.statistical
def test_sums_have_the_stated_gaussian_noise() -> None:
    model = PrivateGradientBoosting(epsilon=2, delta=1e-6, bins=1000, rounds=2)
    squared = WHOLE**2 * model._calibration().squared_multiplier * 2 / (1 - Fraction(3, 100) - Fraction(1, 10))
    check_scale(lambda size: _sums(_boosting(model), size), discrete_gaussian, scale=float(squared) ** 0.5)


@pytest.mark.statistical
def test_bin_counts_have_the_stated_noise(monkeypatch) -> None:
    monkeypatch.setattr("cloister.learn.trees.boosting.onto_total", lambda noisy, _: noisy)
    boosting = _boosting(PrivateGradientBoosting(epsilon=2, bins=1000))

    def draw(size):
        parts = [boosting._bin_counts(1.0)[0] for _ in range(-(-size // 1000))]
        return np.concatenate(parts)[:size].astype(np.int64)

    check_scale(draw, discrete_laplace, scale=2.5)


# Tables, ledger, refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_table_is_learned_from_as_its_rows_are(delta: float) -> None:
    X, y = _frame()
    table = cl.open_table(X.assign(label=y))
    arguments = {**COMMON, "classes": ["no", "yes"], "features": ["age", "color"], "delta": delta}
    models = [
        PrivateGradientBoosting(**arguments, random_state=SeededRandomSource(7)).fit(*data)
        for data in ((X, y), (table, "label"))
    ]
    assert (models[0].effects_ == models[1].effects_).all()
    assert (models[0].intercept_ == models[1].intercept_).all()


def test_the_ledger_is_charged_once_per_fit() -> None:
    X, y = _frame(30)
    ledger = cl.open_ledger("memory:")
    ledger.open_account("d", budget=cl.Budget(epsilon=3, delta=1e-5))
    model = PrivateGradientBoosting(
        epsilon=2, delta=1e-6, ledger=ledger, dataset="d", classes=["no", "yes"], **COMMON
    ).fit(X, y)
    assert 1.9 < ledger.spent("d").epsilon <= 2
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)


def test_public_facts_are_required() -> None:
    X, y = _frame(30)
    with pytest.raises(MissingBoundsError, match="bounds="):
        PrivateGradientBoosting(classes=["no", "yes"], domain=COMMON["domain"]).fit(X, y)
    with pytest.raises(MissingBoundsError, match="classes="):
        PrivateGradientBoosting(**COMMON).fit(X, y)


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ({"rounds": 0}, "at least 1"),
        ({"rounds": 1001}, "fewer rounds"),
        ({"spread": 0}, "from 0.001 to 1000"),
        ({"roughness": -1}, "from 0.001 to 1000"),
    ],
)
def test_odd_parameters_are_refused(wrong, fix: str) -> None:
    X, y = _frame(30)
    with pytest.raises(ParameterError, match=fix):
        PrivateGradientBoosting(classes=["no", "yes"], **COMMON, **wrong).fit(X, y)
