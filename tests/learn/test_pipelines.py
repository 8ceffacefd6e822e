from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from cloister.core.guarantees import ApproxDP, PureDP
from cloister.errors import AccountingError, ParameterError, ParameterTypeError, PrivacyParameterWarning
from cloister.learn import PrivateGaussianNB, PrivateKMeans, PrivatePCA, PrivateScaler, pipeline_guarantee, pipelines
from cloister.learn.base import PUBLIC_FACTS

X = np.repeat([[10.0, 20.0, 90.0], [80.0, 70.0, 10.0]], 2000, axis=0)


class Own(BaseEstimator, TransformerMixin):  # type: ignore[misc]  # scikit-learn is not typed
    """A step that nobody knows."""


def steps(delta: float = 0.0, **options: Any) -> list[Any]:
    common = {"epsilon": 1, "delta": delta, **options}
    return [
        PrivateScaler(method="standard", bounds=(0, 100), **common),
        PrivatePCA(n_components=2, bounds=(-3, 3), **common),
        PrivateKMeans(n_clusters=2, bounds=(-9, 9), **common),
    ]


def test_pure_steps_add_up() -> None:
    fitted = make_pipeline(*steps()).fit(X)
    assert pipeline_guarantee(fitted) == PureDP(epsilon=3, assumptions=(PUBLIC_FACTS,))
    assert len(set(fitted.predict(X[[0, -1]]))) == 2


def test_public_scaling_adds_nothing() -> None:
    fitted = make_pipeline(PrivateScaler(bounds=(0, 100)), PrivateKMeans(n_clusters=2, epsilon=1, bounds=(0, 1))).fit(X)
    assert pipeline_guarantee(fitted).epsilon == 1


def test_gaussian_steps_cost_less_than_their_sum() -> None:
    found = pipeline_guarantee(make_pipeline(*steps(1e-6)).fit(X))
    assert isinstance(found, ApproxDP)
    assert float(found.delta) == pytest.approx(3e-6)
    assert 1 < found.epsilon < 2


def test_mixed_and_replaced_steps_add_up() -> None:
    mixed = make_pipeline(steps(1e-6)[0], steps()[2].set_params(bounds=(-3, 3))).fit(X)
    found = pipeline_guarantee(mixed)
    assert isinstance(found, ApproxDP)
    assert found.epsilon <= 2
    replaced = pipeline_guarantee(make_pipeline(*steps(1e-6, adjacency="replace", epsilon=2)).fit(X))
    assert replaced.epsilon == 6
    with pytest.raises(AccountingError, match="restate"):
        pipeline_guarantee(make_pipeline(steps(adjacency="replace")[0], steps()[2].set_params(bounds=(-3, 3))).fit(X))


def test_steps_without_privacy_are_refused() -> None:
    private = PrivateKMeans(n_clusters=2, epsilon=1, bounds=(-3, 3))
    with pytest.warns(PrivacyParameterWarning, match="without privacy"):
        fitted = make_pipeline(StandardScaler(), private).fit(X)
    with pytest.raises(ParameterError, match="private estimator"):
        pipeline_guarantee(fitted)
    y = np.repeat(["a", "b"], 2000)
    with pytest.raises(ParameterError, match="private estimator"):
        pipeline_guarantee(make_pipeline(PrivateScaler(bounds=(0, 100)), LogisticRegression()).fit(X, y))
    classifier = PrivateGaussianNB(bounds=(0, 1), classes=["a", "b"], epsilon=2)
    assert pipeline_guarantee(make_pipeline(PrivateScaler(bounds=(0, 100)), classifier).fit(X, y)).epsilon == 2


def test_steps_that_learn_nothing_may_stand_anywhere() -> None:
    inner = make_pipeline(Normalizer(), "passthrough", PrivateKMeans(n_clusters=2, epsilon=1, bounds=(0, 1)))
    fitted = make_pipeline(FunctionTransformer(), FunctionTransformer(np.sqrt), inner).fit(X)
    assert pipeline_guarantee(fitted).epsilon == 1
    for step in (
        FunctionTransformer(lambda rows: rows / rows.max()),
        FunctionTransformer(np.add, kw_args={"x2": 1}),
        FunctionTransformer(np.frompyfunc(float, 1, 1)),
    ):
        with pytest.raises(ParameterError, match="leave the step out"):
            pipeline_guarantee(make_pipeline(step, inner))
    with pytest.raises(ParameterError, match="leave the step out"):
        pipeline_guarantee(make_pipeline(Own(), inner))
    with pytest.raises(ParameterError, match=r"estimators of cloister\.learn"):
        pipeline_guarantee(make_pipeline(FunctionTransformer()))
    with pytest.raises(ParameterTypeError, match="Pipeline"):
        pipeline_guarantee(PrivateScaler())
    with pytest.raises(NotFittedError):
        pipeline_guarantee(make_pipeline(PrivateScaler(bounds=(0, 100))))


@pytest.mark.parametrize("answer", [AccountingError("Unknown.", fix="none."), ApproxDP(epsilon=99, delta=3e-6)])
def test_the_sum_stands_where_no_accountant_does_better(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def compose(*_: Any, **__: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    fitted = make_pipeline(*steps(1e-6)).fit(X)
    monkeypatch.setattr(pipelines, "compose", compose)
    assert pipeline_guarantee(fitted).epsilon == 3
