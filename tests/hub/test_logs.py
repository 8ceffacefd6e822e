"""What the hub logs when something breaks: which kind of error and where, and no word of what it was about."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import pytest
import structlog
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from cloister.hub import logs, workers
from cloister.hub.app import create_app
from cloister.hub.domain import actions
from cloister.hub.gateway import GuardedRouter
from cloister.hub.hub import Hub
from cloister.hub.settings import Settings
from tests.support.hub_world import ADDRESS

SECRET = "Zenobia, born 1961, has asthma"


@contextmanager
def logging_into(lines: list[dict[str, Any]]) -> Iterator[None]:
    """Configure the log, and collect what is written while the block lasts; afterwards everything is as before."""
    root, written = logging.getLogger(), io.StringIO()
    before, root.handlers = root.handlers, []
    try:
        with redirect_stderr(written):
            logs.configure()
            yield
    finally:
        root.handlers = before
        structlog.reset_defaults()
    assert SECRET not in written.getvalue()
    lines.extend(json.loads(line) for line in written.getvalue().splitlines())


def fail() -> None:
    raise ValueError(SECRET)


def test_what_libraries_say_is_logged_without_their_words() -> None:
    library = logging.getLogger("uvicorn.error")
    lines: list[dict[str, Any]] = []
    with logging_into(lines):
        try:
            fail()
        except ValueError:
            library.exception("Exception about %s", SECRET)
        library.warning(f"{SECRET} was sent")  # as libraries do
    failed, warned = lines
    assert (failed["library"], failed["kind"], failed["level"]) == ("uvicorn.error", "ValueError", "error")
    assert failed["way"][-1].startswith("tests.hub.test_logs:")
    assert warned["level"] == "warning"


def test_libraries_are_not_written_down_twice() -> None:
    lines: list[dict[str, Any]] = []
    with logging_into(lines):
        logs.configure()
        logging.getLogger("uvicorn.error").error("once")
    assert len(lines) == 1


def test_a_library_that_was_silenced_before_is_heard_again() -> None:
    library = logging.getLogger("uvicorn.error")
    library.setLevel(logging.CRITICAL)
    lines: list[dict[str, Any]] = []
    with logging_into(lines):
        library.warning("once")
    assert [line["level"] for line in lines] == ["warning"]


def test_a_request_that_breaks_the_hub_is_logged_by_its_route(hub: Hub) -> None:
    app, router = create_app(hub), GuardedRouter()

    @router.guarded("GET", "/break/{what}", actions.HEALTH)
    def broken(what: str) -> None:
        raise ValueError(what)

    app.include_router(router)
    lines: list[dict[str, Any]] = []
    with logging_into(lines), TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        answer = client.get(f"/break/{SECRET}")
    assert answer.status_code == 500
    assert SECRET not in answer.text
    (line,) = (line for line in lines if line["event"] == "request failed")
    assert (line["method"], line["route"], line["kind"]) == ("GET", "/break/{what}", "ValueError")


def test_a_worker_that_dies_says_of_what_kind_of_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(workers.Worker, "run", lambda _: fail())
    lines: list[dict[str, Any]] = []
    with logging_into(lines), pytest.raises(SystemExit):
        workers.run_worker(Settings(folder=tmp_path))
    (line,) = (line for line in lines if line["event"] == "worker failed")
    assert line["kind"] == "ValueError"


def test_errors_of_the_database_quote_no_values(hub: Hub) -> None:
    with hub.store.engine.connect() as connection, pytest.raises(OperationalError) as failed:
        connection.execute(text("SELECT * FROM nowhere WHERE name = :name"), {"name": SECRET})
    assert SECRET not in str(failed.value)
