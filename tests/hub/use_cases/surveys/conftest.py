"""A survey with four questions of different kinds, and people who ask it and answer it over the API."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import inspect

from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.local.survey import Survey
from tests.hub.conftest import ClientFor

DOCUMENT: dict[str, Any] = {
    "schema": "cloister.survey/1",
    "id": "life-at-work",
    "title": "Life at work",
    "collector": "Northern Institute, survey@north.example",
    "purpose": "How people sleep, travel and feel at work.",
    "levels": {"off": None, "low": 4, "medium": 1, "high": 0.25},
    "questions": [
        {"id": "smoke", "kind": "yes_no", "text": "Do you smoke?"},
        {
            "id": "job",
            "kind": "single_choice",
            "text": "What kind of work do you do?",
            "options": ["Care and health", "Teaching", "Office", "Crafts", "Something else"],
        },
        {
            "id": "way",
            "kind": "multiple_choice",
            "text": "How do you get to work?",
            "options": ["On foot", "Bicycle", "Bus or train", "Car"],
            "most": 2,
        },
        {"id": "sleep", "kind": "number", "text": "How many hours did you sleep last night?", "bounds": [0, 16]},
    ],
}

MOMENT = re.compile(rb"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}")
"""A precise time, as databases write it."""

Publish = Callable[..., dict[str, Any]]


@pytest.fixture
def asker(client_for: ClientFor) -> TestClient:
    """Somebody who may make surveys."""
    return client_for("ada", AccountRole.DATA_USER)


@pytest.fixture
def publish(asker: TestClient) -> Publish:
    """A function that makes and opens a survey, and returns what the API says about it."""

    def make(document: dict[str, Any] = DOCUMENT, **options: Any) -> dict[str, Any]:
        made = asker.post("/api/v1/surveys", json={"document": document, **options})
        assert made.status_code == 201, made.text
        opened = asker.post(f"/api/v1/surveys/{made.json()['id']}/publish")
        assert opened.status_code == 200, opened.text
        found: dict[str, Any] = opened.json()
        return found

    return make


def asked_in(survey: dict[str, Any]) -> Survey:
    """Return a survey as it was published, with its terms."""
    return Survey.from_dict(survey["document"])


def slug_of(survey: dict[str, Any]) -> str:
    """Return the part of a survey's public address that cannot be guessed."""
    return str(survey["address"]).removeprefix("/s/")


def raw_rows(hub: Hub) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table."""
    with hub.store.engine.connect() as connection:
        tables = [name for name in inspect(connection).get_table_names() if name != "alembic_version"]
        return {
            name: sorted(map(tuple, connection.exec_driver_sql(f'SELECT * FROM "{name}"')), key=repr) for name in tables
        }


def raw_bytes(hub: Hub) -> bytes:
    """Return everything that is on disk, the log and the audit included; of PostgreSQL, a dump of all tables."""
    if hub.store.dialect == "postgresql":
        return repr(raw_rows(hub)).encode()
    return b"".join(path.read_bytes() for path in sorted(hub.settings.folder.glob("hub.db*")))
