from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.core.random import SeededRandomSource
from cloister.errors import (
    AccountMismatchError,
    BudgetExceededError,
    CloisterError,
    LedgerUnreachableError,
    ParameterError,
    ParameterTypeError,
    SeededRandomnessWarning,
    UnknownAccountError,
)
from cloister.learn import PrivateGaussianNB
from tests.learn import data

X, Y = [[1.0], [2.0], [8.0], [9.0]], [0, 0, 1, 1]


def model(**options: Any) -> Any:
    return PrivateGaussianNB(**{"epsilon": 1, "bounds": (0, 10), "classes": [0, 1], **options})


def spent(ledger: Any) -> float:
    return float(ledger.spent("patients").amount)


def test_each_fit_is_charged() -> None:
    ledger = data.book(epsilon=2.5)
    made = model(ledger=ledger, dataset="patients")
    for total in (1.0, 2.0):
        assert made.fit(X, Y) is made
        assert spent(ledger) == total
    assert [entry.purpose for entry in ledger.entries("patients")][-1] == "train PrivateGaussianNB"


def test_the_ledger_refuses_when_exhausted_and_the_old_model_stays() -> None:
    ledger = data.book(epsilon=1.5)
    made = model(ledger=ledger, dataset="patients").fit(X, Y)
    before = made.theta_.copy()
    with pytest.raises(BudgetExceededError):
        made.fit(X, Y)
    assert spent(ledger) == 1.0
    assert (made.theta_ == before).all()


def test_a_table_is_not_looked_at_when_the_ledger_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    table = data.patients()
    monkeypatch.setattr(type(table), "frequencies", lambda *_, **__: pytest.fail("looked"))
    with pytest.raises(BudgetExceededError):
        data.bayes(epsilon=5, ledger=data.book(epsilon=1), dataset="patients").fit(table, "sick")


@pytest.mark.hidden_failures
def test_a_failure_after_paying_stays_paid_and_leaves_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = data.book()
    made = model(ledger=ledger, dataset="patients").fit(X, Y)

    def fail(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(PrivateGaussianNB, "_learn", fail)
    with pytest.raises(RuntimeError):
        made.set_params(epsilon=0.5).fit(X, Y)
    assert spent(ledger) == 1.5
    with pytest.raises(Exception, match="not fitted"):
        made.predict(X)
    assert not hasattr(made, "theta_")


@pytest.mark.parametrize(
    ("options", "given", "labels"),
    [
        ({"bounds": None}, X, Y),
        ({"classes": None}, X, Y),
        ({"classes": [0]}, X, Y),
        ({"epsilon": 0}, X, Y),
        ({"epsilon": "much"}, X, Y),
        ({"delta": 2}, X, Y),
        ({"adjacency": "other"}, X, Y),
        ({"unit": "patient"}, X, Y),
        ({"random_state": "seed"}, X, Y),
        ({}, [["secret-4711"]], [0]),
        ({}, [[float("nan")]], [0]),
        ({}, X, [0, 0, 1, 4711]),
        ({}, X, [0, 1]),
        ({}, X, None),
        ({}, [], []),
    ],
)
def test_refusals_cost_nothing(options: dict[str, Any], given: Any, labels: Any) -> None:
    ledger = data.book()
    with pytest.raises((CloisterError, ValueError)) as caught:
        model(ledger=ledger, dataset="patients", **options).fit(given, labels)
    assert spent(ledger) == 0
    assert "4711" not in str(caught.value)


def test_seeds_are_charged_all_the_same_and_taint() -> None:
    ledger = data.book()
    with pytest.warns(SeededRandomnessWarning):
        made = model(ledger=ledger, dataset="patients", random_state=4711).fit(X, Y)
    assert spent(ledger) == 1.0
    assert not made.guarantee_.holds
    assert not model(random_state=SeededRandomSource(1)).fit(X, Y).guarantee_.holds
    assert model().fit(X, Y).guarantee_.holds


def test_the_same_seed_gives_the_same_model() -> None:
    pair = [model(random_state=SeededRandomSource(7)).fit(X, Y).theta_ for _ in range(2)]
    assert (pair[0] == pair[1]).all()


def test_ledgers_are_found_by_address(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    with open_ledger(url) as ledger:
        ledger.open_account("patients", budget=Budget(epsilon=1))
    model(ledger=url, dataset="patients").fit(X, Y)
    with pytest.raises(BudgetExceededError):
        model(ledger=url, dataset="patients").fit(X, Y)
    with open_ledger(url, create=False) as ledger:
        assert spent(ledger) == 1.0


def test_a_mistyped_address_makes_no_new_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreachableError):
        model(ledger=f"sqlite:///{tmp_path / 'other.db'}", dataset="patients").fit(X, Y)


@pytest.mark.parametrize(
    ("options", "error", "fix"),
    [
        ({"dataset": "patients"}, ParameterError, "sqlite"),
        ({"ledger": "book"}, ParameterError, "dataset="),
        ({"ledger": 5, "dataset": "patients"}, ParameterTypeError, "sqlite"),
    ],
)
def test_ledger_and_dataset_belong_together(options: dict[str, Any], error: type[Exception], fix: str) -> None:
    given = {**options, **({"ledger": data.book()} if options.get("ledger") == "book" else {})}
    with pytest.raises(error, match=fix):
        model(**given).fit(X, Y)


def test_unknown_accounts_and_other_relations_are_refused() -> None:
    with pytest.raises(UnknownAccountError):
        model(ledger=data.book(), dataset="others").fit(X, Y)
    with pytest.raises(AccountMismatchError):
        model(ledger=data.book(adjacency="replace"), dataset="patients").fit(X, Y)
    with pytest.raises(AccountMismatchError):
        model(ledger=data.book(unit="patient"), dataset="patients").fit(X, Y)


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("options", [{}, {"adjacency": "replace"}, {"unit": "patient", "max_rows_per_unit": 3}])
def test_ledgers_agree_that_events_take_no_more_than_the_price(options: dict[str, Any], delta: float) -> None:
    about = {
        "unit": options.get("unit", "row"),
        "adjacency": options.get("adjacency", "user" if "unit" in options else "add_remove"),
    }
    ledger = data.book(epsilon=1, delta=delta, **about)
    made = data.bayes(epsilon=1, delta=delta, ledger=ledger, dataset="patients", **options)
    made.fit(data.patients(), "sick")
    assert spent(ledger) == 1.0
    assert float(ledger.spent("patients").delta) == delta


def test_analysts_have_limits_of_their_own() -> None:
    ledger = data.book()
    ledger.limit_analyst("patients", analyst="ada", budget=Budget(epsilon=1))
    made = model(ledger=ledger, dataset="patients", analyst="ada").fit(X, Y)
    with pytest.raises(BudgetExceededError):
        made.fit(X, Y)
    frame = pd.DataFrame({"x": [1.0, 9.0]})
    assert len(made.predict(frame.to_numpy())) == 2
    assert float(ledger.spent("patients", analyst="ada").amount) == 1.0
