from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cloister import learn
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.errors import UnsafeMechanismError
from cloister.learn import PrivateGaussianNB
from cloister.learn.base import PUBLIC_FACTS, estimators
from cloister.learn.catalog import load_all, names
from tests.learn import data
from tests.learn.toys import ToyCenter

X, Y = [[1.0], [2.0], [8.0], [9.0]] * 25, ["low", "low", "high", "high"] * 25


def model(**options: Any) -> Any:
    return PrivateGaussianNB(**{"epsilon": 5, "bounds": (0, 10), "classes": ["low", "high"], **options})


def test_all_homes_are_loaded() -> None:
    assert load_all() is estimators
    assert list(estimators) == list(names()) == sorted(names())
    registered = set(dict(estimators.items()).values())
    assert PrivateGaussianNB in registered
    assert {cls.__name__ for cls in registered} <= set(dir(learn))


def test_unknown_names_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="no attribute"):
        _ = learn.PrivateMagic


def test_models_state_their_promise() -> None:
    assert model().fit(X, Y).guarantee_ == PureDP(epsilon=5, assumptions=(PUBLIC_FACTS,))
    slack = model(delta=1e-6, adjacency="replace").fit(X, Y).guarantee_
    assert slack == ApproxDP(epsilon=5, delta=1e-6, adjacency=Adjacency.REPLACE, assumptions=(PUBLIC_FACTS,))


def test_parameters_are_stored_as_they_are() -> None:
    bounds = ([0], [10])
    made = model(bounds=bounds)
    assert made.get_params()["bounds"] is bounds
    assert clone(made).get_params() == made.get_params()
    made.fit(X, Y)
    assert made.get_params()["bounds"] is bounds
    assert not hasattr(clone(made), "guarantee_")


def test_predicting_needs_a_fit() -> None:
    with pytest.raises(NotFittedError):
        model().predict(X)


def test_predicting_is_free_and_in_the_declared_classes() -> None:
    made = model(epsilon=50).fit(X, Y)
    assert made.classes_.tolist() == ["high", "low"]
    assert made.predict([[0.5], [9.5]]).tolist() == ["low", "high"]
    assert made.score(X, Y) > 0.9
    assert np.allclose(made.predict_proba([[0.5]]).sum(axis=1), 1)


def test_models_work_in_pipelines_and_searches() -> None:
    ledger = data.book(epsilon=100)
    pipeline = make_pipeline(FunctionTransformer(), model())
    assert pipeline.fit(X, Y).predict([[0.5]]).tolist() in (["low"], ["high"])
    search = GridSearchCV(model(ledger=ledger, dataset="patients"), {"variance_floor": [1e-3, 1e-2]}, cv=2)
    search.fit(np.array(X), Y)
    # Two candidates on two folds, and the best one again on everything; the copies share the ledger.
    assert float(ledger.spent("patients").amount) == 25


def test_array_frame_and_table_have_the_same_promise_and_plan() -> None:
    table = data.patients()
    frame = table.to_pandas().iloc[:4]
    fitted = [data.bayes().fit(table, "sick"), data.bayes().fit(frame, frame["sick"])]
    assert fitted[0].guarantee_ == fitted[1].guarantee_
    assert fitted[0].steps_ == fitted[1].steps_


def test_names_of_features_follow_the_last_fit() -> None:
    made = data.bayes().fit(data.patients(), "sick")
    assert made.feature_names_in_.tolist() == ["age", "sex"]
    assert made.n_features_in_ == 2
    made.set_params(features=None, bounds=(0, 10), domain=None, classes=["low", "high"]).fit(X, Y)
    assert made.n_features_in_ == 1
    assert not hasattr(made, "feature_names_in_")
    with pytest.warns(UserWarning, match="feature names"):
        made.predict(pd.DataFrame({"x": [1.0]}))


def test_labels_of_the_rows_learned_from_are_refused() -> None:
    with pytest.raises(UnsafeMechanismError, match="yours to label"):
        ToyCenter(bounds=(0, 10)).fit_predict(X)


def test_repr_shows_parameters_and_no_rows() -> None:
    made = model().fit([[4.711]] * 8, ["low", "high"] * 4)
    assert "4.711" not in repr(made)
