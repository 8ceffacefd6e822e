from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import cloister as cl
from cloister.errors import (
    AccountMismatchError,
    BudgetExceededError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
)
from cloister.local import (
    LeveledQuestion,
    MemoizedQuestion,
    RandomizedResponse,
    RepeatedQuestion,
    Respondent,
    SeveralAttributes,
)


def respondent(epsilon: object = 2, person: str = "p1") -> Respondent:
    return Respondent(person, study="demo", ledger=cl.open_ledger("memory:"), budget=cl.Budget(epsilon=epsilon))  # type: ignore[arg-type]


def test_repeated_reports_are_charged_one_by_one_and_the_last_is_refused() -> None:
    """LDP-17: T reports at epsilon / T fit the budget, the next one does not."""
    me, question = respondent(), RandomizedResponse(epsilon="2/5")
    for _ in range(5):
        me.report(question, True)
    assert me.remaining == cl.Budget(epsilon=0)
    with pytest.raises(BudgetExceededError, match=r"needs epsilon 0\.4, but only 0 is left"):
        me.report(question, True)
    assert me.spent == cl.Budget(epsilon=2)


@pytest.mark.parametrize(("method", "charged"), [("all", 3), ("split", 1), ("sample_one", 1), ("fake_data", 1)])
def test_all_columns_are_charged_as_often_as_there_are_columns(method: str, charged: int) -> None:
    """LDP-17: reporting every column at the whole epsilon costs the sum."""
    me = respondent(5)
    people = SeveralAttributes({"a": 2, "b": 3, "c": 4}, epsilon=1, method=method)
    assert len(me.report(people, {"a": 1, "b": 2, "c": 3})) == 1
    assert me.spent == cl.Budget(epsilon=charged)  # type: ignore[arg-type]


def test_all_columns_do_not_fit_a_budget_for_one() -> None:
    me = respondent(2)
    with pytest.raises(BudgetExceededError, match="needs epsilon 3, but only 2 is left"):
        me.report(SeveralAttributes({"a": 2, "b": 2, "c": 2}, epsilon=1, method="all"), {"a": 1, "b": 1, "c": 1})
    assert me.spent == cl.Budget(epsilon=0)


def test_the_published_fake_data_is_charged_what_it_costs() -> None:
    me = respondent(2)
    people = SeveralAttributes({"a": 2, "b": 2}, epsilon=1, method="fake_data", amplified=True)
    me.report(people, {"a": 1, "b": 0})
    assert float(me.spent.amount) == pytest.approx(1.48988, abs=1e-5)


def test_enrolling_charges_all_reports_at_once() -> None:
    me = respondent(5)
    device = me.enroll(RepeatedQuestion(["no", "yes"], epsilon=2, times=4))
    assert me.spent == cl.Budget(epsilon=2)
    device.report("yes")
    me.enroll(MemoizedQuestion(["no", "yes"], epsilon=1, distinct=2)).report("no")
    assert me.remaining == cl.Budget(epsilon=1)
    with pytest.raises(BudgetExceededError):
        me.enroll(RepeatedQuestion(["no", "yes"], epsilon=2, times=4))


def test_chosen_levels_add_up() -> None:
    me, question = respondent(5), LeveledQuestion(["no", "yes"])
    me.report(question.at("low"), "yes")
    me.report(question.at("high"), "yes")
    assert me.spent == cl.Budget(epsilon=Fraction(17, 4))
    with pytest.raises(BudgetExceededError):
        me.report(question.at("low"), "yes")


def test_the_debit_comes_before_the_report_and_stays() -> None:
    me = respondent()

    class Failing(RandomizedResponse):
        def randomize(self, values: object, *, random_state: object = None) -> None:  # type: ignore[override]
            assert me.spent == cl.Budget(epsilon=1)
            raise OSError("the network is down")

    with pytest.raises(OSError, match="network"):
        me.report(Failing(epsilon=1), True)
    assert me.spent == cl.Budget(epsilon=1)


def test_what_is_not_an_answer_costs_nothing() -> None:
    me = respondent()
    with pytest.raises(OutsideDomainError):
        me.report(RandomizedResponse(epsilon=1), "perhaps")
    with pytest.raises(ParameterTypeError, match="one person"):
        me.report(RandomizedResponse(epsilon=1), [True, False])
    assert me.spent == cl.Budget(epsilon=0)


def test_accounts_are_durable_and_of_one_person(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/people.db"
    budget = cl.Budget(epsilon=1)
    with cl.open_ledger(address) as ledger:
        Respondent("p1", study="demo", ledger=ledger, budget=budget).report(RandomizedResponse(epsilon=1), True)
    with cl.open_ledger(address) as ledger:
        with pytest.raises(BudgetExceededError):
            Respondent("p1", study="demo", ledger=ledger, budget=budget).report(RandomizedResponse(epsilon=1), True)
        other = Respondent("p2", study="demo", ledger=ledger, budget=budget)
        other.report(RandomizedResponse(epsilon=1), True, purpose="do you smoke?")
        account = ledger.account("demo/p2")
        assert (account.unit, str(account.adjacency)) == ("person", "replace")
        assert ledger.entries("demo/p2")[-1].purpose == "do you smoke?"
        with pytest.raises(AccountMismatchError):
            Respondent("p1", study="demo", ledger=ledger, budget=cl.Budget(epsilon=9))
        ledger.verify()


def test_names_are_plain() -> None:
    for bad in ("", "a/b", None, 7):
        with pytest.raises(ParameterError, match="token"):
            respondent(person=bad)  # type: ignore[arg-type]
    assert repr(respondent()) == "Respondent(Budget(epsilon=2) left)"


def test_what_cannot_be_answered_is_refused_before_anything_is_charged() -> None:
    me = respondent()
    for question in (LeveledQuestion(["no", "yes"]), RepeatedQuestion(2, epsilon=1, times=2)):
        with pytest.raises(ParameterTypeError, match="answers once"):
            me.report(question, "no")  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match="nothing to enroll for"):
        me.enroll(RandomizedResponse(epsilon=1))  # type: ignore[type-var]
    assert me.remaining == cl.Budget(epsilon=2)


def test_a_refusal_speaks_of_this_person_and_not_of_a_data_owner() -> None:
    me = respondent(2)
    with pytest.raises(BudgetExceededError) as caught:
        me.report(RandomizedResponse(epsilon=3), True)
    assert "at most 2" in caught.value.fix
    assert "same stored report again is free" in caught.value.fix
    me.report(RandomizedResponse(epsilon=2), True)
    with pytest.raises(BudgetExceededError) as caught:
        me.enroll(RepeatedQuestion(["no", "yes"], epsilon=1, times=2))
    assert "nothing more from this person" in caught.value.fix
    assert "owner" not in str(caught.value)
    assert (caught.value.requested, caught.value.remaining) == (1, 0)
