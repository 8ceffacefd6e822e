from __future__ import annotations

import json
import time
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from cloister.accounting.budget import Budget
from cloister.errors import (
    BudgetExceededError,
    ConflictError,
    ForbiddenError,
    HubUnavailableError,
    NotFoundError,
    ParameterError,
)
from cloister.hub import queue
from cloister.hub.domain import actions
from cloister.hub.domain.lifecycles import MOST_LOSSES, JobState
from cloister.hub.domain.policy import BudgetLimits
from cloister.hub.hub import Hub
from cloister.hub.queue import FailureCount
from cloister.hub.services.registry import service_registry
from cloister.hub.store.models import Dataset, DatasetVersion, Job, NoticeRecord, PolicyVersion
from cloister.hub.use_cases import jobs
from cloister.hub.use_cases.jobs import work as jobs_work
from tests.hub.conftest import on_databases
from tests.hub.use_cases.jobs.conftest import (
    access,
    disable,
    job,
    owner_of,
    preview,
    read,
    results,
    see,
    spends,
    spent,
    submit,
    work,
)
from tests.support.hub_services import PURPOSE, add_dataset, set_policy

# The way of a run ----------------------------------------------------------------------------------------------------


def test_a_run_is_paid_queued_done_and_read(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    assert (asked.state, spent(any_hub, dataset)) == (JobState.QUEUED, Fraction(1, 2))
    work(any_hub)
    assert job(any_hub, asked.id).state == JobState.DONE
    result = read(any_hub, ada, asked.id)
    assert abs(result["document"]["value"] - 7) < 100
    assert result["guarantee"]["epsilon"] == "1/2"
    assert spent(any_hub, dataset) == Fraction(1, 2)


def test_provenance_names_everything_that_was_decided_used_and_paid(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    work(any_hub)
    provenance = read(any_hub, ada, asked.id)["provenance"]
    assert asked.receipt is not None
    assert provenance["receipt"]["digest"] == asked.receipt["digest"]
    assert provenance["receipt"]["number"] == asked.receipt["number"]
    assert (provenance["dataset"], provenance["dataset_version"]) == (dataset, 1)
    assert len(provenance["source_digest"]) == len(provenance["schema_digest"]) == 64
    assert (provenance["service"], provenance["service_version"]) == ("test.count", "1.0.0")
    assert (provenance["policy_version"], provenance["purpose"]) == (2, PURPOSE)
    assert provenance["terms"]["purposes"] == ["research"]
    assert provenance["terms"]["policies"][0]["object"] == dataset
    assert provenance["parameters"] == {"epsilon": "0.5", "where": None}
    assert provenance["software"].startswith("cloister ")


def test_a_preview_costs_nothing_sees_no_rows_and_says_what_is_left(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,), hidden=("salary",))
    submit(any_hub, ada, dataset, epsilon="0.25")
    shown = preview(any_hub, ada, dataset, epsilon="0.5")
    assert shown.preview == {"columns": ["age", "ward"], "rows": 0}
    assert (shown.cost, shown.left) == (Budget(epsilon="0.5"), Budget(epsilon="0.75"))
    assert shown.is_affordable
    assert not preview(any_hub, ada, dataset, epsilon="0.8").is_affordable
    assert shown.to_dict()["promise"]
    assert spent(any_hub, dataset) == Fraction(1, 4)


def test_a_preview_still_tells_the_price_when_nothing_is_left(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    submit(any_hub, ada, dataset, epsilon="1")
    shown = preview(any_hub, ada, dataset, epsilon="0.5")
    assert (shown.left, shown.is_affordable) == (Budget(epsilon=0), False)


@pytest.mark.hidden_failures
def test_hidden_columns_do_not_exist(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,), hidden=("salary",))
    asked = submit(any_hub, ada, dataset, epsilon="0.1", where="salary > 3")
    nothing = submit(any_hub, ada, dataset, epsilon="0.1", where="nothing > 3")
    work(any_hub)
    work(any_hub)
    for reader in (ada, owner_of(any_hub)):
        shown = [see(any_hub, reader, asked.id), see(any_hub, reader, nothing.id)]
        assert [(found["state"], found["error"]) for found in shown] == [(JobState.DONE, None)] * 2
    documents = [read(any_hub, ada, asked.id)["document"], read(any_hub, ada, nothing.id)["document"]]
    assert documents[0] == documents[1]
    assert documents[0]["text"] == jobs_work.NOTHING


# Policy --------------------------------------------------------------------------------------------------------------


def test_somebody_whom_the_policy_does_not_name_is_refused(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    granted = access(any_hub, ada, actions.RUN_SERVICE, dataset)
    set_policy(any_hub, dataset)
    with pytest.raises(ForbiddenError):
        jobs.submit(any_hub, granted, service="test.count", parameters={"epsilon": "0.1"}, purpose=PURPOSE)
    assert spends(any_hub, dataset) == 0


def test_a_purpose_that_is_not_allowed_is_refused(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    granted = access(any_hub, ada, actions.RUN_SERVICE, dataset)
    for purpose in ("commercial", ""):
        with pytest.raises(ForbiddenError):
            jobs.submit(any_hub, granted, service="test.count", parameters={"epsilon": "0.1"}, purpose=purpose)


def test_owners_pay_like_everybody(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    submit(any_hub, owner_of(any_hub), dataset, epsilon="0.75")
    with pytest.raises(BudgetExceededError, match="epsilon <= 0.25"):
        submit(any_hub, ada, dataset, epsilon="0.5")


def test_a_purpose_cannot_pass_its_limit_by_another_word_below_it(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,), limits=BudgetLimits(purpose=Budget(epsilon=Fraction(1, 2))))
    granted = access(any_hub, ada, actions.RUN_SERVICE, dataset)
    asked = {"service": "test.fresh", "parameters": {"epsilon": "0.3"}}
    jobs.submit(any_hub, granted, purpose="research.health", **asked)
    with pytest.raises(BudgetExceededError, match="to this purpose"):
        jobs.submit(any_hub, granted, purpose="research.social.new", **asked)


def test_a_service_for_owners_is_refused_to_others(any_hub: Hub, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    monkeypatch.setattr(type(service_registry.get("test.release")), "owners_only", True)
    with pytest.raises(ForbiddenError, match="owners of the data only"):
        submit(any_hub, ada, dataset, "test.release")


def test_a_service_is_for_certain_modes(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,), mode="sdc")
    with pytest.raises(ConflictError, match="use a service for sdc"):
        submit(any_hub, ada, dataset, epsilon="0.1")


def test_unknown_services_and_wrong_parameters_are_named(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    with pytest.raises(NotFoundError, match="/api/v1/services"):
        submit(any_hub, ada, dataset, "test.nothing")
    with pytest.raises(ParameterError, match="epsilon: .*; other: .*"):
        submit(any_hub, ada, dataset, epsilon="-1", other=2)


WAYS = ("policy", "account", "version", "dataset", "service", "view")


@pytest.mark.parametrize(("any_hub", "how"), on_databases(WAYS, postgres=["policy", "dataset"]), indirect=["any_hub"])
def test_what_is_revoked_while_queued_is_denied_and_stays_paid(
    any_hub: Hub, ada: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    revoke(any_hub, ada, dataset, how, monkeypatch)
    work(any_hub)
    check_denied(any_hub, asked.id, dataset)


@pytest.mark.parametrize(("any_hub", "how"), on_databases(WAYS, postgres=["policy", "dataset"]), indirect=["any_hub"])
def test_what_is_revoked_while_it_runs_is_denied_and_stays_paid(
    any_hub: Hub, ada: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    monkeypatch.setattr(jobs_work, "_wait", lambda *_: revoke(any_hub, ada, dataset, how, monkeypatch))
    work(any_hub)
    check_denied(any_hub, asked.id, dataset)


def test_a_right_that_is_revoked_between_planning_and_paying_costs_nothing(
    any_hub: Hub, ada: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    service = service_registry.get("test.count")
    plan = service.plan

    def changing(work: Any, parameters: Any) -> Any:
        set_policy(any_hub, dataset, users=(ada,), hidden=("age",))
        return plan(work, parameters)

    monkeypatch.setattr(service, "plan", changing, raising=False)
    with pytest.raises(ConflictError, match="look again"):
        submit(any_hub, ada, dataset, epsilon="0.5")
    assert spends(any_hub, dataset) == 0


def test_a_policy_that_cannot_be_read_is_not_quoted(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    set_policy(any_hub, dataset)
    with any_hub.store.writing() as session:
        newest = session.query(PolicyVersion).order_by(PolicyVersion.number.desc()).first()
        assert newest is not None
        session.add(
            PolicyVersion(
                id="pol_unreadable",
                object_kind="dataset",
                object_id=dataset,
                number=newest.number + 1,
                document={**newest.document, "hush": 1},
            )
        )
    work(any_hub)
    check_denied(any_hub, asked.id, dataset)
    assert "hush" not in json.dumps(see(any_hub, ada, asked.id))


# Failures ------------------------------------------------------------------------------------------------------------


@pytest.mark.hidden_failures
def test_a_service_that_can_do_nothing_has_learned_nothing_for_everybody(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, "test.fail", epsilon="0.5")
    work(any_hub)
    for reader in (ada, owner_of(any_hub)):
        shown = see(any_hub, reader, asked.id)
        assert (shown["state"], shown["error"]) == (JobState.DONE, None)
        assert "ZeroDivision" not in json.dumps(shown)
    assert spent(any_hub, dataset) == Fraction(1, 2)
    with any_hub.store.reading() as session:
        notices = {notice.user_id: notice.text for notice in session.query(NoticeRecord)}
    found = read(any_hub, ada, asked.id)
    assert found["document"]["text"] == jobs_work.NOTHING
    assert found["guarantee"] == asked.plan["guarantee"] == found["document"]["guarantee"]
    assert not found["owner_only"]
    assert notices == {ada: "Count rows on Seven people: the result is there."}


@pytest.mark.hidden_failures
def test_work_that_lost_its_workers_is_done_without_the_rows(
    any_hub: Hub, ada: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    for _ in range(MOST_LOSSES):
        with any_hub.store.writing() as session:
            assert queue.claim(session, "lost", -1) is not None
    monkeypatch.setattr(jobs_work.views, "open_view", lambda *_: pytest.fail("the rows were opened again"))
    count = FailureCount(any_hub.settings.folder)
    before = count.value
    work(any_hub)
    shown = see(any_hub, ada, asked.id)
    assert (shown["state"], shown["error"]) == (JobState.DONE, None)
    assert count.value == before + 1
    assert spent(any_hub, dataset) == Fraction(1, 2)


def test_a_service_for_owners_tells_them_what_failed(any_hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = add_dataset(any_hub)
    owner = owner_of(any_hub)
    set_policy(any_hub, dataset, users=(owner,))
    monkeypatch.setattr(type(service_registry.get("test.fail")), "owners_only", True)
    asked = submit(any_hub, owner, dataset, "test.fail", epsilon="0.5")
    work(any_hub)
    assert see(any_hub, owner, asked.id)["error"] == {**jobs_work.FAILED, "kind": "ZeroDivisionError"}


@pytest.mark.hidden_failures
def test_a_result_appears_only_at_certain_moments(any_hub: Hub, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [jobs_work.next_moment(elapsed, 0.25) for elapsed in (0, 0.25, 0.26, 0.5, 0.51, 3)] == [
        0.25, 0.25, 0.5, 0.5, 1, 4,
    ]  # fmt: skip
    assert jobs_work.next_moment(5, 0) == 0
    dataset = add_dataset(any_hub, users=(ada,))
    slept: list[float] = []
    object.__setattr__(any_hub.settings, "answer_seconds", 3600.0)
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=slept.append)
    monkeypatch.setattr(jobs_work, "time", clock)  # not the module itself, which other threads sleep with
    for service in ("test.count", "test.fail"):
        submit(any_hub, ada, dataset, service, epsilon="0.1")
        work(any_hub)
    assert [3000 < pause <= 3600 for pause in slept] == [True, True]


def test_canceled_work_leaves_no_result_and_stays_paid(any_hub: Hub, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")

    def cancel(*_: Any) -> None:
        jobs.cancel(any_hub, access(any_hub, ada, actions.CANCEL_JOB, asked.id), asked.id)

    monkeypatch.setattr(jobs_work, "_wait", cancel)
    work(any_hub)
    assert (job(any_hub, asked.id).state, results(any_hub, asked.id)) == (JobState.CANCELED, 0)
    assert spent(any_hub, dataset) == Fraction(1, 2)


@pytest.mark.hidden_failures
@pytest.mark.parametrize("owners_only", [False, True])
def test_canceled_work_that_fails_is_canceled(any_hub: Hub, monkeypatch: pytest.MonkeyPatch, owners_only: bool) -> None:
    dataset = add_dataset(any_hub)
    owner = owner_of(any_hub)
    set_policy(any_hub, dataset, users=(owner,))
    monkeypatch.setattr(type(service_registry.get("test.fail")), "owners_only", owners_only)
    asked = submit(any_hub, owner, dataset, "test.fail", epsilon="0.5")
    granted = access(any_hub, owner, actions.CANCEL_JOB, asked.id)
    monkeypatch.setattr(jobs_work, "_wait", lambda *_: jobs.cancel(any_hub, granted, asked.id))
    work(any_hub)
    assert job(any_hub, asked.id).state == JobState.CANCELED


@pytest.mark.hidden_failures
@pytest.mark.parametrize("service", ["test.count", "test.fail"])
def test_a_worker_that_lost_its_claim_changes_nothing(
    any_hub: Hub, ada: str, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, service, epsilon="0.5")
    object.__setattr__(any_hub.settings, "lease_seconds", -1.0)

    def lose(*_: Any) -> None:
        monkeypatch.setattr(jobs_work, "_wait", lambda *_: None)
        work(any_hub)

    monkeypatch.setattr(jobs_work, "_wait", lose)
    work(any_hub)
    found = job(any_hub, asked.id)
    assert (found.attempt, results(any_hub, asked.id)) == (2, 1)
    assert spends(any_hub, dataset) == 1


def test_people_are_told_that_their_work_lost_its_workers(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    object.__setattr__(any_hub.settings, "lease_seconds", -1.0)
    assert [jobs.take(any_hub, "w") is not None for _ in range(5)] == [True, True, True, True, False]
    assert see(any_hub, ada, asked.id)["error"]["problem"] == "The worker was lost four times."
    with any_hub.store.reading() as session:
        assert (
            session.query(NoticeRecord).filter_by(user_id=ada).one().text
            == "Count rows on Seven people: the work failed."
        )


@pytest.mark.parametrize("step", ["_prepare", "_keep"])
def test_a_database_that_is_away_ends_no_work(
    any_hub: Hub, ada: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    held = jobs.take(any_hub, "w")
    assert held is not None
    consider, calls = jobs_work._consider, []

    def failing(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 1 + (step == "_keep"):
            raise HubUnavailableError("The hub's database does not answer.", fix="try again in a moment.")
        return consider(*arguments)

    monkeypatch.setattr(jobs_work, "_consider", failing)
    with pytest.raises(HubUnavailableError):
        jobs.perform(any_hub, held, lambda share, stage: None)
    assert (job(any_hub, asked.id).state, results(any_hub, asked.id)) == (JobState.RUNNING, 0)


def test_work_that_vanished_is_nobodys(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    held = jobs.take(any_hub, "w")
    assert held is not None
    with any_hub.store.writing() as session:
        session.delete(session.get(Job, asked.id))
    jobs.perform(any_hub, held, lambda share, stage: None)


def revoke(hub: Hub, user: str, dataset: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match how:
        case "policy":
            set_policy(hub, dataset)
        case "account":
            disable(hub, user)
        case "view":
            set_policy(hub, dataset, users=(user,), hidden=("salary",))
        case "service":
            monkeypatch.setattr(type(service_registry.get("test.count")), "version", "2.0.0")
        case "version" | "dataset":
            with hub.store.writing() as session:
                model = DatasetVersion if how == "version" else Dataset
                session.query(model).update({"state": "deleted"})


def check_denied(hub: Hub, job_id: str, dataset: str) -> None:
    found = job(hub, job_id)
    assert (found.state, results(hub, job_id)) == (JobState.DENIED, 0)
    assert found.error is not None
    assert "stays paid" in found.error["fix"]
    assert spent(hub, dataset) == Fraction(1, 2)
