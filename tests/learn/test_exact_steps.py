"""A private estimator behind a step that learns without privacy says that its promise does not hold."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, StandardScaler

from cloister.errors import ParameterError, PrivacyParameterWarning
from cloister.learn import (
    PrivateGaussianNB,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateScaler,
    PrivateSearch,
    pipeline_guarantee,
)
from cloister.learn._exact_steps import EXACT_STEPS

X = np.repeat([[10.0, 20.0], [80.0, 70.0]], 400, axis=0)
Y = np.repeat([0, 1], 400)
LEARNS = "learns from the protected rows without privacy"


def bayes(**options: Any) -> PrivateGaussianNB:
    return PrivateGaussianNB(**{"epsilon": 5, "bounds": (-100, 100), "classes": [0, 1], **options})


def check_breaks(fitted: Any, model: Any) -> None:
    assert not model.guarantee_.holds
    assert EXACT_STEPS in model.guarantee_.caveats
    with pytest.raises(ParameterError, match="without privacy"):
        pipeline_guarantee(fitted)


@pytest.mark.parametrize("scaler", [StandardScaler(), PCA(), Pipeline([("inner", StandardScaler())])])
def test_an_exact_step_breaks_the_promise_and_is_said(scaler: Any) -> None:
    pipeline = make_pipeline(scaler, bayes())
    with pytest.warns(PrivacyParameterWarning, match=f"{LEARNS}.*pipeline_guarantee"):
        pipeline.fit(X, Y)
    check_breaks(pipeline, pipeline[-1])


def test_logistic_regression_behind_a_scaler_breaks_too() -> None:
    model = PrivateLogisticRegression(epsilon=5, bounds=(-3, 3), classes=[0, 1])
    pipeline = Pipeline([("scale", StandardScaler()), ("rows", Normalizer()), ("model", model)])
    with pytest.warns(PrivacyParameterWarning, match=f'"scale" {LEARNS}'):
        pipeline.fit(X, Y)
    check_breaks(pipeline, model)


@pytest.mark.parametrize(
    "before",
    [
        [PrivateScaler(bounds=(0, 100))],
        [Normalizer(), Binarizer(threshold=0.5), FunctionTransformer(), FunctionTransformer(np.sqrt)],
        ["passthrough", Pipeline([("inner", PrivateScaler(bounds=(0, 100)))])],
    ],
)
def test_private_steps_and_steps_that_learn_nothing_keep_it(before: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline = make_pipeline(*map(clone_of, before), bayes()).fit(X, Y)
    assert pipeline[-1].guarantee_.holds


def clone_of(step: Any) -> Any:
    return step if isinstance(step, str) else clone(step)


def test_what_comes_after_the_model_does_not_matter() -> None:
    pipeline = make_pipeline(PrivateScaler(method="standard", epsilon=5, bounds=(0, 100)), StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pipeline.fit(X)[0].guarantee_.holds


def test_private_transformers_are_recognized_though_they_are_cloned() -> None:
    pipeline = make_pipeline(StandardScaler(), PrivateScaler(method="standard", epsilon=5, bounds=(-3, 3)), bayes())
    with pytest.warns(PrivacyParameterWarning, match=LEARNS):
        pipeline.fit(X, Y)
    assert not pipeline[1].guarantee_.holds
    assert not pipeline[2].guarantee_.holds


def test_models_inside_of_other_steps_are_found() -> None:
    union = FeatureUnion([("private", PrivateScaler(method="standard", epsilon=5, bounds=(-3, 3)))])
    columns = ColumnTransformer([("private", PrivateScaler(method="standard", epsilon=5, bounds=(-3, 3)), [0])])
    for step in (union, columns):
        pipeline = make_pipeline(StandardScaler(), step)
        with pytest.warns(PrivacyParameterWarning, match=LEARNS):
            pipeline.fit(X)


def test_cross_validation_and_grids_are_seen_through() -> None:
    pipeline = make_pipeline(StandardScaler(), bayes())
    with pytest.warns(PrivacyParameterWarning, match=LEARNS):
        cross_val_score(pipeline, X, Y, cv=2)
    search = GridSearchCV(pipeline, {"privategaussiannb__variance_floor": [0.001, 0.01]}, cv=2)
    with pytest.warns(PrivacyParameterWarning, match=LEARNS):
        search.fit(X, Y)
    assert not search.best_estimator_[-1].guarantee_.holds


def test_a_private_search_says_it_of_itself_and_of_its_model() -> None:
    search = PrivateSearch(estimator=bayes(), grid={"variance_floor": [0.001, 0.01]}, epsilon=9)
    with pytest.warns(PrivacyParameterWarning, match=LEARNS):
        make_pipeline(StandardScaler(), search).fit(X, Y)
    assert not search.guarantee_.holds
    assert not search.best_estimator_.guarantee_.holds


def test_a_target_that_is_scaled_exactly_breaks_the_promise() -> None:
    model = PrivateLinearRegression(epsilon=50, bounds=(0, 100), target_bounds=(-2, 2))
    whole = TransformedTargetRegressor(regressor=model, transformer=StandardScaler())
    with pytest.warns(PrivacyParameterWarning, match=LEARNS):
        whole.fit(X, Y.astype(float))
    assert not whole.regressor_.guarantee_.holds
    plain = TransformedTargetRegressor(regressor=model).fit(X, Y.astype(float))
    assert plain.regressor_.guarantee_.holds
