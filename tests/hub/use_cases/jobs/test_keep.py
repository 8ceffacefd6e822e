from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from cloister.errors import (
    ConflictError,
    ForbiddenError,
)
from cloister.hub.domain import actions
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import ResultRecord
from cloister.hub.use_cases import audit_log, jobs
from tests.hub.conftest import add_user, on_databases
from tests.hub.use_cases.jobs.conftest import (
    access,
    decide,
    disable,
    job,
    owner_of,
    read,
    see,
    submit,
    work,
)
from tests.support.hub_services import add_dataset

# Releases ------------------------------------------------------------------------------------------------------------


def test_a_release_waits_for_the_owner_who_sees_it_in_full(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, "test.release")
    assert asked.receipt is None
    work(any_hub)
    owner = owner_of(any_hub)
    assert see(any_hub, owner, asked.id)["may_decide"]
    seen = read(any_hub, owner, asked.id)
    assert seen["owner_only"] == {"risk_before": 1.0}
    assert seen["document"]["remaining"] == "Budget(epsilon=0)"
    with pytest.raises(ConflictError, match="wait for the owner"):
        read(any_hub, ada, asked.id)
    assert not jobs.verify_result(any_hub, seen["digest"])
    decide(any_hub, asked.id, approve=True)
    released = read(any_hub, ada, asked.id)
    assert (released["document"], released["owner_only"]) == (seen["document"], {})
    assert see(any_hub, ada, asked.id)["decision"]["note"] == "fine"
    assert jobs.verify_result(any_hub, seen["digest"])
    with pytest.raises(ConflictError, match="does not wait"):
        decide(any_hub, asked.id, approve=False)


def test_a_rejected_release_is_never_read(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, "test.release")
    work(any_hub)
    decide(any_hub, asked.id, approve=False)
    assert job(any_hub, asked.id).state == JobState.DENIED
    for reader in (ada, owner_of(any_hub)):
        with pytest.raises(ConflictError, match="There is no result"):
            read(any_hub, reader, asked.id)


def test_only_owners_decide_and_not_for_closed_accounts(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, "test.release")
    work(any_hub)
    with pytest.raises(ForbiddenError, match="Only its owner"):
        jobs.decide_release(any_hub, access(any_hub, ada, actions.SEE_JOB, asked.id), asked.id, approve=True)
    disable(any_hub, ada)
    with pytest.raises(ForbiddenError, match="reject the release"):
        decide(any_hub, asked.id, approve=True)


def test_owners_do_not_see_the_answers_of_others(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    work(any_hub)
    owner = owner_of(any_hub)
    with pytest.raises(ForbiddenError, match="Only the person who asked"):
        read(any_hub, owner, asked.id)
    answer = read(any_hub, ada, asked.id)
    shown = see(any_hub, owner, asked.id)
    assert (shown["state"], shown["may_read_result"]) == (JobState.DONE, False)
    assert answer["digest"] not in json.dumps(shown)
    assert answer["nonce"] not in json.dumps(shown)


# Results -------------------------------------------------------------------------------------------------------------


def test_the_database_never_holds_an_answer_in_clear(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    work(any_hub)
    answer = read(any_hub, ada, asked.id)
    with any_hub.store.reading() as session:
        stored = session.query(ResultRecord).one()
        entries = hub_entries(any_hub, session, dataset)
        columns = json.dumps([stored.guarantee, stored.provenance, stored.digest, job(any_hub, asked.id).plan])
    assert answer["nonce"].encode() not in stored.sealed
    assert answer["nonce"] not in columns
    assert "value" in answer["document"]
    assert '"value"' not in columns
    assert [entry["answer"] for entry in entries if "answer" in entry] == [{"job": asked.id}]


def test_only_a_genuine_digest_verifies(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    work(any_hub)
    digest = read(any_hub, ada, asked.id)["digest"]
    assert jobs.verify_result(any_hub, digest)
    assert not jobs.verify_result(any_hub, "0" * 64)


@pytest.mark.parametrize(
    ("any_hub", "field"),
    on_databases(["provenance", "sealed", "receipt"], postgres=["sealed"]),
    indirect=["any_hub"],
)
def test_a_changed_record_does_not_verify(any_hub: Hub, ada: str, field: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5")
    work(any_hub)
    digest = read(any_hub, ada, asked.id)["digest"]
    with any_hub.store.writing() as session:
        stored = session.query(ResultRecord).one()
        if field == "sealed":
            stored.sealed = stored.sealed[:-1] + bytes([stored.sealed[-1] ^ 1])
        elif field == "receipt":
            stored.provenance = {**stored.provenance, "receipt": {"number": 1, "digest": "0" * 64, "cost": {}}}
        else:
            stored.provenance = {**stored.provenance, "purpose": "teaching"}
    assert not jobs.verify_result(any_hub, digest)


def test_the_holder_can_compute_the_digest(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, "test.release")
    work(any_hub)
    decide(any_hub, asked.id, approve=True)
    result = read(any_hub, ada, asked.id)
    files = [{name: value for name, value in file.items() if name != "address"} for file in result["files"]]
    covered = {name: result[name] for name in ("document", "guarantee", "provenance", "nonce")} | {"files": files}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert (len(files), hashlib.sha256(text.encode()).hexdigest()) == (1, result["digest"])


def hub_entries(hub: Hub, session: Any, dataset: str) -> list[dict[str, Any]]:
    return [entry.details for entry in hub.store.ledger(session).entries(dataset)]


# Lists and notes -----------------------------------------------------------------------------------------------------


def test_people_list_their_own_work_and_owners_that_on_their_data(any_hub: Hub, ada: str) -> None:
    bob = add_user(any_hub, "bob", AccountRole.DATA_USER, of="south")
    dataset = add_dataset(any_hub, users=(ada, bob))
    ids = [submit(any_hub, ada, dataset, "test.fresh", epsilon="0.1").id for _ in range(3)]
    theirs = submit(any_hub, bob, dataset, "test.fresh", epsilon="0.1").id
    assert listed(any_hub, ada) == ids[::-1]
    assert listed(any_hub, owner_of(any_hub)) == [theirs, *ids[::-1]]
    assert listed(any_hub, ada, state=JobState.DONE) == []
    assert listed(any_hub, ada, dataset_id="other") == []
    granted = access(any_hub, ada, actions.LIST_JOBS, "")
    page, cursor = jobs.list_jobs(any_hub, granted, limit=2)
    rest, end = jobs.list_jobs(any_hub, granted, limit=2, after=cursor)
    assert ([item["id"] for item in page + rest], end) == (ids[::-1], None)


def test_the_audit_log_holds_what_happened_without_data(any_hub: Hub, ada: str) -> None:
    dataset = add_dataset(any_hub, users=(ada,))
    asked = submit(any_hub, ada, dataset, epsilon="0.5", where="age > 41")
    work(any_hub)
    with any_hub.store.reading() as session:
        entries = session.query(audit_log.AuditEntry).order_by(audit_log.AuditEntry.number).all()
        told = [(entry.action, entry.actor, entry.target, entry.outcome) for entry in entries]
        assert "age" not in " ".join(entry.details for entry in entries[-2:])
    assert told[-2:] == [
        ("service.run", ada, f"job:{asked.id}", "done"),
        ("job.end", "hub", f"job:{asked.id}", "done"),
    ]


def listed(hub: Hub, user: str, **options: Any) -> list[str]:
    items, _ = jobs.list_jobs(hub, access(hub, user, actions.LIST_JOBS, ""), **options)
    return [item["id"] for item in items]
