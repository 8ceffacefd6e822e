"""Private networks: what they learn, what they pay, how much noise they add, and what they refuse."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cloister as cl
from cloister.accounting.events import SequenceEvent
from cloister.core.random import SeededRandomSource, SystemRandomSource, integers_below
from cloister.errors import (
    BudgetExceededError,
    MissingBoundsError,
    ParameterError,
    PrivacyParameterWarning,
    PrivacyRefutedError,
    SeededRandomnessWarning,
)
from cloister.learn import PrivateMLP, PrivateMLPRegressor
from cloister.learn._encoding import Encoding
from cloister.learn._features import Numeric
from cloister.learn._public_facts import PublicFacts, TargetFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import TrainingPlan
from cloister.learn.neural import mlp
from cloister.mechanisms.step_noise import GaussianSteps
from cloister.testing.audit import audit
from cloister.testing.distributions import gaussian
from cloister.testing.statistics import check_scale
from tests.support.releases import composed

FEW: dict[str, Any] = {"epsilon": 5, "delta": 1e-6, "expected_rows": 1000, "sample_rate": 0.2, "epochs": 4}
SIDES: dict[str, Any] = {"bounds": (0, 1), "classes": ["left", "right"]}
SOURCE = SystemRandomSource()


def points(count: int = 1000, *, width: int = 2, seed: int = 3) -> np.ndarray:
    return integers_below(SeededRandomSource(seed), 10**6, count * width).reshape(count, width) / 10**6


def sides(rows: np.ndarray) -> np.ndarray:
    return np.where(rows[:, 0] + rows[:, 1] > 1, "right", "left")


def facts_of(width: int, classes: tuple[Any, ...] = (0, 1)) -> PublicFacts:
    features = tuple(Numeric(f"x{place}", 0.0, 1.0) for place in range(width))
    return PublicFacts(Encoding(features), TargetFacts(classes=classes))


# Learning ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"hidden_layer_sizes": (8,)}, {"hidden_layer_sizes": 6, "activation": "relu"}])
@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_networks_learn(options: dict[str, Any], solver: str) -> None:
    X = points()
    model = PrivateMLP(**{**FEW, "epsilon": 20, "epochs": 20}, **SIDES, solver=solver, **options).fit(X, sides(X))
    others = points(seed=4)
    assert model.score(others, sides(others)) > 0.85
    chances = model.predict_proba(others)
    assert np.allclose(chances.sum(axis=1), 1)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(others)).all()
    assert model.guarantee_.holds
    assert model.guarantee_.brief() == "epsilon = 20, delta = 1e-06 per row"


def test_three_classes_and_the_shape_of_the_model() -> None:
    X = points()
    y = np.digitize(X[:, 0], [0.33, 0.66])
    options = {**FEW, "epsilon": 50, "epochs": 40, "hidden_layer_sizes": (8,)}
    model = PrivateMLP(bounds=(0, 1), classes=[0, 1, 2], **options).fit(X, y)
    assert model.score(X, y) > 0.7
    assert [item.shape for item in model.coefs_] == [(2, 8), (8, 3)]
    assert [item.shape for item in model.intercepts_] == [(8,), (3,)]
    assert model.widths_.tolist() == [8]


def test_numbers_are_learned() -> None:
    X = points()
    y = 100 + 50 * X[:, 0]
    model = PrivateMLPRegressor(bounds=(0, 1), target_bounds=(100, 200), **{**FEW, "epsilon": 50, "epochs": 40})
    assert model.fit(X, y).score(X, y) > 0.6
    assert ((model.predict(X) >= 100) & (model.predict(X) <= 200)).all()


def test_huge_targets_of_a_table_are_clipped_without_a_word() -> None:
    table = cl.open_table(pa.table({"x": [0.0, 1.0, 1.0], "y": [1e308, -1e308, 0.5]}))
    few: dict[str, Any] = {**FEW, "epochs": 0.2}
    model = PrivateMLPRegressor(bounds={"x": (0, 1)}, target_bounds=(0, 0.1), **few).fit(table, "y")
    assert np.isfinite(model.parameters_).all()


def test_rows_may_be_few_or_samples_empty() -> None:
    model = PrivateMLP(**FEW, **SIDES).fit([[0.0, 0.0]], ["left"])
    assert np.isfinite(model.parameters_).all()


def test_counted_tables_are_learned_from() -> None:
    rows = pa.table({"x": [0.1, 0.9] * 500, "side": ["left", "right"] * 500})
    model = PrivateMLP(**{**FEW, "epsilon": 20, "epochs": 20}, bounds={"x": (0, 1)}, classes=["left", "right"]).fit(
        cl.open_table(rows), "side"
    )
    assert model.predict_proba(cl.open_table(pa.table({"x": [0.0, 1.0]})))[:, 1].argmax() == 1


def test_a_penalty_shrinks_the_parameters() -> None:
    X = points()
    options = {**FEW, "epsilon": 50, "epochs": 20, "solver": "sgd", "learning_rate": 2}
    sizes = [
        np.abs(PrivateMLP(**options, **SIDES, penalty=penalty).fit(X, sides(X)).parameters_).sum()
        for penalty in (0, 0.3)
    ]
    assert sizes[1] < sizes[0] / 2


# Paying --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1000, None])
def test_the_ledger_is_paid_before_and_the_event_fits(rows: int | None) -> None:
    X = points()
    with cl.open_ledger("memory:") as ledger:
        ledger.open_account("d", budget=cl.Budget(epsilon=6, delta=1e-5), unit="row", adjacency="add_remove")
        model = PrivateMLP(**{**FEW, "expected_rows": rows}, **SIDES, ledger=ledger, dataset="d")
        model.fit(X, sides(X))
        assert ledger.remaining("d").epsilon == 1
        with pytest.raises(BudgetExceededError, match="epsilon"):
            model.fit(X, sides(X))
    event = SequenceEvent(events=tuple(step.event for step in model.steps_))
    assert Fraction(9, 10**7) < composed(event, epsilon=5).delta <= Fraction(1, 10**6)
    assert [step.label for step in model.steps_][:-1] == ([] if rows else ["number of rows"])


def test_a_replaced_row_is_two_rows() -> None:
    X = points()
    found = []
    for adjacency in ("add_remove", "replace"):
        model = PrivateMLP(**FEW, **SIDES, adjacency=adjacency).fit(X, sides(X))
        event = SequenceEvent(events=tuple(step.event for step in model.steps_))
        found.append(composed(event, delta=1e-6).epsilon)
        assert model.guarantee_.adjacency == adjacency
    assert found[1] < found[0] / 2


def test_steps_do_not_depend_on_the_rows() -> None:
    X = points()
    many = PrivateMLP(**FEW, **SIDES).fit(X, sides(X)).steps_
    assert PrivateMLP(**FEW, **SIDES).fit(X[:7], sides(X[:7])).steps_ == many


def test_a_seed_breaks_the_promise_and_repeats_the_model() -> None:
    X = points()
    with pytest.warns(SeededRandomnessWarning):
        first = PrivateMLP(**FEW, **SIDES, random_state=1).fit(X, sides(X))
    with pytest.warns(SeededRandomnessWarning):
        second = PrivateMLP(**FEW, **SIDES, random_state=1).fit(X, sides(X))
    assert not first.guarantee_.holds
    assert (first.parameters_ == second.parameters_).all()
    assert (PrivateMLP(**FEW, **SIDES).fit(X, sides(X)).parameters_ != second.parameters_).any()


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"delta": 0}, "delta=1e-6"),
        ({"activation": "sigmoid"}, "tanh"),
        ({"solver": "lbfgs"}, "adam"),
        ({"clip": 0}, "clip"),
        ({"epochs": -1}, "epochs"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"momentum": 2}, "momentum"),
        ({"penalty": -1}, "penalty"),
        ({"average": -1}, "average"),
        ({"hidden_layer_sizes": (20_000,)}, "fewer features"),
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes"),
        ({"sample_rate": 2}, "sample_rate"),
        ({"batch_size": 3}, "sample_rate alone"),
    ],
)
def test_bad_parameters_are_refused_before_paying(options: dict[str, Any], fix: str) -> None:
    X = points(10)
    with cl.open_ledger("memory:") as ledger:
        ledger.open_account("d", budget=cl.Budget(epsilon=6, delta=1e-5), unit="row", adjacency="add_remove")
        with pytest.raises(ParameterError, match=fix):
            PrivateMLP(**{**FEW, **options}, **SIDES, ledger=ledger, dataset="d").fit(X, sides(X))
        assert ledger.remaining("d").epsilon == 6


def test_bounds_and_classes_are_never_read_from_the_data() -> None:
    X = points(10)
    with pytest.raises(MissingBoundsError, match="bounds"):
        PrivateMLP(**FEW, classes=["left", "right"]).fit(X, sides(X))
    with pytest.raises(MissingBoundsError, match="classes"):
        PrivateMLP(**FEW, bounds=(0, 1)).fit(X, sides(X))


def test_hopeless_plans_warn_before_paying() -> None:
    X = points(10)
    with pytest.warns(PrivacyParameterWarning, match="with 10 rows, the noise of all gradients together"):
        PrivateMLP(**{**FEW, "epsilon": 0.01, "expected_rows": 10}, **SIDES).fit(X, sides(X))


# Noise and audits ----------------------------------------------------------------------------------------------------


def one_step(width: int, *, delta: float = 1e-5, half: bool = False) -> tuple[PrivateMLP, TrainingPlan, PublicFacts]:
    """A logistic regression of one step on everything, and its plan."""
    facts = facts_of(width)
    model = PrivateMLP(
        epsilon=1,
        delta=delta,
        hidden_layer_sizes=(),
        solver="sgd",
        momentum=0,
        learning_rate=1,
        average=0,
        sample_rate=1,
        epochs=1,
        expected_rows=1,
    )
    model.encoding_, model.classes_ = facts.encoding, np.array([0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyParameterWarning)
        plan = model._plan(facts, model._calibration())
    if half:
        schedule = plan.settings.schedule
        weak = GaussianSteps(schedule.noise.squared_sigma / 4, schedule.noise.event)
        plan = TrainingPlan(steps=plan.steps, settings=replace(plan.settings, schedule=replace(schedule, noise=weak)))
    return model, plan, facts


@pytest.mark.statistical
def test_the_noise_of_a_step_has_the_planned_size() -> None:
    model, plan, facts = one_step(5000)
    empty = WeightedRows(np.zeros((0, 5000)), np.zeros(0), np.zeros(0, dtype=np.int64))

    def draw(size: int) -> np.ndarray:
        found = []
        while sum(map(len, found)) < size:
            model._learn(facts, empty, plan, SOURCE)
            found.append(model.parameters_)
        return np.concatenate(found)[:size]

    check_scale(draw, gaussian, scale=plan.settings.schedule.multiplier)


def outputs(dataset: np.ndarray, size: int, *, half: bool) -> np.ndarray:
    """The first parameters of many fits on rows of which each moves only the coordinates that it has."""
    model, plan, facts = one_step(1, delta=0.1, half=half)
    rows = WeightedRows(dataset[:, None], np.ones(len(dataset)), np.ones(len(dataset), dtype=np.int64))
    found = np.empty(size)
    for place in range(size):
        model._learn(facts, rows, plan, SOURCE)
        found[place] = model.parameters_.sum()
    return found


@pytest.mark.slow
@pytest.mark.statistical
def test_an_audit_refutes_half_the_noise_and_not_the_whole() -> None:
    neighbors = (np.array([1.0]), np.array([1.0, 1.0]))
    claim: dict[str, Any] = {"epsilon": 1, "delta": 0.1}
    audit(
        lambda data, size: outputs(data, size, half=False), neighbors, samples=4000, confidence=1 - 1e-9, **claim
    ).verify()
    with pytest.raises(PrivacyRefutedError):
        audit(
            lambda data, size: outputs(data, size, half=True), neighbors, samples=8000, confidence=0.999, **claim
        ).verify()


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.statistical
def test_an_audit_of_sampled_steps_does_not_refute() -> None:
    facts = facts_of(1)
    model = PrivateMLP(
        epsilon=1, delta=0.1, hidden_layer_sizes=(), solver="sgd", momentum=0, average=0, sample_rate=0.5, epochs=2
    )
    model.encoding_, model.classes_ = facts.encoding, np.array([0, 1])
    plan = model._plan(facts, model._calibration())

    def draw(dataset: np.ndarray, size: int) -> np.ndarray:
        rows = WeightedRows(dataset[:, None], np.ones(len(dataset)), np.ones(len(dataset), dtype=np.int64))
        found = np.empty(size)
        for place in range(size):
            model._learn(facts, rows, plan, SOURCE)
            found[place] = model.parameters_.sum()
        return found

    report = audit(
        draw, (np.array([1.0]), np.array([1.0, 1.0])), epsilon=1, delta=0.1, samples=2000, confidence=1 - 1e-9
    )
    report.verify()


def test_the_first_weights_are_random_and_the_last_layer_starts_at_zero() -> None:
    network = mlp.Network(3, (4,), mlp.TwoClassHead())
    start = network.layers(mlp._start(network, SOURCE))
    assert 0 < np.abs(start[0][:-1]).max() <= math.sqrt(6 / 8)
    assert not start[0][-1].any()
    assert not start[1].any()
