"""What every ledger does, on memory, SQLite and PostgreSQL, alone or joined to the transaction of a host."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.events import PureEvent
from cloister.accounting.ledger import EntryKind, Ledger, Receipt, open_ledger
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.errors import (
    AccountMismatchError,
    BudgetExceededError,
    LedgerError,
    ParameterError,
    ParameterTypeError,
    UnknownAccountError,
)

TENTH = Budget(epsilon=0.1)


def test_a_new_account_has_everything_left(hospital: Ledger) -> None:
    account = hospital.account("hospital")
    assert account.remaining == account.budget == Budget(epsilon=1, delta=1e-6)
    assert (account.unit, account.adjacency, account.entries) == ("row", Adjacency.ADD_REMOVE, 1)
    assert hospital.accounts() == (account,)
    assert str(account) == "hospital: Budget(epsilon=0) spent of Budget(epsilon=1, delta=1e-06) per row"
    assert account.to_dict()["remaining"] == {"schema": "cloister.budget/1", "epsilon": "1", "delta": "1/1000000"}


def test_it_is_a_ledger(ledger: Ledger) -> None:
    assert isinstance(ledger, Ledger)
    assert repr(ledger).startswith(("open_ledger(", "join_ledger("))
    assert ledger.accounts() == ()
    ledger.verify()


def test_opening_again_with_the_same_values_changes_nothing(hospital: Ledger) -> None:
    hospital.spend("hospital", cost=TENTH)
    again = hospital.open_account("hospital", budget=Budget(epsilon=1, delta=1e-6))
    assert again.spent == TENTH
    assert len(hospital.entries("hospital")) == 2


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"budget": Budget(epsilon=2, delta=1e-6)}, "raise_budget"),
        ({"budget": Budget(rho=1, delta=1e-6)}, "open it with budget=Budget"),
        ({"unit": "patient"}, "open it with unit='row'"),
        ({"adjacency": Adjacency.REPLACE}, "open it with adjacency='add_remove'"),
    ],
)
def test_opening_with_other_values_is_refused(hospital: Ledger, changes: dict[str, object], fix: str) -> None:
    values = {"budget": Budget(epsilon=1, delta=1e-6), **changes}
    with pytest.raises(AccountMismatchError, match=r'dataset "hospital" has') as caught:
        hospital.open_account("hospital", **values)  # type: ignore[arg-type]
    assert fix in caught.value.fix


def test_ten_tenths_fit_exactly_and_no_more(hospital: Ledger) -> None:
    receipts = [hospital.spend("hospital", cost=TENTH) for _ in range(10)]
    assert [receipt.number for receipt in receipts] == list(range(2, 12))
    assert hospital.remaining("hospital") == Budget(epsilon=0, delta=1e-6)
    with pytest.raises(BudgetExceededError, match="only 0 is left"):
        hospital.spend("hospital", cost=Budget(epsilon="1/1000000000000"))
    assert hospital.spent("hospital") == Budget(epsilon=1)
    hospital.verify()


def test_delta_is_spent_too(hospital: Ledger) -> None:
    hospital.spend("hospital", cost=Budget(epsilon=0, delta=1e-6))
    with pytest.raises(BudgetExceededError, match="needs delta") as caught:
        hospital.spend("hospital", cost=Budget(epsilon=0.1, delta=1e-9))
    assert caught.value.measure == "delta"


def test_a_budget_in_rho(ledger: Ledger) -> None:
    budget = Budget(rho=0.5, delta=1e-6)
    ledger.open_account("flu", budget=budget)
    receipt = ledger.spend("flu", cost=budget.cost_of(PureDP(epsilon=0.1)))
    assert receipt.cost == Budget(rho="1/200")
    ledger.spend("flu", cost=budget.cost_of(ApproxDP(epsilon=0.2, delta=1e-7)))
    assert ledger.remaining("flu") == Budget(rho="19/40", delta=Fraction(9, 10**7))


def test_a_spend_is_recorded_in_full(hospital: Ledger) -> None:
    event = PureEvent(epsilon=0.1)
    receipt = hospital.spend(
        "hospital", cost=TENTH, event=event, analyst="Ann Élan", purpose="weekly count", key="count()"
    )
    opened, entry = hospital.entries("hospital")
    assert (opened.kind, opened.cost, opened.event, opened.purpose) == (EntryKind.OPEN, None, None, "")
    assert opened.budget == Budget(epsilon=1, delta=1e-6)
    assert (entry.kind, entry.cost, entry.event, entry.budget) == (EntryKind.SPEND, TENTH, event, None)
    assert (entry.analyst, entry.purpose, entry.spent) == ("Ann Élan", "weekly count", TENTH)
    assert entry.previous == opened.digest
    assert entry.digest == receipt.digest == hospital.head("hospital")
    assert entry.time == receipt.time
    assert entry.time.endswith("+00:00")
    assert entry.to_dict()["details"]["cost"]["epsilon"] == "1/10"
    assert receipt.to_dict()["cost"]["epsilon"] == "1/10"


@pytest.mark.parametrize(
    ("cost", "error"),
    [
        (Budget(epsilon=0), ParameterError),
        (Budget(rho=0.1), ParameterError),
        (0.1, ParameterTypeError),
        (Budget(epsilon=10**200), ParameterError),
    ],
)
def test_a_bad_cost_is_refused_and_nothing_is_written(hospital: Ledger, cost: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        hospital.spend("hospital", cost=cost)  # type: ignore[arg-type]
    assert len(hospital.entries("hospital")) == 1


def test_not_a_number_never_becomes_a_cost() -> None:
    with pytest.raises(ParameterError, match="finite"):
        Budget(epsilon=float("nan"))


def test_costs_with_endless_digits_are_charged_a_trifle_more(ledger: Ledger) -> None:
    ledger.open_account("odd", budget=Budget(epsilon=1, delta=0.5))
    small = Fraction(1, 3**400)
    first = ledger.spend("odd", cost=Budget(epsilon=small, delta=small), analyst="ann")
    second = ledger.spend("odd", cost=Budget(epsilon="1/7"), analyst="ann")
    assert small < first.cost.amount <= small + Fraction(1, 2**512)
    assert Fraction(1, 7) <= second.cost.amount <= Fraction(1, 7) + Fraction(1, 2**512)
    assert ledger.spent("odd").amount == first.cost.amount + second.cost.amount
    assert ledger.spent("odd").amount.denominator <= 2**512
    ledger.verify()


@pytest.mark.parametrize("budget", [Budget(epsilon=0), Budget(epsilon=Fraction(1, 3**400)), 3, Budget(epsilon=2**600)])
def test_a_senseless_budget_is_refused(ledger: Ledger, budget: object) -> None:
    with pytest.raises((ParameterError, ParameterTypeError)):
        ledger.open_account("hospital", budget=budget)  # type: ignore[arg-type]
    assert ledger.accounts() == ()


@pytest.mark.parametrize("name", ["", " hospital", "hos\npital", "x" * 201, "\ud800", 7, None])
def test_a_bad_dataset_name_is_refused(hospital: Ledger, name: object) -> None:
    with pytest.raises((ParameterError, ParameterTypeError), match="dataset"):
        hospital.spend(name, cost=TENTH)  # type: ignore[arg-type]
    with pytest.raises((ParameterError, ParameterTypeError), match="dataset"):
        hospital.open_account(name, budget=TENTH)  # type: ignore[arg-type]


def test_two_ways_of_typing_a_name_are_one_account(ledger: Ledger) -> None:
    ledger.open_account("Z\u00fcrich", budget=Budget(epsilon=1))
    ledger.spend("Zu\u0308rich", cost=TENTH)
    assert ledger.spent("Z\u00fcrich") == TENTH


@pytest.mark.parametrize(
    "arguments",
    [{"analyst": ""}, {"purpose": "x" * 1001}, {"purpose": 3}, {"key": ""}, {"key": "x" * 100_001}, {"event": "pure"}],
)
def test_other_bad_arguments_of_a_spend_are_refused(hospital: Ledger, arguments: dict[str, object]) -> None:
    with pytest.raises((ParameterError, ParameterTypeError)):
        hospital.spend("hospital", cost=TENTH, **arguments)  # type: ignore[arg-type]
    assert hospital.spent("hospital") == Budget(epsilon=0)


def test_an_unknown_relation_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match='Did you mean "add_remove"'):
        ledger.open_account("hospital", budget=TENTH, adjacency="add-remove")  # type: ignore[arg-type]


def test_an_unknown_dataset_is_refused_with_a_hint(hospital: Ledger) -> None:
    for use in (hospital.account, hospital.entries, hospital.head, hospital.remaining):
        with pytest.raises(UnknownAccountError, match='Did you mean "hospital"') as caught:
            use("hospitel")
        assert "open_account" in caught.value.fix


def test_datasets_do_not_share_a_budget(hospital: Ledger) -> None:
    hospital.open_account("clinic", budget=Budget(epsilon=0.1), unit="patient", adjacency=Adjacency.USER)
    hospital.spend("clinic", cost=TENTH)
    assert hospital.spent("hospital") == Budget(epsilon=0)
    assert [account.dataset for account in hospital.accounts()] == ["clinic", "hospital"]
    hospital.verify()


def test_an_analyst_is_held_to_their_limit(hospital: Ledger) -> None:
    hospital.limit_analyst("hospital", analyst="ann", budget=Budget(epsilon=0.3))
    hospital.spend("hospital", cost=Budget(epsilon=0.25), analyst="ann")
    with pytest.raises(BudgetExceededError, match=r'only 0.05 is left for analyst "ann"'):
        hospital.spend("hospital", cost=TENTH, analyst="ann")
    assert hospital.remaining("hospital", analyst="ann") == Budget(epsilon="1/20")
    assert hospital.spent("hospital", analyst="ann") == Budget(epsilon="1/4")
    hospital.spend("hospital", cost=Budget(epsilon=0.7), analyst="bob")
    assert hospital.remaining("hospital", analyst="bob") == Budget(epsilon="1/20", delta=1e-6)
    assert hospital.spent("hospital", analyst="cy") == Budget(epsilon=0)
    assert hospital.remaining("hospital", analyst="cy") == Budget(epsilon="1/20", delta=1e-6)
    hospital.verify()


def test_the_sum_of_all_analysts_binds(hospital: Ledger) -> None:
    for name in ("ann", "bob"):
        hospital.limit_analyst("hospital", analyst=name, budget=Budget(epsilon=0.8))
    hospital.spend("hospital", cost=Budget(epsilon=0.8), analyst="ann")
    assert hospital.remaining("hospital", analyst="bob") == Budget(epsilon="1/5")
    with pytest.raises(BudgetExceededError, match=r"only 0.2 is left\."):
        hospital.spend("hospital", cost=Budget(epsilon=0.8), analyst="bob")


def test_a_limit_below_what_was_spent_leaves_nothing(hospital: Ledger) -> None:
    hospital.spend("hospital", cost=Budget(epsilon=0.5), analyst="ann")
    hospital.limit_analyst("hospital", analyst="ann", budget=Budget(epsilon=0.2))
    assert hospital.remaining("hospital", analyst="ann") == Budget(epsilon=0)
    hospital.limit_analyst("hospital", analyst="ann", budget=Budget(epsilon=0.6))
    assert hospital.remaining("hospital", analyst="ann") == TENTH
    hospital.verify()


def test_a_limit_above_the_budget_is_refused(hospital: Ledger) -> None:
    with pytest.raises(ParameterError, match="more than the dataset's budget"):
        hospital.limit_analyst("hospital", analyst="ann", budget=Budget(epsilon=2))


def test_the_owner_raises_a_budget_and_it_is_recorded(hospital: Ledger) -> None:
    hospital.spend("hospital", cost=Budget(epsilon=1))
    account = hospital.raise_budget("hospital", budget=Budget(epsilon=1.5, delta=1e-6))
    assert account.remaining == Budget(epsilon=0.5, delta=1e-6)
    hospital.spend("hospital", cost=Budget(epsilon=0.5))
    assert [entry.kind for entry in hospital.entries("hospital")] == ["open", "spend", "raise", "spend"]
    assert hospital.open_account("hospital", budget=Budget(epsilon=1.5, delta=1e-6)).entries == 4
    hospital.verify()


@pytest.mark.parametrize(
    "budget", [Budget(epsilon=1, delta=1e-6), Budget(epsilon=2), Budget(epsilon=0.5, delta=1e-6), Budget(rho=9)]
)
def test_a_budget_is_never_lowered(hospital: Ledger, budget: Budget) -> None:
    with pytest.raises(ParameterError):
        hospital.raise_budget("hospital", budget=budget)
    assert len(hospital.entries("hospital")) == 1


def test_cdp_16_cached_repeat_is_free_for_a_second_analyst_and_a_fresh_one_is_charged(hospital: Ledger) -> None:
    key = "count(age > 50) discrete_laplace add_remove v1"
    assert hospital.find_answer("hospital", key=key, cost=TENTH) is None
    receipt = hospital.spend("hospital", cost=TENTH, analyst="ann", key=key)
    hospital.store_answer(receipt, answer={"value": 6472, "margin": 29.957})
    spent = hospital.spent("hospital")

    for cost in (TENTH, Budget(epsilon=0.05)):
        found = hospital.find_answer("hospital", key=key, cost=cost)
        assert found is not None
        assert found.answer == {"value": 6472, "margin": 29.957}
        assert (found.cost, found.spend, found.dataset, found.key) == (TENTH, receipt.number, "hospital", key)
    assert hospital.find_answer("hospital", key=key, cost=Budget(epsilon=0.2)) is None
    assert hospital.find_answer("hospital", key="count()", cost=TENTH) is None
    assert hospital.spent("hospital") == spent == TENTH
    assert hospital.spent("hospital", analyst="bob") == Budget(epsilon=0)

    hospital.spend("hospital", cost=TENTH, analyst="bob", key=key)
    assert hospital.spent("hospital") == Budget(epsilon=0.2)
    assert hospital.spent("hospital", analyst="bob") == TENTH
    hospital.verify()


def test_the_best_stored_answer_is_found(hospital: Ledger) -> None:
    for epsilon, answer in ((0.1, None), (0.3, "best"), (0.2, "good")):
        receipt = hospital.spend("hospital", cost=Budget(epsilon=epsilon), key="q")
        hospital.store_answer(receipt, answer=answer)
    found = hospital.find_answer("hospital", key="q", cost=Budget(epsilon=0.05))
    assert found is not None
    assert found.answer == "best"


def test_one_receipt_pays_for_one_answer(hospital: Ledger) -> None:
    receipt = hospital.spend("hospital", cost=TENTH, key="q")
    hospital.store_answer(receipt, answer=1)
    with pytest.raises(LedgerError, match="already") as caught:
        hospital.store_answer(receipt, answer=2)
    assert "spend again" in caught.value.fix


def test_a_foreign_or_keyless_receipt_stores_nothing(hospital: Ledger) -> None:
    receipt = hospital.spend("hospital", cost=TENTH, key="q")
    forged: list[Receipt] = [replace(receipt, number=99), replace(receipt, number=1), replace(receipt, digest="0" * 64)]
    for wrong in forged:
        with pytest.raises(LedgerError, match="not from this ledger"):
            hospital.store_answer(wrong, answer=1)
    with pytest.raises(ParameterError, match="no key"):
        hospital.store_answer(replace(receipt, key=None), answer=1)
    assert len(hospital.entries("hospital")) == 2


@pytest.mark.parametrize("changes", [{"cost": Budget(epsilon=1)}, {"key": "another"}])
def test_an_edited_receipt_stores_nothing(hospital: Ledger, changes: dict[str, object]) -> None:
    receipt = hospital.spend("hospital", cost=TENTH, key="q")
    with pytest.raises(LedgerError, match="not from this ledger"):
        hospital.store_answer(replace(receipt, **changes), answer=1)  # type: ignore[arg-type]
    hospital.verify()


@pytest.mark.parametrize("answer", [float("nan"), object(), {1, 2}])
def test_an_answer_that_is_not_json_is_refused(hospital: Ledger, answer: object) -> None:
    receipt = hospital.spend("hospital", cost=TENTH, key="q")
    with pytest.raises(ParameterTypeError, match="JSON"):
        hospital.store_answer(receipt, answer=answer)
    assert hospital.find_answer("hospital", key="q", cost=TENTH) is None


def test_texts_with_odd_characters_survive(hospital: Ledger) -> None:
    odd = "quote ' \" percent % question ? null \0 emoji \U0001f512"
    receipt = hospital.spend("hospital", cost=TENTH, purpose=odd, key=odd)
    hospital.store_answer(receipt, answer=[odd])
    found = hospital.find_answer("hospital", key=odd, cost=TENTH)
    assert found is not None
    assert found.answer == [odd]
    assert hospital.entries("hospital")[1].purpose == odd
    hospital.verify()


def test_noted_heads_are_found_again(hospital: Ledger) -> None:
    first = hospital.head("hospital")
    hospital.spend("hospital", cost=TENTH)
    hospital.verify(heads={"hospital": first})
    hospital.verify(heads={"hospital": hospital.head("hospital")})


def test_a_closed_ledger_refuses_to_work(ledger: Ledger) -> None:
    ledger.close()
    with pytest.raises(LedgerError, match="closed") as caught:
        ledger.accounts()
    assert "open it again" in caught.value.fix


def test_a_durable_ledger_remembers(durable_url: str) -> None:
    with open_ledger(durable_url) as first:
        first.open_account("hospital", budget=Budget(epsilon=1))
        first.spend("hospital", cost=TENTH)
        head = first.head("hospital")
    with open_ledger(durable_url, create=False) as second:
        assert second.spent("hospital") == TENTH
        second.verify(heads={"hospital": head})


def test_a_failing_caller_inside_a_transaction_leaves_no_trace(
    hospital: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cloister.accounting.ledger import _database as database

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(database, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hospital.spend("hospital", cost=TENTH)
    assert hospital.spent("hospital") == Budget(epsilon=0)
    hospital.spend("hospital", cost=TENTH)
    hospital.verify()


def test_two_writers_race_for_the_last_of_a_budget_and_one_wins(hospital: Ledger) -> None:
    start = threading.Barrier(2)

    def race(_: int) -> bool:
        start.wait()
        try:
            hospital.spend("hospital", cost=Budget(epsilon=0.6))
        except BudgetExceededError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(race, range(2))) == [False, True]
    assert hospital.spent("hospital") == Budget(epsilon=0.6)


def test_threads_open_one_account_together(ledger: Ledger) -> None:
    with ThreadPoolExecutor(6) as pool:
        accounts = list(pool.map(lambda _: ledger.open_account("new", budget=TENTH), range(6)))
    assert {account.head for account in accounts} == {ledger.head("new")}
    assert len(ledger.entries("new")) == 1


def test_threads_share_a_ledger_and_never_overspend(ledger: Ledger) -> None:
    ledger.open_account("hospital", budget=Budget(epsilon=1))

    def spend(number: int) -> int:
        try:
            ledger.spend("hospital", cost=Budget(epsilon="1/40"), analyst=f"analyst {number % 3}")
        except BudgetExceededError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(80))) == 40
    assert ledger.remaining("hospital") == Budget(epsilon=0)
    analysts = [ledger.spent("hospital", analyst=f"analyst {number}").amount for number in range(3)]
    assert sum(analysts) == 1
    ledger.verify()


@pytest.mark.parametrize("name", ["Hospital", "HOSPITAL", "\uff48ospital"])
def test_another_spelling_of_a_dataset_is_not_a_second_budget(hospital: Ledger, name: str) -> None:
    with pytest.raises(AccountMismatchError, match='write dataset "hospital"'):
        hospital.open_account(name, budget=Budget(epsilon=1), unit="patient")
    assert [account.dataset for account in hospital.accounts()] == ["hospital"]
    assert hospital.open_account("hospital-2", budget=Budget(epsilon=1)).dataset == "hospital-2"


def test_another_spelling_of_an_analyst_does_not_escape_a_limit(hospital: Ledger) -> None:
    hospital.limit_analyst("hospital", analyst="ann", budget=TENTH)
    hospital.spend("hospital", cost=TENTH, analyst="ann")
    for name in ("Ann", "\uff21nn"):
        with pytest.raises(AccountMismatchError, match='write analyst "ann"'):
            hospital.spend("hospital", cost=TENTH, analyst=name)
        with pytest.raises(AccountMismatchError, match='write analyst "ann"'):
            hospital.limit_analyst("hospital", analyst=name, budget=TENTH)
    hospital.spend("hospital", cost=TENTH, analyst="anna")
