"""The four walks of `docs/contributing/architecture.md`, walked: which functions are called, in which order."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from fastapi.testclient import TestClient

import cloister as cl
from cloister.data.examples.example_tables import hospital_table
from cloister.hub.app import create_app
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.use_cases import jobs
from cloister.hub.use_cases.surveys.lifecycle import SMALLEST_LEAST
from cloister.local.survey import Survey
from tests.hub.conftest import add_user, sign_in
from tests.support.hub_services import PURPOSE, add_dataset

ADDRESS = "http://127.0.0.1:8080"
SURVEY: dict[str, Any] = {
    "schema": "cloister.survey/1",
    "id": "smoking",
    "title": "Smoking",
    "collector": "Northern Institute, survey@north.example",
    "purpose": "How many people smoke.",
    "levels": {"off": None, "low": 4, "medium": 1, "high": 0.25},
    "questions": [{"id": "smoke", "kind": "yes_no", "text": "Do you smoke?"}],
}


@contextmanager
def _recorded(called: list[str]) -> Iterator[None]:
    """Note which functions of cloister are called, in every thread, in the order of their first calls."""
    seen = dict.fromkeys(called)

    def note(frame: FrameType, event: str, _argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("cloister."):
            seen.setdefault(f"{module}.{frame.f_code.co_qualname}".removeprefix("cloister."))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # None ends it, as for sys.setprofile
        called[:] = seen


def walk_query(_folder: Path) -> list[str]:
    called: list[str] = []
    table, ledger = hospital_table(patients=50), cl.open_ledger("memory:")
    private = cl.PrivateTable(
        table, dataset="hospital", budget=cl.Budget(epsilon=1), max_rows_per_unit=2, ledger=ledger
    )
    with _recorded(called):
        private.sql("SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM data GROUP BY sex", epsilon=0.5).to_dict()
    return called


def walk_release(folder: Path) -> list[str]:
    called: list[str] = []
    table = hospital_table(patients=100)
    with _recorded(called):
        release = cl.anonymize(table, models=[cl.KAnonymity(k=5)], algorithm="mondrian", suppression_limit=0.02)
        release.report(folder / "release.html")
    return called


@contextmanager
def _hub_of_ada(folder: Path) -> Iterator[tuple[Hub, str, TestClient]]:
    with closing(open_hub(Settings(folder=folder / "hub", workers=0, answer_seconds=0.0))) as hub:
        ada = add_user(hub, "ada", AccountRole.DATA_USER, of="south")
        # Not used as a context manager, a client starts a thread for each request, so that all of them are recorded.
        client = TestClient(create_app(hub), base_url=ADDRESS)
        sign_in(hub, client, ada)
        yield hub, ada, client


def walk_job(folder: Path) -> list[str]:
    called: list[str] = []
    with _hub_of_ada(folder) as (hub, ada, client):
        dataset = add_dataset(hub, users=(ada,))
        body = {"parameters": {"sql": "SELECT COUNT(*) AS n FROM data", "epsilon": "0.1"}, "purpose": PURPOSE}
        with _recorded(called):
            asked = client.post(f"/api/v1/datasets/{dataset}/services/query.sql/runs", json=body)
            assert asked.status_code == 202, asked.text
            claim = jobs.take(hub, "tests")
            assert claim is not None
            jobs.perform(hub, claim, lambda share, stage: None)
            assert client.get(f"/api/v1/jobs/{asked.json()['id']}/result").status_code == 200
    return called


def walk_answer(folder: Path) -> list[str]:
    called: list[str] = []
    with _hub_of_ada(folder) as (_, _, client):
        drafted = client.post("/api/v1/surveys", json={"document": SURVEY, "least": SMALLEST_LEAST}).json()
        opened = client.post(f"/api/v1/surveys/{drafted['id']}/publish").json()
        path = f"/api/v1/surveys/{opened['address'].removeprefix('/s/')}"
        with _recorded(called):
            assert client.get(f"{path}/page").status_code == 200
            survey = Survey.from_dict(opened["document"])
            for _ in range(SMALLEST_LEAST):
                submission = survey.answer({"smoke": "yes"}, day=opened["opened"]).to_dict()
                assert client.post(f"{path}/submissions", json={"submission": submission}).status_code == 201
            assert client.get(f"/api/v1/surveys/{drafted['id']}/estimates").status_code == 200
    return called


WALKS: dict[str, Callable[[Path], list[str]]] = {
    "A private SQL query": walk_query,
    "An anonymized release": walk_release,
    "A job in the hub": walk_job,
    "A survey answer": walk_answer,
}
