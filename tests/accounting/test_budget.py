from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cloister.accounting.budget import Budget
from cloister.core.guarantees import ApproxDP, KAnonymity, PureDP, ZeroConcentratedDP
from cloister.errors import AccountingError, BudgetExceededError, ParameterError

amounts = st.fractions(min_value=0, max_value=100)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 3))


def test_ten_tenths_are_one() -> None:
    left = Budget(epsilon=1)
    for _ in range(10):
        left = left - Budget(epsilon=0.1)
    assert left == Budget(epsilon=0) == Budget(epsilon=1).spent_nothing()


@given(amounts, deltas, amounts, deltas)
def test_adding_and_taking_away_is_exact(first: Fraction, one: Fraction, second: Fraction, other: Fraction) -> None:
    whole = Budget(epsilon=first, delta=one) + Budget(epsilon=second, delta=other)
    assert whole - Budget(epsilon=second, delta=other) == Budget(epsilon=first, delta=one)
    assert whole.covers(Budget(epsilon=first, delta=one))


@given(amounts, deltas, st.sampled_from(["epsilon", "rho"]))
def test_budgets_survive_json(amount: Fraction, delta: Fraction, measure: str) -> None:
    budget = Budget(**{measure: amount, "delta": delta})
    assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget


@pytest.mark.parametrize("values", [{}, {"epsilon": 1, "rho": 1}])
def test_one_measure_is_needed(values: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"Budget\(epsilon=3"):
        Budget(**values)


def test_text() -> None:
    assert repr(Budget(epsilon=1)) == "Budget(epsilon=1)"
    assert repr(Budget(rho=0.5, delta=1e-6)) == "Budget(rho=0.5, delta=1e-06)"


def test_spending_too_much_names_the_measure() -> None:
    with pytest.raises(BudgetExceededError, match="ask for epsilon <= 1") as caught:
        Budget(epsilon=1) - Budget(epsilon=2)
    assert caught.value.remaining == 1
    with pytest.raises(BudgetExceededError, match="repeat questions that were answered"):
        Budget(epsilon=1) - Budget(epsilon=1, delta=0.1)
    assert not Budget(epsilon=1).covers(Budget(epsilon=1, delta=0.1))


def test_measures_do_not_mix() -> None:
    with pytest.raises(ParameterError, match="express both in epsilon"):
        Budget(epsilon=1) + Budget(rho=1)


def test_costs_of_guarantees() -> None:
    by_epsilon, by_rho = Budget(epsilon=1), Budget(rho=1)
    assert by_epsilon.cost_of(PureDP(epsilon=0.5)) == Budget(epsilon=0.5)
    assert by_epsilon.cost_of(ApproxDP(epsilon=0.5, delta=0.1)) == Budget(epsilon=0.5, delta=0.1)
    assert by_rho.cost_of(PureDP(epsilon=0.5)) == Budget(rho="1/8")
    assert by_rho.cost_of(ApproxDP(epsilon=0.5, delta=0.1)) == Budget(rho="1/8", delta=0.1)
    assert by_rho.cost_of(ZeroConcentratedDP(rho=0.2, delta=0.1)) == Budget(rho=0.2, delta=0.1)
    with pytest.raises(AccountingError, match=r"Budget\(rho="):
        by_epsilon.cost_of(ZeroConcentratedDP(rho=0.2))
    with pytest.raises(AccountingError):
        by_rho.cost_of(KAnonymity(k=5))


def test_other_dictionaries_are_refused() -> None:
    with pytest.raises(ParameterError, match="to_dict"):
        Budget.from_dict({"schema": "cloister.budget/9"})


def test_budgets_that_no_float_can_hold_are_printed() -> None:
    assert repr(Budget(epsilon=10**400)) == "Budget(epsilon=1e+400)"
    assert repr(Budget(rho=Fraction(1, 3 * 10**400), delta=Fraction(1, 10**400))) == (
        "Budget(rho=3.33333e-401, delta=1e-400)"
    )
    assert repr(Budget(epsilon=0)) == "Budget(epsilon=0)"
