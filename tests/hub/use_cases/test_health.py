"""Health is looked at beside the requests, and says what is wrong."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import DatabaseError

from cloister.errors import HubUnavailableError
from cloister.hub.app import create_app
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.use_cases import health
from cloister.hub.use_cases.health import Health, HealthMonitor, check_health


def test_a_hub_that_can_work_says_so(any_hub: Hub) -> None:
    assert check_health(any_hub) == Health()
    assert not list(any_hub.settings.folder.glob(".health-*")), "what is written to try is taken away"


def test_a_full_disk_is_told_with_503(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(free=hub.settings.least_free_bytes - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with TestClient(create_app(hub), base_url="http://127.0.0.1:8080") as client:
        answer = client.get("/health")
    assert answer.status_code == 503
    assert answer.json()["status"] == "degraded"
    assert answer.json()["problems"] == ["The disk of the hub's folder is nearly full."]


def test_how_much_must_be_free_is_a_setting(hub: Hub) -> None:
    wanting = Hub(replace(hub.settings, least_free_bytes=2**70), hub.store, hub.key, hub.blobs)
    assert check_health(wanting).problems == ("The disk of the hub's folder is nearly full.",)


def test_a_disk_that_takes_no_bytes_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    assert check_health(hub).problems == ("Nothing can be written to the hub's folder.",)
    assert not list(hub.settings.folder.glob(".health-*"))


def test_a_database_elsewhere_has_its_disk_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    opened = open_hub(Settings(folder=tmp_path / "hub", database=f"sqlite:///{tmp_path}/elsewhere/hub.db"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    try:
        assert check_health(opened).problems == (
            "The disk of the hub's folder is nearly full.",
            "The disk of the database is nearly full.",
        )
    finally:
        opened.close()


def test_a_database_that_takes_no_changes_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked of the system is what is replaced here: whoever runs tests as root may write to every file.
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("hub.db"))
    assert check_health(hub).problems == ("The database takes no changes.",)


def test_a_database_that_does_not_answer_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise HubUnavailableError("The hub's database does not answer.", fix="try again in a moment.")

    monkeypatch.setattr(type(hub.store), "reading", lambda _: fail())
    assert check_health(hub).problems == ("The database does not answer.",)


def test_a_damaged_database_does_not_end_the_looking(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise DatabaseError("SELECT 1", None, Exception("file is not a database"))

    monkeypatch.setattr(type(hub.store), "reading", lambda _: fail())
    assert check_health(hub).problems == ("The database does not answer.",)


def test_asking_does_not_look_where_somebody_looks_from_time_to_time(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "EVERY", 1e6)
    looks: list[Hub] = []

    def look(looked: Hub) -> Health:
        looks.append(looked)
        return Health()

    moment = [0.0]
    monitor = HealthMonitor(hub, look=look, clock=lambda: moment[0])
    assert monitor.latest() is None
    monitor.start()
    assert [monitor.latest() for _ in range(100)] == [Health()] * 100
    assert len(looks) == 1
    moment[0] = health.STALE + 1
    found = monitor.latest()
    assert found is not None
    assert "for a while" in found.problems[0]
    monitor.stop()
    assert monitor.latest() is None


def test_what_changes_is_seen_by_the_next_look(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "EVERY", 0.0)
    seen = threading.Event()
    found = [Health()]

    def look(_: Hub) -> Health:
        if not found[0].is_fine:
            seen.set()
        return found[0]

    monitor = HealthMonitor(hub, look=look)
    monitor.start()
    found[0] = Health(("broken",))
    assert seen.wait(60)
    monitor.stop()
