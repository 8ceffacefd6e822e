from __future__ import annotations

import threading
from fractions import Fraction

import pytest

from cloister.accounting.budget import Budget
from cloister.errors import (
    BudgetExceededError,
    ConflictError,
    InternalError,
    ParameterError,
)
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.policy import BudgetLimits
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import Job, Spending
from cloister.hub.use_cases.jobs import work as jobs_work
from tests.hub.conftest import add_user
from tests.hub.use_cases.jobs.conftest import (
    preview,
    read,
    see,
    spends,
    spent,
    submit,
    work,
)
from tests.support.hub_services import add_dataset, set_policy


def test_of_two_concurrent_runs_of_six_tenths_of_the_budget_exactly_one_is_taken(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    start, outcomes = threading.Barrier(2), []

    def ask(where: str) -> None:
        start.wait()
        try:
            outcomes.append(submit(any_hub, ada, dataset, epsilon="0.6", where=where).state)
        except BudgetExceededError as error:
            outcomes.append(error.fix)

    threads = [threading.Thread(target=ask, args=(where,)) for where in ("age > 1", "age > 2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["ask for epsilon <= 0.4, or have the data owner raise the budget.", JobState.QUEUED]
    assert spent(any_hub, dataset) == Fraction(3, 5)
    with any_hub.store.reading() as session:
        assert session.query(Job).count() == 1


def test_the_same_idempotency_key_gives_the_same_work_once(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    first = submit(any_hub, ada, dataset, "test.fresh", key="k", epsilon="0.5")
    second = submit(any_hub, ada, dataset, "test.fresh", key="k", epsilon="0.5")
    assert (first.id, spent(any_hub, dataset)) == (second.id, Fraction(1, 2))
    with pytest.raises(ConflictError, match="send a new key"):
        submit(any_hub, ada, dataset, "test.fresh", key="k", epsilon="0.25")
    other = add_user(any_hub, "bob", AccountRole.DATA_USER, of="south")
    set_policy(any_hub, dataset, users=(ada, other))
    assert submit(any_hub, other, dataset, "test.fresh", key="k", epsilon="0.5").id != first.id


def test_an_idempotency_key_is_short(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    with pytest.raises(ParameterError, match="200"):
        submit(any_hub, ada, dataset, key="k" * 201, epsilon="0.5")


def test_a_key_that_is_used_at_the_same_moment_charges_once(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    start, found = threading.Barrier(4), []

    def ask() -> None:
        start.wait()
        found.append(submit(any_hub, ada, dataset, "test.fresh", key="k", epsilon="0.2").id)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert spent(any_hub, dataset) == Fraction(1, 5)


def test_an_equal_question_gets_the_stored_answer_for_nothing(any_hub: Hub, ada: str) -> None:
    bob = add_user(any_hub, "bob", AccountRole.DATA_USER, of="east")
    dataset = add_dataset(any_hub, users=(ada, bob))
    first = submit(any_hub, ada, dataset, epsilon="0.5")
    work(any_hub)
    again = submit(any_hub, bob, dataset, epsilon="0.5")
    assert (again.state, again.receipt, again.id != first.id) == (JobState.DONE, None, True)
    mine, theirs = read(any_hub, bob, again.id), read(any_hub, ada, first.id)
    assert mine["document"] == theirs["document"]
    assert mine["provenance"]["receipt"] == theirs["provenance"]["receipt"]
    assert (mine["provenance"]["is_repeated"], mine["digest"] != theirs["digest"]) == (True, True)
    assert spent(any_hub, dataset) == Fraction(1, 2)
    assert see(any_hub, bob, again.id)["is_repeated"]
    better = submit(any_hub, bob, dataset, epsilon="0.5", where="age > 50")
    assert better.state == JobState.QUEUED


def test_a_stored_answer_is_not_shared_between_views(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    submit(any_hub, ada, dataset, epsilon="0.5")
    work(any_hub)
    set_policy(any_hub, dataset, users=(ada,), hidden=("salary",))
    assert submit(any_hub, ada, dataset, epsilon="0.5").state == JobState.QUEUED


def test_a_refusal_for_lack_of_budget_costs_nothing(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    with pytest.raises(BudgetExceededError, match="epsilon <= 1"):
        submit(any_hub, ada, dataset, epsilon="1.5")
    assert (spent(any_hub, dataset), spends(any_hub, dataset)) == (0, 0)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (BudgetLimits(user=Budget(epsilon=Fraction(1, 2))), "gives to you"),
        (BudgetLimits(organisation=Budget(epsilon=Fraction(1, 2))), "gives to your organisation"),
        (BudgetLimits(purpose=Budget(epsilon=Fraction(1, 2))), "gives to this purpose"),
    ],
)
def test_limits_hold_below_the_budget(any_hub: Hub, ada: str, limits: BudgetLimits, words: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,), limits=limits)
    submit(any_hub, ada, dataset, "test.fresh", epsilon="0.3")
    assert preview(any_hub, ada, dataset, "test.fresh", epsilon="0.1").left == Budget(epsilon="0.2")
    with pytest.raises(BudgetExceededError, match=words):
        submit(any_hub, ada, dataset, "test.fresh", epsilon="0.3")
    assert spent(any_hub, dataset) == Fraction(3, 10)
    submit(any_hub, ada, dataset, "test.fresh", epsilon="0.2")
    with any_hub.store.reading() as session:
        rows = {row.scope: row.amount for row in session.query(Spending).filter_by(dataset_id=dataset)}
    assert rows == {"user": "1/2", "organisation": "1/2", "purpose": "1/2"}


def test_an_organisation_cannot_pass_its_limit_with_two_people(any_hub: Hub, ada: str) -> None:
    bob = add_user(any_hub, "bob", AccountRole.DATA_USER, of="south")
    eve = add_user(any_hub, "eve", AccountRole.DATA_USER, of="east")
    limits = BudgetLimits(organisation=Budget(epsilon=Fraction(1, 2)))
    dataset = add_dataset(any_hub, users=(ada, bob, eve), limits=limits)
    submit(any_hub, ada, dataset, "test.fresh", epsilon="0.4")
    with pytest.raises(BudgetExceededError, match="your organisation"):
        submit(any_hub, bob, dataset, "test.fresh", epsilon="0.4")
    assert submit(any_hub, eve, dataset, "test.fresh", epsilon="0.4").state == JobState.QUEUED


def test_one_run_has_a_limit_of_its_own(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,), limits=BudgetLimits(job=Budget(epsilon=Fraction(1, 4))))
    assert preview(any_hub, ada, dataset, epsilon="0.1").left == Budget(epsilon="0.25")
    with pytest.raises(BudgetExceededError, match="for one run"):
        submit(any_hub, ada, dataset, epsilon="0.5")
    assert spent(any_hub, dataset) == 0


def test_limits_in_another_measure_than_the_budget_are_refused(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,), limits=BudgetLimits(user=Budget(epsilon=Fraction(1))), rho="0.5")
    with pytest.raises(ConflictError, match="state the limits in rho"):
        submit(any_hub, ada, dataset, epsilon="0.5")


@pytest.mark.hidden_failures
def test_a_service_cannot_spend_more_than_it_planned(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, "test.greedy", epsilon="0.25")
    work(any_hub)
    # Paid work that fails ends like any other, about nobody, and at the price that was planned.
    assert (see(any_hub, ada, asked.id)["state"], spent(any_hub, dataset)) == (JobState.DONE, Fraction(1, 4))
    assert read(any_hub, ada, asked.id)["document"]["text"] == jobs_work.NOTHING


def test_a_service_that_names_no_price_is_a_bug(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    with pytest.raises(InternalError, match="names no price"):
        submit(any_hub, ada, dataset, "test.free", epsilon="0.1")
