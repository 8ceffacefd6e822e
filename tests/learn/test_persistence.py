from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from cloister import learn
from cloister._version import __version__
from cloister.core import documents
from cloister.errors import DataError, ModelError, SourceNotFoundError
from cloister.learn import PrivateGaussianNB
from cloister.learn.persistence import document_of, model_of
from tests.learn import data


def fitted(**options: Any) -> Any:
    return data.bayes(**options).fit(data.patients(), "sick")


def document(**options: Any) -> Any:
    return json.loads(json.dumps(document_of(fitted(**options))))


def test_a_saved_model_is_the_same_one(tmp_path: Path) -> None:
    model = fitted(epsilon=Decimal("0.7"), adjacency="replace", delta=1e-6)
    model.save(tmp_path / "m.cloister")
    again = learn.load(tmp_path / "m.cloister")
    table = data.patients()
    assert type(again) is PrivateGaussianNB
    assert (again.theta_ == model.theta_).all()
    assert (again.predict_proba(table) == model.predict_proba(table)).all()
    assert again.guarantee_ == model.guarantee_
    assert again.steps_ == model.steps_
    assert again.encoding_ == model.encoding_
    assert again.provenance_ == model.provenance_
    assert document_of(again) == document_of(model)


def test_the_file_says_where_the_model_comes_from(tmp_path: Path) -> None:
    fitted(ledger=data.book(), dataset="patients").save(tmp_path / "m.cloister")
    written = json.loads((tmp_path / "m.cloister").read_text())
    today = dt.datetime.now(tz=dt.UTC).date()
    found = written["provenance"]
    assert dt.date.fromisoformat(found.pop("date")) in (today, today - dt.timedelta(days=1))
    assert found == {"cloister": __version__, "dataset": "patients"}
    assert written["schema"] == "cloister.model/1"
    assert written["estimator"] == "gaussian_nb"
    assert not {"ledger", "random_state", "schema", "analyst"} & written["parameters"].keys()


def test_a_loaded_model_does_not_know_the_ledger(tmp_path: Path) -> None:
    ledger = data.book()
    fitted(ledger=ledger, dataset="patients").save(tmp_path / "m.cloister")
    again = learn.load(tmp_path / "m.cloister")
    assert again.ledger is None
    assert again.dataset is None
    again.fit(data.patients(), "sick")
    assert again.provenance_.dataset is None
    assert float(ledger.spent("patients").amount) == 5


def test_a_seeded_model_stays_tainted(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="seed|predict"):
        fitted(random_state=1).save(tmp_path / "m.cloister")
    assert not learn.load(tmp_path / "m.cloister").guarantee_.holds


def test_columns_without_names_are_saved_too(tmp_path: Path) -> None:
    model = PrivateGaussianNB(epsilon=5, bounds=(0, np.float64(9)), classes=[1, 2]).fit([[1.0], [8.0]] * 9, [1, 2] * 9)
    model.save(tmp_path / "m.cloister")
    again = learn.load(tmp_path / "m.cloister")
    with pytest.warns(UserWarning, match="feature names"):
        assert again.predict([[1.0]]).dtype == np.int64


def test_files_are_not_replaced_unasked(tmp_path: Path) -> None:
    model = fitted()
    model.save(tmp_path / "m.cloister")
    with pytest.raises(DataError, match="overwrite=True"):
        model.save(tmp_path / "m.cloister")
    model.save(tmp_path / "m.cloister", overwrite=True)


def test_only_fitted_and_registered_models_are_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        data.bayes().save(tmp_path / "m.cloister")

    class Mine(PrivateGaussianNB):
        pass

    mine = Mine(epsilon=5, bounds=(0, 9), classes=[1, 2]).fit([[1.0], [8.0]] * 9, [1, 2] * 9)
    with pytest.raises(ModelError, match="estimators of cloister.learn"):
        mine.save(tmp_path / "m.cloister")


def test_parameters_that_are_not_plain_are_not_saved(tmp_path: Path) -> None:
    model = fitted(variance_floor=1e-3)
    model.variance_floor = object()
    with pytest.raises(ModelError, match="plain numbers"):
        model.save(tmp_path / "m.cloister")
    assert not list(tmp_path.iterdir())


def test_missing_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="check the path"):
        learn.load(tmp_path / "none.cloister")
    with pytest.raises(ModelError, match="who may read"):
        learn.load(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "5", "null", '{"schema": "cloister.model/1", "x": NaN}', "[" * 100_000, "\x00", '{"a":1,"a":2}'],
)
def test_files_that_are_no_models_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.cloister").write_text(text)
    with pytest.raises(ModelError, match="train again"):
        learn.load(tmp_path / "m.cloister")


def test_pickles_are_refused(tmp_path: Path) -> None:
    import pickle

    (tmp_path / "m.cloister").write_bytes(pickle.dumps({"schema": "cloister.model/1"}))
    with pytest.raises(ModelError):
        learn.load(tmp_path / "m.cloister")


def test_huge_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted().save(tmp_path / "m.cloister")
    monkeypatch.setattr(documents, "_LARGEST_FILE", 100)
    with pytest.raises(ModelError, match="too large"):
        learn.load(tmp_path / "m.cloister")


def test_other_versions_and_kinds_are_refused_with_a_fix() -> None:
    good = document()
    with pytest.raises(ModelError, match="newer cloister"):
        model_of({**good, "schema": "cloister.model/2"})
    with pytest.raises(ModelError, match="newer cloister"):
        model_of({**good, "estimator": "deep_thought"})
    with pytest.raises(ModelError, match="newer cloister"):
        model_of({**good, "estimator": ["gaussian_nb"]})


_THRICE = {"theta_": {"array": "float64", "shape": [3, 2, 3], "values": [1.0] * 18}}


def wrong(good: Any) -> dict[str, Any]:
    array = good["learned"]["theta_"]
    return {
        "missing": {name: value for name, value in good.items() if name != "steps"},
        "more": {**good, "code": "print(1)"},
        "parameter": {**good, "parameters": {**good["parameters"], "ledger": "sqlite:///x.db"}},
        "unknown parameter": {**good, "parameters": {"__class__": 1}},
        "parameters": {**good, "parameters": []},
        "encoding": {**good, "encoding": {"features": [{"name": "age", "bounds": [1, 0]}]}},
        "no features": {**good, "encoding": {"features": []}},
        "other encoding": {**good, "encoding": {"features": "all"}},
        "strange encoding": {**good, "encoding": {"features": [{"name": 5, "bounds": [0, 1]}]}},
        "twice": {**good, "encoding": {"features": [{"name": "a", "bounds": [0, 1]}] * 2}},
        "texts": {**good, "encoding": {"features": [{"name": "a", "bounds": ["0", "1"]}]}},
        "huge bounds": {**good, "encoding": {"features": [{"name": "a", "bounds": [0, 10**400]}]}},
        "no values": {**good, "encoding": {"features": [{"name": "a", "values": []}]}},
        "encoding is a list": {**good, "encoding": []},
        "guarantee": {**good, "guarantee": {**good["guarantee"], "epsilon": "-1"}},
        "better guarantee": {**good, "guarantee": {**good["guarantee"], "holds": False}},
        "no guarantee": {**good, "guarantee": 5},
        "steps": {**good, "steps": [{"label": "x"}]},
        "step": {**good, "steps": [{"label": "x", "event": []}]},
        "no steps": {**good, "steps": {}},
        "provenance": {**good, "provenance": {"cloister": "1", "date": "yesterday", "dataset": None}},
        "no provenance": {**good, "provenance": {}},
        "strange provenance": {**good, "provenance": {"cloister": 1, "date": "2026-01-01", "dataset": None}},
        "no classes": {**good, "classes": None},
        "classes twice": {**good, "classes": {"array": "text", "shape": [2], "values": ["no", "no"]}},
        "classes in a table": {**good, "classes": {"array": "text", "shape": [1, 2], "values": ["no", "yes"]}},
        "many rows of one": {**good, "learned": {**good["learned"], **_THRICE}},
        "less": {**good, "learned": {"theta_": array}},
        "extra": {**good, "learned": {**good["learned"], "__dict__": array}},
        "learned": {**good, "learned": []},
        "shape": {**good, "learned": {**good["learned"], "theta_": {**array, "shape": [3, 2]}}},
        "kind": {**good, "learned": {**good["learned"], "theta_": "text"}},
        "infinite": {**good, "learned": {**good["learned"], "theta_": {**array, "values": [1e999] * 6}}},
    }


@pytest.mark.parametrize("what", sorted(wrong({"learned": {"theta_": {}}, "parameters": {}, "guarantee": {}})))
def test_damaged_documents_are_refused(what: str) -> None:
    with pytest.raises(ModelError):
        model_of(wrong(document())[what])


def test_other_guarantees_are_refused() -> None:
    from cloister.core.guarantees import KAnonymity

    with pytest.raises(ModelError, match="differential privacy"):
        model_of({**document(), "guarantee": KAnonymity(k=5).to_dict()})


SAVED = Path(__file__).parents[1] / "golden" / "learn" / "saved"
EXPECTED = json.loads((SAVED / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_files_that_an_earlier_version_saved_are_read(name: str) -> None:
    """One file of each estimator, with what that version said about four rows."""
    model = learn.load(SAVED / f"{name}.cloister")
    assert document_of(model) == json.loads((SAVED / f"{name}.cloister").read_text("utf-8"))
    rows = pd.DataFrame(EXPECTED[name]["rows"])
    says = model.predict(rows) if hasattr(model, "predict") else model.transform(rows)
    if np.asarray(says).dtype.kind in "fi":
        np.testing.assert_allclose(np.asarray(says, dtype=float), EXPECTED[name]["says"], rtol=1e-9)
    else:
        assert says.tolist() == EXPECTED[name]["says"]
