from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister.core.guarantees import NoGuarantee, PureDP
from cloister.data.sources import open_table
from cloister.errors import BudgetExceededError, CloisterError, ParameterError
from cloister.learn._rows import WeightedRows
from cloister.learn.evaluation import (
    _hits,
    _predictions,
    count_predictions_privately,
    evaluate,
    evaluate_privately,
)
from tests.learn import data


def fitted() -> Any:
    return data.bayes(epsilon=50).fit(data.patients(), "sick")


def by_age() -> Any:
    """Return a fitted model that predicts by the age alone."""
    model = fitted()
    model.__dict__["predict"] = lambda rows: np.where(rows.features[:, 0] < 35, "no", "yes")
    return model


def test_accuracy_stands_beside_the_simplest_guess() -> None:
    found = evaluate(by_age(), data.patients(), "sick")
    assert (found.measure, found.rows) == ("accuracy", 6)
    assert found.value == pytest.approx(5 / 6)
    assert found.baseline == pytest.approx(1 / 2)
    assert isinstance(found.guarantee, NoGuarantee)
    assert "simplest guess: 0.5000" in str(found)
    assert found.to_dict()["schema"] == "cloister.evaluation/1"


def test_tables_and_frames_agree() -> None:
    model = fitted()
    table = data.patients()
    frame = table.to_pandas().iloc[[0, 1, 2, 3, 5]]
    few = open_table(table.to_arrow().take([0, 1, 2, 3, 5]))
    assert evaluate(model, few, "sick") == evaluate(model, frame, frame["sick"])


def test_no_rows_have_no_accuracy() -> None:
    empty = open_table(data.patients().to_arrow().slice(0, 0))
    found = evaluate(fitted(), empty, "sick")
    assert found.value is None
    assert "not known" in str(found)


def test_private_figures_are_paid_and_promise_something() -> None:
    ledger = data.book()
    many = open_table(pa.concat_tables([data.patients().to_arrow()] * 200))
    found = evaluate_privately(by_age(), many, "sick", epsilon=2, ledger=ledger, dataset="patients")
    assert found.guarantee == PureDP(epsilon=2)
    assert found.value == pytest.approx(5 / 6, abs=0.05)
    assert found.baseline == pytest.approx(1 / 2, abs=0.05)
    assert float(ledger.spent("patients").amount) == 2


def test_private_figures_of_persons_use_few_rows_of_each() -> None:
    ledger = data.book(unit="patient", adjacency="user")
    found = evaluate_privately(
        by_age(),
        data.patients(),
        "sick",
        epsilon=9,
        ledger=ledger,
        dataset="patients",
        unit="patient",
        max_rows_per_unit=1,
    )
    assert found.guarantee.unit == "patient"
    assert found.rows <= 12


def test_what_is_refused_costs_nothing() -> None:
    ledger = data.book(epsilon=1)
    model, paid = fitted(), {"ledger": ledger, "dataset": "patients"}
    for table, target, options in (
        (data.patients(), "sickk", {}),
        (open_table(pa.table({"age": [1], "sick": ["no"]})), "sick", {}),
        (data.patients(), "sick", {"unit": "patiemt"}),
        (data.patients(), "sick", {"epsilon": 0}),
        (data.patients().to_pandas(), ["no"], {}),
        (data.patients().to_pandas(), ["no"] * 8, {"unit": "patient"}),
    ):
        with pytest.raises(CloisterError):
            evaluate_privately(model, table, target, **{"epsilon": 1, **paid, **options})
    assert float(ledger.spent("patients").amount) == 0
    with pytest.raises(BudgetExceededError):
        evaluate_privately(model, data.patients(), "sick", epsilon=2, **paid)


def regressor(target: str = "number") -> Any:
    model = fitted()
    model.__dict__["target"] = target
    model.__dict__["target_bounds"] = (0, 110)
    model.__dict__["predict"] = lambda rows: rows.features[:, 0] + 1
    return model


def test_regressors_have_the_share_of_variance() -> None:
    table = data.patients(sick=pa.array([20, 30, 40, 50, 60, 70, 80, None], pa.int64()))
    found = evaluate(regressor(), table, "sick")
    assert (found.measure, found.rows, found.baseline) == ("r2", 7, 0.0)
    assert found.value == pytest.approx(1 - 7 / 2800)
    assert evaluate(regressor(), open_table(table.to_arrow().slice(0, 0)), "sick").value is None
    assert evaluate(regressor(), open_table(table.to_arrow().slice(0, 1)), "sick").value is None


def test_predictions_are_counted_for_a_price() -> None:
    ledger = data.book()
    found = count_predictions_privately(by_age(), data.patients(), epsilon=3, ledger=ledger, dataset="patients")
    assert found.classes == ("no", "yes")
    assert found.guarantee == PureDP(epsilon=3)
    assert float(ledger.spent("patients").amount) == 3
    assert abs(sum(found.counts) - 8) < 40
    assert str(found).startswith("no: ")
    assert found.to_dict()["schema"] == "cloister.predicted_counts/1"
    frame = data.patients().to_pandas().iloc[:4]
    exact = count_predictions_privately(by_age(), frame, epsilon=10**6)
    assert exact.counts == (2, 2)


def test_there_must_be_a_truth() -> None:
    with pytest.raises(ParameterError, match="give y"):
        evaluate(fitted(), data.patients(), None)
    with pytest.raises(ParameterError, match="give y"):
        evaluate_privately(fitted(), data.patients(), None, epsilon=1)


def test_other_models_are_not_evaluated() -> None:
    with pytest.raises(ParameterError, match="classifier or a regressor"):
        evaluate(regressor("none"), data.patients(), "sick")
    with pytest.raises(ParameterError, match="keep the figure"):
        evaluate_privately(regressor(), data.patients(), "sick", epsilon=1)


class Saboteur:
    """A model that anybody could bring: it says of a row whatever it likes."""

    target = "classes"

    def __init__(self, answer: Any, classes: Any = ("no", "yes")) -> None:
        self.classes_, self.answer = np.array(classes), answer

    def predict(self, rows: Any) -> Any:
        return self.answer(float(rows.features[0, 0]))


def failing(age: float) -> Any:
    if age > 35:
        raise IndexError(age)
    return np.array(["no"])


@pytest.mark.parametrize(
    "model",
    [
        Saboteur(lambda _: np.array(["no"] * 50)),
        Saboteur(lambda _: np.array([["no", "yes"]])),
        Saboteur(lambda _: np.array("no")),
        Saboteur(lambda _: np.array(["maybe"])),
        Saboteur(lambda _: np.array([np.nan])),
        Saboteur(lambda _: np.array(["no"]), classes=["no"] * 50),
        Saboteur(failing),
    ],
)
def test_a_row_counts_once_at_most_whatever_a_model_says_of_it(model: Any) -> None:
    rows = WeightedRows(np.array([[30.0], [40.0]]), np.array([0, 1]), np.ones(2, dtype=np.int64))
    for count in (_hits, _predictions):
        both, *alone = (
            count(model, WeightedRows(rows.features[some], np.asarray(rows.target)[some], rows.weights[some]))
            for some in (slice(0, 2), slice(0, 1), slice(1, 2))
        )
        assert all(np.abs(part).sum() <= 1 for part in alone)
        assert (sum(alone) == both).all()
