from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cloister import learn
from cloister.accounting.accountants import PureAccountant
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.core.random import RandomSource, SeededRandomSource, random_source
from cloister.core.whole_rows import Floats
from cloister.errors import BudgetExceededError, CloisterError, ParameterError, ParameterTypeError
from cloister.learn import PrivateCategoricalNB, PrivateGaussianNB, PrivateSearch
from cloister.learn._inputs import read
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PUBLIC_FACTS, PrivateRegressor, TrainingPlan
from cloister.learn.selection import _score, _split
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from tests.learn import data

GRID = {"variance_floor": [1e-3, 1e-1, 0.9]}


@dataclass(kw_only=True, eq=False, repr=False)
class Constant(PrivateRegressor):
    """Predicts a number that it was told, and releases a noisy count that nobody needs."""

    learned: ClassVar[tuple[str, ...]] = ()
    guess: float = 0.0

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        noise = calibration.noise(Fraction(1), sensitivity=1, squared_sensitivity=1)
        return TrainingPlan(steps=(FitStep("count", noise.event),), settings=noise)

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        plan.settings.add(np.array([int(rows.weights.sum())]), source)

    def predict(self, X: Any) -> Floats:
        return np.full(len(self._encoded(X)), float(self.guess))


def search(**options: Any) -> Any:
    given = {"estimator": data.bayes(), "grid": GRID, "epsilon": 6}
    return PrivateSearch(**{**given, **options})


def regression(guesses: list[float], **options: Any) -> Any:
    model = Constant(bounds=(0, 1), target_bounds=(0, 100))
    return PrivateSearch(estimator=model, grid={"guess": guesses}, **{"epsilon": 50, **options})


# Price ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_candidates_share_the_price_and_the_choice_is_of_other_rows(adjacency: str) -> None:
    found = search(estimator=data.bayes(adjacency=adjacency)).fit(data.patients(), "sick")
    rows = 1 if adjacency == "add_remove" else 2
    trained = [step for step in found.steps_ if step.label.startswith("candidate")]
    assert len(trained) == 3
    assert PureAccountant().epsilon([step.event for step in trained]) == Fraction(6, rows)
    assert PureAccountant().epsilon([found.steps_[-1].event]) == Fraction(6, rows)
    assert found.guarantee_ == PureDP(epsilon=6, adjacency=Adjacency(adjacency), assumptions=(PUBLIC_FACTS,))
    assert found.best_estimator_.guarantee_ == found.guarantee_


def test_the_ledger_is_charged_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = data.book(epsilon=10)
    made = search(estimator=data.bayes(ledger=ledger, dataset="patients"))
    made.fit(data.patients(), "sick")
    assert float(ledger.spent("patients").amount) == 6
    monkeypatch.setattr(type(data.patients()), "frequencies", lambda *_, **__: pytest.fail("looked"))
    with pytest.raises(BudgetExceededError):
        made.fit(data.patients(), "sick")
    assert made.best_estimator_ is not None


def test_deltas_are_shared_for_one_row() -> None:
    person = data.bayes(unit="patient", max_rows_per_unit=3)
    found = search(estimator=person, delta=1e-6).fit(data.patients(), "sick")
    assert found.guarantee_ == ApproxDP(
        epsilon=6, delta=1e-6, unit="patient", adjacency="user", assumptions=(PUBLIC_FACTS,)
    )
    row = NoiseCalibration.of(epsilon=6, delta=1e-6, unit="patient", max_rows_per_unit=3)
    share = NoiseCalibration.of(epsilon=row.epsilon / 3, delta=row.delta / 3)
    assert found.steps_[0].event.squared_multiplier == share.squared_multiplier


def test_seeds_repeat_and_taint() -> None:
    pair = [search(random_state=SeededRandomSource(5)).fit(data.patients(), "sick") for _ in range(2)]
    assert pair[0].best_params_ == pair[1].best_params_
    assert not pair[0].guarantee_.holds
    assert not pair[0].best_estimator_.guarantee_.holds
    assert search().fit(data.patients(), "sick").guarantee_.holds


# Choice --------------------------------------------------------------------------------------------------------------


def test_the_best_numbers_win() -> None:
    X, y = [[0.5]] * 400, [70.0] * 400
    assert regression([0.0, 30.0, 70.0]).fit(X, y).best_params_ == {"guess": 70.0}
    assert regression([0.0, 30.0, 70.0]).fit(X, y).predict(X[:2]).tolist() == [70.0, 70.0]


def test_the_best_classes_win() -> None:
    X = [[1.0], [2.0], [8.0], [9.0]] * 100
    y = ["low", "low", "high", "high"] * 100
    model = PrivateGaussianNB(bounds=(0, 10), classes=["low", "high"])
    found = PrivateSearch(estimator=model, grid={"variance_floor": [1e-3, 1e-2]}, epsilon=50).fit(X, y)
    assert found.score(X, y) > 0.95


def test_coins_do_not_look_at_the_rows() -> None:
    rows = read(data.bayes(), data.patients(), "sick").rows()
    many = WeightedRows(rows.features, rows.target, rows.weights * 2000)
    learned, held = _split(many, int(0.25 * 2**64), random_source())
    total = int(many.weights.sum())
    assert int(learned.weights.sum()) + int(held.weights.sum()) == total
    # A binomial share: eight standard deviations are passed once in 10**15 times.
    assert abs(int(held.weights.sum()) - total / 4) < 8 * (total * 3 / 16) ** 0.5
    nothing = WeightedRows(rows.features[:0], np.asarray(rows.target)[:0], rows.weights[:0])
    assert (
        _score(data.bayes(), _split(nothing, 2**62, random_source())[1], read(data.bayes(), data.patients(), "sick"))
        == 0
    )


def test_a_row_moves_every_score_by_at_most_one_and_never_down() -> None:
    reading = read(data.bayes(), data.patients(), "sick")
    rows = reading.rows()
    models = [data.bayes(epsilon=5).fit(data.patients(), "sick") for _ in range(5)]
    for place in range(len(rows.weights)):
        fewer = rows.weights.copy()
        fewer[place] -= 1
        less = WeightedRows(rows.features, rows.target, fewer)
        moved = [_score(model, rows, reading) - _score(model, less, reading) for model in models]
        assert set(moved) <= {0, 1}


@pytest.mark.parametrize("truth", [-1e9, 0.0, 33.3, 100.0, 1e9])
def test_a_row_moves_the_score_of_numbers_by_at_most_a_step(truth: float) -> None:
    model = Constant(bounds=(0, 1), target_bounds=(0, 100))
    for guess in (-1e300, 0.0, 50.0, float("inf"), float("nan")):
        fitted = model.set_params(guess=guess).fit([[0.5]], [50.0])
        reading = read(fitted, [[0.5]], [truth])
        row = WeightedRows(np.array([[0.5]]), np.array([truth]), np.array([1]))
        assert 0 <= _score(fitted, row, reading) <= 2**15


def test_one_candidate_needs_no_choice() -> None:
    found = search(grid={"variance_floor": [0.1]}).fit(data.patients(), "sick")
    assert found.best_params_ == {"variance_floor": 0.1}
    assert len(found.steps_) == 1


def test_several_grids_are_tried_one_after_the_other() -> None:
    found = search(grid=[{"variance_floor": [0.1]}, {"variance_floor": [0.2, 0.3]}]).fit(data.patients(), "sick")
    assert found.best_params_["variance_floor"] in (0.1, 0.2, 0.3)


# Use -----------------------------------------------------------------------------------------------------------------


def test_the_chosen_model_is_saved_with_the_promise_of_the_search(tmp_path: Path) -> None:
    found = search().fit(data.patients(), "sick")
    found.save(tmp_path / "m.cloister")
    again = learn.load(tmp_path / "m.cloister")
    assert again.guarantee_ == found.guarantee_
    assert again.predict(data.patients()).tolist() == found.predict(data.patients()).tolist()


def test_frames_and_clones_work() -> None:
    ledger = data.book(epsilon=100)
    made = clone(search(estimator=data.bayes(ledger=ledger, dataset="patients")))
    assert made.estimator.ledger is ledger
    frame = data.patients().to_pandas().iloc[:4]
    made.fit(frame, frame["sick"])
    assert made.best_estimator_.feature_names_in_.tolist() == ["age", "sex"]
    assert not hasattr(made.estimator, "n_features_in_")
    with pytest.raises(NotFittedError):
        clone(made).predict(pd.DataFrame())
    for call in (made.predict, made.best_estimator_.predict):
        assert len(call(frame)) == 4


@pytest.mark.parametrize(
    ("options", "error", "fix"),
    [
        ({"estimator": None}, ParameterTypeError, "PrivateGaussianNB"),
        ({"grid": None}, ParameterTypeError, "variance_floor"),
        ({"grid": []}, ParameterTypeError, "variance_floor"),
        ({"grid": {"variance_flor": [1]}}, ParameterError, "variance_floor"),
        ({"grid": {"epsilon": [1, 2]}}, ParameterError, "the same for all"),
        ({"grid": {"bounds": [1, 2]}}, ParameterError, "the same for all"),
        (
            {"estimator": PrivateCategoricalNB(classes=[0, 1]), "grid": {"bins": [4, 8]}},
            ParameterError,
            "the same for all",
        ),
        ({"grid": {"variance_floor": "ab"}}, ParameterTypeError, "variance_floor"),
        ({"grid": {"variance_floor": []}}, ParameterTypeError, "variance_floor"),
        ({"grid": {"variance_floor": list(range(1, 2000))}}, ParameterError, "better five"),
        ({"holdout": 0}, ParameterError, "0.2"),
        ({"holdout": 1}, ParameterError, "0.2"),
        ({"epsilon": 0}, CloisterError, "epsilon"),
    ],
)
def test_odd_searches_are_refused_before_paying(options: dict[str, Any], error: type[Exception], fix: str) -> None:
    ledger = data.book()
    given = {"estimator": data.bayes(ledger=ledger, dataset="patients"), **options}
    with pytest.raises(error, match=fix):
        search(**given).fit(data.patients(), "sick")
    assert float(ledger.spent("patients").amount) == 0
