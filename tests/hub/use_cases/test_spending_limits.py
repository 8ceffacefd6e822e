from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.core.guarantees import Adjacency
from cloister.errors import BudgetExceededError
from cloister.hub.store.models import Dataset
from cloister.hub.use_cases._spending_limits import account_of, ledger_with
from cloister.hub.use_cases.jobs.plan import IdleTables


def _dataset(**facts: str) -> Dataset:
    return Dataset(id="people", facts=facts)


def test_a_reservation_is_what_is_left_and_no_more() -> None:
    with open_ledger("memory:") as real:
        real.open_account("people", budget=Budget(epsilon=3), unit="person", adjacency=Adjacency.REPLACE)
        account = account_of(real, "people")
        with ledger_with(Budget(epsilon=Fraction(1, 2)), dataset=_dataset(), account=account) as reserved:
            assert reserved.remaining("people") == Budget(epsilon=Fraction(1, 2))
            assert (reserved.account("people").unit, reserved.account("people").adjacency) == ("person", "replace")
            reserved.spend("people", cost=Budget(epsilon=Fraction(1, 2)))
            with pytest.raises(BudgetExceededError):
                reserved.spend("people", cost=Budget(epsilon=Fraction(1, 10**9)))


@pytest.mark.parametrize("amount", [None, Budget(rho=0)])
def test_who_paid_nothing_may_spend_nothing(amount: Budget | None) -> None:
    with open_ledger("memory:") as real:
        real.open_account("people", budget=Budget(rho=3, delta=Fraction(1, 100)))
        with ledger_with(amount, dataset=_dataset(), account=account_of(real, "people")) as reserved:
            assert reserved.remaining("people") == Budget(rho=0)
            with pytest.raises(BudgetExceededError):
                reserved.spend("people", cost=Budget(rho=Fraction(1, 10**9)))


def test_a_dataset_without_a_budget_has_none_to_spend() -> None:
    with open_ledger("memory:") as real:
        assert account_of(real, "people") is None
    dataset = _dataset(unit="patient", adjacency="replace")
    with ledger_with(None, dataset=dataset, account=None) as reserved:
        assert (reserved.account("people").unit, reserved.account("people").adjacency) == ("patient", "replace")
        assert reserved.remaining("people") == Budget(epsilon=0)


def test_a_table_without_rows_is_lent_to_one_plan_at_a_time_and_not_after_an_error() -> None:
    tables, opened = IdleTables(limit=2), []

    def opener() -> Any:
        opened.append(object())
        return opened[-1]

    with tables.lent("a", opener) as first, tables.lent("a", opener) as second:
        assert first is not second
    with tables.lent("a", opener) as again, tables.lent("b", opener):
        assert again in {first, second}
    assert len(opened) == 3
    with pytest.raises(ZeroDivisionError), tables.lent("b", opener):
        raise ZeroDivisionError
    with tables.lent("b", opener):
        pass
    assert len(opened) == 4
    with tables.lent("c", opener), tables.lent("d", opener):
        pass
    with tables.lent("a", opener):
        assert len(opened) == 7
