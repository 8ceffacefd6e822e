from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from cloister import learn
from cloister.attacks import (
    attribute_inference,
    gradient_leakage,
    model_extraction,
    model_inversion,
    stored_records,
)
from cloister.core.random import SeededRandomSource, bits
from cloister.errors import CloisterError
from tests.support.model_rows import noisy_halves, normals

ROWS, LABELS = noisy_halves(400, 5, seed=21)
LOGISTIC = LogisticRegression().fit(ROWS, LABELS)


def seeded(seed: int = 3) -> SeededRandomSource:
    return SeededRandomSource(seed)


def told(result: Any) -> str:
    """Return all that a result tells others, which must be possible to write."""
    result.plot().to_dict()
    return json.dumps(result.to_dict()) + result.report().to_markdown() + repr(result) + str(result.summary())


# Stored records -------------------------------------------------------------------------------------------------------


def test_nearest_neighbors_contain_everybody() -> None:
    result = stored_records(KNeighborsClassifier().fit(ROWS[:300], LABELS[:300]), ROWS[:300], others=ROWS[300:])
    assert (result.success, result.control, result.found) == (1, 0, 300)
    assert result.succeeded
    assert "contains 300 of 300 training records" in result.verdict
    assert repr(float(ROWS[0, 0])) not in told(result)


@pytest.mark.parametrize("scaled", [False, True])
def test_support_vectors_are_records_also_behind_a_scaler(scaled: bool) -> None:
    svm = SVC(C=1.0)
    model = (make_pipeline(StandardScaler(), svm) if scaled else svm).fit(ROWS, LABELS)
    result = stored_records(model, ROWS)
    assert result.found == len(svm.support_) < len(ROWS)
    assert {place for place, _ in result.worst} <= set(svm.support_.tolist())
    assert any("support_vectors_" in place for place in result.places)


def test_gaussian_processes_contain_everybody_and_a_logistic_regression_nobody() -> None:
    assert stored_records(GaussianProcessClassifier().fit(ROWS[:50], LABELS[:50]), ROWS[:50]).success == 1
    nobody = stored_records(LOGISTIC, ROWS, others=ROWS)
    assert (nobody.success, nobody.places, nobody.control) == (0, (), 0.0)
    assert not nobody.succeeded
    assert "No training record was found" in nobody.verdict


# Model extraction -----------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), classes=st.integers(2, 4))
def test_any_logistic_regression_is_copied_exactly(seed: int, classes: int) -> None:
    rows = normals(60, 3, seed=seed)
    labels = np.arange(60) % classes
    model = LogisticRegression().fit(rows, labels)
    result = model_extraction(model, bounds=(-1, 1), queries=[4], random_state=seeded())
    assert result.queries == 4
    assert result.success == 1
    assert result.coefficient_error is not None
    assert result.coefficient_error < 1e-12


def test_a_linear_regression_is_copied_exactly() -> None:
    model = LinearRegression().fit(ROWS[:, 1:], ROWS[:, 0] + ROWS[:, 1])
    result = model_extraction(model, bounds=(-1, 1), queries=[5])
    assert result.coefficient_error == pytest.approx(0, abs=1e-12)
    assert result.success == 1
    assert result.baseline < 0.2
    assert "coefficients are known exactly" in result.verdict
    assert "copy" not in result.to_dict()
    assert "5" in told(result)


def test_rounding_delays_and_does_not_help() -> None:
    labels = np.digitize(ROWS[:, 0], [-0.5, 0.5])
    model = LogisticRegression().fit(ROWS, labels)
    result = model_extraction(model, bounds=(-3, 3), decimals=1, queries=[6, 600], test=ROWS, random_state=seeded())
    (_, early), (_, late) = result.fidelity
    assert early < late
    assert late > 0.97


def test_a_forest_is_distilled() -> None:
    model = RandomForestClassifier(20, random_state=0).fit(ROWS, LABELS)
    result = model_extraction(
        model, bounds=(-2, 2), method="distillation", queries=[50, 1000], test=ROWS, random_state=seeded()
    )
    assert result.success > 0.75
    assert result.succeeded
    assert result.coefficient_error is None
    other = model_extraction(
        model,
        bounds=(-2, 2),
        method="distillation",
        surrogate=DecisionTreeClassifier(random_state=0),
        queries=[500],
        random_state=seeded(),
    )
    assert other.success > 0.6


def test_equations_do_not_copy_a_tree() -> None:
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(ROWS, LABELS)
    result = model_extraction(model, bounds=(-2, 2), test=ROWS, random_state=seeded())
    assert result.success < 0.95
    assert result.coefficient_error is None


# Model inversion ------------------------------------------------------------------------------------------------------


def test_a_class_is_made_up_from_answers_alone() -> None:
    rows = np.clip(0.5 + 0.2 * ROWS, 0, 1)
    labels = np.where(LABELS, "high", "low")
    model = GaussianNB().fit(rows, labels)
    result = model_inversion(model, (rows, labels), bounds=(0, 1), access="queries", steps=30)
    assert result.success == 1
    assert result.mean_correlation > 0.8
    assert result.queries == 1 + 30 * 2 * 10
    assert "Where a class is one person" in result.verdict
    told(result)


def test_gradient_and_queries_agree_for_a_logistic_regression() -> None:
    rows = np.clip(0.5 + 0.2 * ROWS, 0, 1)
    model = LogisticRegression().fit(rows, LABELS)
    first = model_inversion(model, (rows, LABELS), bounds=(0, 1), steps=50)
    second = model_inversion(model, (rows, LABELS), bounds=(0, 1), steps=50, access="queries")
    assert first.correlations == pytest.approx(second.correlations, abs=0.02)


def test_a_model_that_learned_nothing_shows_no_class() -> None:
    labels = bits(seeded(), 400).astype(int)
    rows = np.clip(0.5 + 0.2 * normals(400, 40, seed=31), 0, 1)
    other = np.clip(0.5 + 0.2 * normals(400, 40, seed=33), 0, 1)
    model = LogisticRegression().fit(rows, labels)
    result = model_inversion(model, (other, labels), bounds=(0, 1), start=rows.mean(axis=0))
    assert abs(result.mean_correlation) < 0.5


# Attribute inference --------------------------------------------------------------------------------------------------


def coins(count: int, width: int, seed: int) -> Any:
    return bits(seeded(seed), count * width).reshape(count, width).astype(float)


def test_a_model_that_learned_by_heart_gives_values_away_beyond_imputation() -> None:
    inside, outside, similar = coins(400, 12, 1), coins(400, 12, 2), coins(400, 12, 3)
    labels = [coins(400, 1, seed).ravel() for seed in (4, 5, 6)]
    model = DecisionTreeClassifier(random_state=0).fit(inside, labels[0])
    for prior in ("imputation", "marginal"):
        result = attribute_inference(
            model,
            (inside, labels[0]),
            column=3,
            background=(similar, labels[2]),
            non_members=(outside, labels[1]),
            prior=prior,
            random_state=seeded(),
        )
        assert result.success > 0.58
        assert result.control is not None
        assert result.control < 0.58
        assert result.succeeded
        assert result.success_on_others is not None
        assert result.success_on_others < result.success - 0.05
        assert "gives values away" in result.verdict
        assert result.excess == pytest.approx(result.success - max(result.baseline, result.control))
        told(result)


def test_what_similar_data_tell_is_not_held_against_the_model() -> None:
    def people(seed: int) -> tuple[Any, Any]:
        numbers = normals(500, 2, seed=seed)
        smokes = np.where(numbers[:, 0] > 0, "yes", "no")
        frame = pd.DataFrame({"age": numbers[:, 0], "weight": numbers[:, 1], "smokes": smokes})
        return frame, (numbers[:, 0] + numbers[:, 1] > 0).astype(int)

    frame, labels = people(1)
    numeric = frame.assign(smokes=(frame["smokes"] == "yes").astype(int))

    class Model:
        classes_ = np.array([0, 1])
        inner = LogisticRegression().fit(numeric, labels)

        def predict_proba(self, rows: Any) -> Any:
            return self.inner.predict_proba(rows.assign(smokes=(rows["smokes"] == "yes").astype(int)))

    result = attribute_inference(Model(), (frame, labels), column="smokes", background=people(5), random_state=seeded())
    assert result.success > 0.9
    assert result.control is not None
    assert result.control > 0.9
    assert not result.succeeded
    assert "nothing certain" in result.verdict


# Gradient leakage -----------------------------------------------------------------------------------------------------

IMAGES = np.clip(0.5 + 0.2 * normals(200, 16, seed=41), 0, 1)
KINDS = np.arange(200) % 3
SOFTMAX = LogisticRegression().fit(IMAGES, KINDS)


def test_one_gradient_is_one_record() -> None:
    result = gradient_leakage(SOFTMAX, (IMAGES, KINDS), bounds=(0, 1), random_state=seeded())
    assert result.success == 1
    assert result.signal_to_noise > 100
    assert result.signal_to_noise_of_guess < 20
    assert result.succeeded
    told(result)


def test_batches_blur_and_noise_hides() -> None:
    batched = gradient_leakage(SOFTMAX, (IMAGES, KINDS), bounds=(0, 1), batch=50, trials=20, random_state=seeded())
    noisy = gradient_leakage(SOFTMAX, (IMAGES, KINDS), bounds=(0, 1), clip=1, noise=1, random_state=seeded())
    clipped = gradient_leakage(SOFTMAX, (IMAGES, KINDS), bounds=(0, 1), clip=0.1, random_state=seeded())
    assert batched.success == 0
    assert noisy.success == 0
    assert not noisy.succeeded
    assert noisy.signal_to_noise < 15
    assert clipped.success == 1


# What is refused ------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Any, str]] = [
    (lambda: stored_records(LOGISTIC, [["a"]]), "encode categories"),
    (lambda: stored_records(LOGISTIC, ROWS, others=ROWS[:, :2]), "same columns"),
    (lambda: stored_records(LOGISTIC, np.empty((0, 5))), "at least a few rows"),
    (lambda: stored_records(LOGISTIC, np.where(ROWS > 1, np.inf, ROWS)), "fill them in"),
    (lambda: model_extraction(LOGISTIC, bounds=(-1, 1), queries=[3]), "at least 6 questions"),
    (lambda: model_extraction(LOGISTIC, bounds=(1, 1)), "leave room"),
    (lambda: model_extraction(LOGISTIC, bounds=(-1, 1), test=ROWS[:, :2]), "give 5 columns"),
    (lambda: model_extraction(LOGISTIC, bounds=(-1, 1), method="theft"), "use one of"),
    (lambda: model_extraction(LOGISTIC, bounds=(-1, 1), features=3), "columns that it was trained on"),
    (lambda: model_inversion(GaussianNB().fit(ROWS, LABELS), (ROWS, LABELS), bounds=(-1, 1)), 'access="queries"'),
    (lambda: model_inversion(LOGISTIC, (ROWS, LABELS), bounds=(-1, 1), start=[1.0]), "one number per feature"),
    (lambda: model_inversion(LOGISTIC, (ROWS, np.zeros(400)), bounds=(-1, 1)), "every class"),
    (
        lambda: attribute_inference(LOGISTIC, (ROWS, LABELS), column=0, background=(ROWS, LABELS)),
        "cut it into bins",
    ),
    (lambda: attribute_inference(LOGISTIC, (ROWS, LABELS), column=9, background=(ROWS, LABELS)), "position below"),
    (
        lambda: attribute_inference(LOGISTIC, (0 * ROWS, LABELS), column=0, background=(0 * ROWS, LABELS)),
        "choose another column",
    ),
    (
        lambda: attribute_inference(LOGISTIC, (ROWS, LABELS), column=0, background=(ROWS, LABELS), values=[7.0, 8.0]),
        "list the values",
    ),
    (lambda: gradient_leakage(GaussianNB().fit(ROWS, LABELS), (ROWS, LABELS), bounds=(-9, 9)), "LogisticRegression"),
    (lambda: gradient_leakage(LOGISTIC, (ROWS, LABELS), bounds=(-9, 9), noise=1), "give clip"),
    (lambda: gradient_leakage(LOGISTIC, (ROWS, LABELS), bounds=(-9, 9), batch=401), "batch=400"),
]


@pytest.mark.parametrize(("call", "fix"), REFUSED, ids=[fix for _, fix in REFUSED])
def test_what_does_not_fit_is_refused_with_a_fix(call: Any, fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        call()


def test_models_that_are_no_plain_layer_have_no_gradient() -> None:
    for model in (
        OneVsRestClassifier(LogisticRegression()).fit(IMAGES, KINDS),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(IMAGES, KINDS),
    ):
        with pytest.raises(CloisterError, match='access="queries"'):
            model_inversion(model, (IMAGES, KINDS), bounds=(0, 1))
    assert Ridge().fit(ROWS, LABELS).coef_.shape == (5,)


def test_a_private_logistic_regression_is_attacked_like_any_other() -> None:
    model = learn.PrivateLogisticRegression(epsilon=10, bounds=(-4, 4), classes=[0, 1], random_state=seeded()).fit(
        ROWS, LABELS
    )
    assert model_extraction(model, bounds=(-1, 1), test=ROWS, random_state=seeded()).success == 1
    assert model_inversion(model, (ROWS, LABELS), bounds=(-4, 4)).success == 1


def test_models_that_were_fitted_on_named_columns_are_asked_with_them() -> None:
    frame = pd.DataFrame(ROWS, columns=list("abcde")).assign(y=LABELS)
    model = LogisticRegression().fit(frame[list("abcde")], frame["y"])
    assert model_inversion(model, frame, target="y", bounds=(-4, 4)).success == 1
    assert model_extraction(model, bounds=(-1, 1), random_state=seeded()).success == 1
    assert gradient_leakage(model, frame, target="y", bounds=(-4, 4), random_state=seeded()).success == 1
    assert stored_records(model, frame[list("abcde")]).success == 0


def test_a_model_without_names_takes_a_frame() -> None:
    frame = pd.DataFrame(coins(200, 5, 8))
    model = DecisionTreeClassifier(random_state=0).fit(frame.to_numpy(), LABELS[:200])
    result = attribute_inference(
        model, (frame, LABELS[:200]), column=0, background=(frame, LABELS[:200]), random_state=seeded()
    )
    assert result.trials == 200
