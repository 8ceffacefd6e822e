"""How often a job decides, parses and opens what it needs: each once for every step, or argued where it is called."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.accounting.ledger import open_ledger
from cloister.hub.domain import decisions, policy_file
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store import sealed_tables
from cloister.queries.sql import compiler, grammar
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, allow, job_of, user_id, work
from tests.support.hub_datasets import ready_dataset, subject

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]  # calls are counted by a profiler, which coverage slows down


@pytest.fixture(autouse=True)
def _threads_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every request begin a thread, since only threads that begin while calls are counted are looked at."""
    monkeypatch.setattr(TestClient, "portal", None)


SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM data GROUP BY sex"
COUNTED: dict[str, Callable[..., Any]] = {
    "policy decided": decisions.decide,
    "policy read": policy_file.policy_from_dict,
    "SQL parsed": grammar.parse_select,
    "SQL compiled": compiler.compile_select,
    "ledger opened in memory": open_ledger,
    "table opened without rows": sealed_tables.empty_table,
    "table opened": sealed_tables.open_sealed_table,
}


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count calls in every thread, whatever name a module has given to a function."""
    names: dict[CodeType, str] = {function.__code__: name for name, function in COUNTED.items()}
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code in names:
            counts[names[frame.f_code]] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield counts
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # None ends it, as for sys.setprofile


def test_every_step_of_a_job_decides_parses_and_opens_once(hub: Hub, client_for: ClientFor) -> None:
    client_for("olga", AccountRole.DATA_OWNER)
    ada = client_for("ada", AccountRole.DATA_USER)
    dataset = ready_dataset(hub, subject(hub, user_id(hub, "olga")))
    allow(hub, dataset, user_id(hub, "ada"))
    with counted() as submission:
        job = job_of(ada, dataset, "query.sql", sql=SQL, epsilon="0.5")
    with counted() as running:
        assert work(hub) == 1
    with counted() as reading:
        assert ada.get(f"{API}/jobs/{job}/result").status_code == 200
    # By the gateway about the dataset, about the run before it is planned, and in the transaction that pays for it.
    assert submission.pop("policy decided") == 3
    assert submission == {
        "policy read": 2,  # by the gateway, whose reading the plan uses, and in the transaction that pays
        "SQL parsed": 1,
        "SQL compiled": 1,
        "ledger opened in memory": 1,
        "table opened without rows": 1,
    }
    # Before any row is read, and in the transaction that keeps the result.
    assert (running.pop("policy decided"), running.pop("policy read")) == (2, 2)
    assert running == {"SQL parsed": 1, "SQL compiled": 1, "ledger opened in memory": 1, "table opened": 1}
    # A private answer was paid for, and belongs to whoever asked.
    assert reading == {}


def test_a_release_is_decided_about_once_when_it_is_handed_out(hub: Hub, client_for: ClientFor) -> None:
    owner, ada = client_for("olga", AccountRole.DATA_OWNER), client_for("ada", AccountRole.DATA_USER)
    dataset = ready_dataset(hub, subject(hub, user_id(hub, "olga")))
    allow(hub, dataset, user_id(hub, "ada"))
    job = job_of(ada, dataset, "release.anonymize")
    work(hub)
    said = {"approve": True, "reason": "these people are made up"}
    assert owner.post(f"{API}/jobs/{job}/decision", json=said).status_code == 200
    with counted() as reading:
        assert ada.get(f"{API}/jobs/{job}/result").status_code == 200
    assert reading == {"policy decided": 1, "policy read": 1}
