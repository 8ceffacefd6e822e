"""What depends on the database: locks, and versions that it refuses to change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from cloister.errors import CloisterError
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import AccessRequestRecord, Dataset, PolicyVersion
from cloister.hub.use_cases import policies
from cloister.hub.use_cases.access import decisions, requests
from cloister.hub.use_cases.authorization import load_target
from tests.hub.conftest import add_user
from tests.hub.use_cases.access.conftest import role
from tests.support.hub_datasets import ready_dataset, subject

UNTIL = datetime.now(UTC) + timedelta(days=1)


def _at_once(*steps: Callable[[], Any]) -> list[bool]:
    done: list[bool] = []
    gate = threading.Barrier(len(steps))

    def call(step: Callable[[], Any]) -> None:
        gate.wait()
        try:
            step()
        except CloisterError:
            done.append(False)
        else:
            done.append(True)

    threads = [threading.Thread(target=call, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def test_who_decides_edits_and_expires_at_once_takes_turns(any_hub: Hub) -> None:
    hub = any_hub
    owners = [subject(hub, add_user(hub, name, AccountRole.DATA_OWNER)) for name in ("olga", "otto")]
    ada = subject(hub, add_user(hub, "ada", AccountRole.DATA_USER, of="south"))
    dataset = ready_dataset(hub, owners[0])

    def save(place: int, based_on: int, rows: str | None) -> None:
        with hub.store.writing() as session:
            document = {"discoverable": True, "rows": rows, "roles": [role("researchers")]}
            stored = session.get_one(Dataset, dataset)
            policies.save_policy(hub.store, session, owners[place], stored, document, based_on=based_on)

    assert sorted(_at_once(lambda: save(0, 1, None), lambda: save(1, 1, "age > 3"))) == [False, True]
    with hub.store.writing() as session:
        target = load_target(session, "dataset", dataset)
        assert target is not None
        request = requests.ask_for_access(session, ada, target, purpose="research", operations=["query.count"]).id

    def approve(place: int) -> None:
        with hub.store.writing() as session:
            decisions.approve(hub.store, session, owners[place], request, role="researchers", until=UNTIL)

    def reject() -> None:
        with hub.store.writing() as session:
            decisions.reject(session, owners[1], request)

    assert sorted(_at_once(lambda: approve(0), lambda: approve(1), reject)) == [False, False, True]
    with hub.store.writing() as session:
        row = session.get_one(AccessRequestRecord, request)
        assert session.query(PolicyVersion).count() == 2 + (row.state == "approved")
        if row.state == "approved":
            decisions.revoke(session, owners[0], request)
        assert decisions.expire_due(session) == 0
        row = session.get_one(AccessRequestRecord, request)
        row.state, row.expires = "requested", datetime.now(UTC) - timedelta(days=1)
        row.history = [step | {"at": "2020-01-01T00:00:00+00:00"} for step in row.history]
        session.flush()
        assert decisions.expire_due(session) == 1
    for statement in ("UPDATE policy_versions SET number = number + 9", "DELETE FROM policy_versions"):
        with pytest.raises((DatabaseError, CloisterError)), hub.store.writing() as session:
            session.execute(text(statement))
