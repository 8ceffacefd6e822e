from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import minmax_scale
from sklearn.svm import LinearSVC

import cloister as cl
from cloister.attacks import agreeing_rows, evasion, poisoning, transferability
from cloister.attacks.integrity.poisoning import harmful_rows, poison_slopes, train_weights
from cloister.attacks.models._victim import Labeled
from cloister.core.random import SeededRandomSource
from cloister.errors import CloisterError
from tests.support.model_rows import noisy_halves, normals

IMAGES, DIGITS = load_digits(return_X_y=True)
IMAGES = IMAGES / 16
MODEL = LogisticRegression(max_iter=2000).fit(IMAGES[:900], DIGITS[:900])
HELD = IMAGES[900:1200], DIGITS[900:1200]
ROWS, LABELS = noisy_halves(300, 4, seed=51)
PAIR = LogisticRegression().fit(ROWS, LABELS)


def seeded(seed: int = 1) -> SeededRandomSource:
    return SeededRandomSource(seed)


def told(result: Any) -> str:
    result.plot().to_dict()
    return json.dumps(result.to_dict())


# Poisoning ------------------------------------------------------------------------------------------------------------


def test_flipped_labels_cost_accuracy_and_a_filter_gives_it_back() -> None:
    model = KNeighborsClassifier(1)
    result = poisoning(model, (IMAGES[:500], DIGITS[:500]), HELD, fractions=("0.2", "0.5"), random_state=seeded())
    filtered = "poisoned, then filtered"
    assert [point.strength for point in result.points] == [0, 0.2, 0.5]
    assert result.clean_accuracy > 0.9
    assert result.accuracy_at(0.5) < result.clean_accuracy - 0.1
    assert result.succeeded
    assert result.accuracy_at(0.2) < result.clean_accuracy - 0.1
    assert result.accuracy_at(0.2, curve=filtered) > result.clean_accuracy - 0.05
    assert "The model can be misled" in result.verdict
    assert "cloister.robustness/1" in told(result)
    page = result.report().to_markdown()
    assert "Robustness: poisoning" in page
    assert "says nothing about privacy" in page
    assert any(name == "concerns" for name, _ in result.summary())
    assert "under attack" in str(result)


def test_bilevel_rows_harm_more_than_random_flips() -> None:
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = minmax_scale(rows)
    train, held = (rows[:300], labels[:300]), (rows[300:], labels[300:])
    results = {
        kind: poisoning(LogisticRegression(), train, held, kind=kind, fractions=["0.1"], random_state=seeded())
        for kind in ("label_flip", "bilevel")
    }
    assert results["bilevel"].accuracy_at(0.1) < results["label_flip"].accuracy_at(0.1) - 0.02
    assert results["bilevel"].clean_accuracy == results["label_flip"].clean_accuracy


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 500))
def test_slopes_through_the_training_are_those_of_training_again(seed: int) -> None:
    clean, labels = normals(30, 2, seed=seed), (normals(30, seed=seed + 501) > 0).astype(float)
    poison, said = normals(2, 2, seed=seed + 1002), np.array([0.0, 1.0])

    def harm(points: Any) -> float:
        weights = train_weights(np.concatenate([clean, points]), np.concatenate([labels, said]))
        scores = clean @ weights[:-1] + weights[-1]
        return float((np.logaddexp(0, scores) - labels * scores).mean())

    training = np.concatenate([clean, poison])
    weights = train_weights(training, np.concatenate([labels, said]))
    slopes = poison_slopes(weights, poison, said, training=training, aims=(clean, labels))
    for place in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[place] = 1e-3
        difference = (harm(poison + step) - harm(poison - step)) / 2e-3
        assert slopes[place] == pytest.approx(difference, abs=1e-6)


def test_trained_weights_are_those_of_the_regression_with_a_penalized_constant() -> None:
    weights = train_weights(ROWS, LABELS.astype(float))
    design = np.column_stack([ROWS, np.ones(len(ROWS))])
    slope = design.T @ (special.expit(design @ weights) - LABELS) + weights
    assert np.abs(slope).max() < 1e-9


def test_harmful_rows_stay_within_their_bounds_and_leave_the_clean_ones_alone() -> None:
    rows = harmful_rows(Labeled(ROWS, LABELS), 20, limits=(-1.0, 1.0), steps=3, source=seeded())
    assert len(rows) == 320
    assert np.array_equal(rows.features[:300], ROWS)
    assert np.abs(rows.features[300:]).max() <= 1
    assert harmful_rows(Labeled(ROWS, LABELS), 0, limits=(-1.0, 1.0), steps=3, source=seeded()).features is ROWS


def test_rows_that_are_aimed_at_fall_first() -> None:
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = minmax_scale(rows)
    clean = LogisticRegression().fit(rows[:300], labels[:300])
    sure = 300 + np.flatnonzero((clean.predict(rows[300:]) == labels[300:]) & (labels[300:] == 0))[:5]
    result = poisoning(
        LogisticRegression(),
        (rows[:300], labels[:300]),
        (rows[300:], labels[300:]),
        kind="bilevel",
        fractions=["0.1", "0.2"],
        aims=(rows[sure], labels[sure]),
        random_state=seeded(),
    )
    assert next(iter(result.curves)) == "rows aimed at"
    assert result.clean_accuracy == 1
    assert result.accuracy_at(0.2) < result.accuracy_at(0.2, curve="poisoned") - 0.2


def test_tables_are_poisoned_by_name() -> None:
    frame = pd.DataFrame(ROWS, columns=list("abcd")).assign(y=LABELS)
    table = cl.open_table(frame)
    result = poisoning(
        LogisticRegression(), table, frame, target="y", kind="bilevel", bounds=(-4, 4), fractions=[1],
        random_state=seeded(),
    )  # fmt: skip
    assert result.accuracy_at(1) < result.clean_accuracy


def test_the_filter_finds_flipped_labels_among_separate_classes() -> None:
    rows = np.concatenate([normals(100, 2, seed=1), 20 + normals(100, 2, seed=2)])
    labels = np.repeat(["a", "b"], 100)
    labels[[3, 50, 150]] = ["b", "b", "a"]
    assert np.flatnonzero(~agreeing_rows(rows, labels)).tolist() == [3, 50, 150]


# Evasion --------------------------------------------------------------------------------------------------------------


def test_small_changes_mislead_where_random_ones_do_not() -> None:
    one = evasion(MODEL, HELD, bounds=(0, 1), budgets=("0.1", "0.3"), kind="one_step", random_state=seeded())
    several = evasion(MODEL, HELD, bounds=(0, 1), budgets=("0.1", "0.3"), random_state=seeded())
    assert several.accuracy_at(0.1) <= one.accuracy_at(0.1) + 0.02
    assert several.accuracy_at(0.3) < 0.05
    assert several.accuracy_at(0.3, curve="random changes") > 0.7
    assert several.succeeded
    assert "differential privacy does not help here" in str(several.to_dict())
    told(several)


@given(budget=st.floats(0.01, 1), norm=st.sampled_from(["largest", "euclidean"]))
@settings(max_examples=20, deadline=None)
def test_for_two_classes_one_step_is_as_strong_as_the_margin_says(budget: float, norm: str) -> None:
    margins = (ROWS @ PAIR.coef_[0] + PAIR.intercept_[0]) * np.where(LABELS, 1, -1)
    size = np.abs(PAIR.coef_[0]).sum() if norm == "largest" else np.linalg.norm(PAIR.coef_[0])
    expected = (margins > budget * size).mean()
    result = evasion(
        PAIR, (ROWS, LABELS), bounds=(-50, 50), budgets=[budget], kind="one_step", norm=norm, random_state=seeded()
    )
    assert result.accuracy_at(budget) == pytest.approx(expected, abs=1 / 300 + 1e-9)


@pytest.mark.parametrize("norm", ["largest", "euclidean"])
def test_labels_alone_find_the_border(norm: str) -> None:
    size = np.abs(PAIR.coef_[0]).sum() if norm == "largest" else np.linalg.norm(PAIR.coef_[0])
    margins = (ROWS @ PAIR.coef_[0] + PAIR.intercept_[0]) * np.where(LABELS, 1, -1)
    budget = 0.6
    asked = evasion(
        PAIR, (ROWS, LABELS), bounds=(-50, 50), budgets=[budget], kind="boundary", norm=norm, random_state=seeded()
    )
    best = (margins > budget * size).mean()
    assert best - 1e-9 <= asked.accuracy_at(budget) <= best + 0.08
    svm = LinearSVC().fit(ROWS, LABELS)
    assert evasion(
        svm, (ROWS, LABELS), bounds=(-50, 50), budgets=[1], kind="boundary", norm=norm, steps=3, random_state=seeded()
    ).succeeded


def test_inputs_are_led_to_an_aim() -> None:
    result = evasion(MODEL, HELD, bounds=(0, 1), budgets=["0.4"], aim=3, random_state=seeded())
    share = (HELD[1] == 3).mean()
    assert result.accuracy_at(0.4) <= share + 0.1


def test_what_misleads_a_surrogate_misleads_a_model_that_nobody_may_ask() -> None:
    secret = RandomForestClassifier(30, random_state=0).fit(IMAGES[:450], DIGITS[:450])
    own = LogisticRegression(max_iter=2000).fit(IMAGES[450:900], DIGITS[450:900])
    result = evasion(secret, HELD, bounds=(0, 1), budgets=["0.3"], surrogate=own, random_state=seeded())
    assert "transferred" in result.attack
    assert result.accuracy_at(0.3) < result.accuracy_at(0.3, curve="random changes") - 0.2


def test_a_constant_model_is_not_misled() -> None:
    class Constant:
        classes_ = np.array([0, 1])

        def predict_proba(self, rows: Any) -> Any:
            return np.tile([0.2, 0.8], (len(rows), 1))

    for kind in ("several_steps", "boundary"):
        result = evasion(
            Constant(), (ROWS, LABELS), bounds=(-4, 4), budgets=[1], kind=kind, steps=2, random_state=seeded()
        )
        assert not result.succeeded
        assert "did no certain harm" in result.verdict


# Transferability ------------------------------------------------------------------------------------------------------


def test_misleading_inputs_are_tried_on_every_model() -> None:
    forest = RandomForestClassifier(10, random_state=0).fit(ROWS, LABELS)
    result = transferability({"regression": PAIR, "forest": forest}, (ROWS, LABELS), bounds=(-4, 4), budget=1, steps=5)
    assert result.accuracy[0][0] < result.clean[0] - 0.3
    assert result.accuracy[0][1] < result.clean[1] - 0.1
    assert "Inputs made to mislead" in str(result)
    assert len(result.sections()) == 1
    told(result)
    shown = dict(result.summary())
    assert shown["verdict"] == result.verdict
    assert "nothing about privacy" in shown["concerns"]
    assert {"forest, unchanged", "forest, inputs made for regression"} <= set(shown)
    assert "inputs made for" in result.report().to_markdown()


# What is refused ------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Any, str]] = [
    (lambda: poisoning(PAIR, (ROWS, LABELS), (ROWS, LABELS), kind="spell"), "use one of"),
    (lambda: poisoning(PAIR, (ROWS, LABELS), (ROWS, LABELS), fractions=[2]), "at most 1"),
    (lambda: poisoning(PAIR, (ROWS, LABELS), (ROWS, LABELS), fractions=[]), "list a few fractions"),
    (lambda: poisoning(PAIR, (ROWS, LABELS), (ROWS[:, :2], LABELS)), "same columns"),
    (lambda: poisoning(PAIR, (ROWS, 0 * LABELS), (ROWS, LABELS)), "give such rows"),
    (lambda: poisoning(PAIR, (ROWS, np.arange(300) % 3), (ROWS, LABELS), kind="bilevel"), "or another kind"),
    (lambda: poisoning(object(), (ROWS, LABELS), (ROWS, LABELS)), "give train="),
    (lambda: poisoning(PAIR, (ROWS, LABELS), (ROWS, LABELS), aims=(ROWS, LABELS)), "leave aims out"),
    (lambda: agreeing_rows(ROWS, LABELS[:4]), "as many labels as rows"),
    (lambda: agreeing_rows(ROWS[:3], LABELS[:3]), "neighbors=2"),
    (lambda: evasion(PAIR, (ROWS, LABELS), bounds=(-1, 1), budgets=[-1]), "at least 0"),
    (lambda: evasion(PAIR, (ROWS, LABELS), bounds=(-1, 1), budgets=[1], norm="seven"), "use one of"),
    (lambda: evasion(PAIR, (ROWS, LABELS), bounds=(-1, 1), budgets=[1], aim=9), "as the model was trained on"),
    (
        lambda: evasion(PAIR, (ROWS, LABELS), bounds=(-1, 1), budgets=[1], kind="boundary", aim=1),
        "leave them out",
    ),
    (
        lambda: evasion(LinearSVC().fit(ROWS, LABELS), (ROWS, LABELS), bounds=(-1, 1), budgets=[1]),
        "labels only",
    ),
    (lambda: evasion(PAIR, (ROWS[:0], LABELS[:0]), bounds=(-1, 1), budgets=[1]), "at least a few rows"),
    (lambda: transferability({"a": PAIR}, (ROWS, LABELS), bounds=(-1, 1), budget=1), "give models="),
]


@pytest.mark.parametrize(("call", "fix"), REFUSED, ids=[fix for _, fix in REFUSED])
def test_what_does_not_fit_is_refused_with_a_fix(call: Any, fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        call()
