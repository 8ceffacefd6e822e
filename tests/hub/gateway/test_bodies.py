"""Bodies that are too large or too slow, wherever they are read, are refused as what they are."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.hub.domain.roles import AccountRole
from cloister.hub.gateway import bodies, bodies as gateway_bodies
from cloister.hub.hub import Hub
from tests.hub.conftest import ClientFor

API = "/api/v1"


@pytest.fixture
def owner(client_for: ClientFor) -> TestClient:
    return client_for("olga", AccountRole.DATA_OWNER)


@pytest.fixture
def place(owner: TestClient) -> str:
    made = owner.post(f"{API}/datasets", json={"name": "visits", "title": "Visits"}).json()["id"]
    return f"{API}/datasets/{made}/versions"


def pieces(count: int, piece: bytes = b"x" * 2**16) -> Iterator[bytes]:
    for _ in range(count):
        yield piece


def files(hub: Hub) -> list[str]:
    return [path.name for path in (hub.settings.folder / "blobs").rglob("*") if path.is_file()]


def test_a_body_that_does_not_say_how_large_it_is_is_counted(owner: TestClient) -> None:
    answer = owner.post(f"{API}/session", content=pieces(17), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (413, "TooLargeError")


def test_an_upload_that_does_not_say_how_large_it_is_is_counted(
    hub: Hub, owner: TestClient, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        gateway_bodies, "UPLOADS", [(pattern, lambda _: 2**18) for pattern, _ in gateway_bodies.UPLOADS]
    )
    answer = owner.post(place, content=pieces(9), headers={"content-type": "text/csv"}, params={"format": "csv"})
    assert (answer.status_code, answer.json()["error"]) == (413, "TooLargeError")
    assert files(hub) == []


@pytest.mark.parametrize(("kind", "path"), [("application/json", f"{API}/session"), ("text/csv", None)])
def test_a_body_that_hardly_arrives_is_ended(
    hub: Hub, owner: TestClient, place: str, monkeypatch: pytest.MonkeyPatch, kind: str, path: str | None
) -> None:
    monkeypatch.setattr(gateway_bodies, "PATIENCE", 0.2)
    status, answer = send_slowly(owner, path or place, kind)
    assert (status, answer["problem"]) == (408, "This arrives too slowly.")
    assert files(hub) == []


def test_a_few_uploads_arrive_at_a_time_so_that_slow_ones_do_not_take_all_threads(
    owner: TestClient, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = threading.BoundedSemaphore(1)
    monkeypatch.setattr(bodies, "_slots", taken)
    sent: dict[str, Any] = {"content": b"age\n1\n", "headers": {"content-type": "text/csv"}}
    with taken:
        refused = owner.post(place, **sent)
        assert (refused.status_code, refused.json()["error"]) == (429, "TooManyRequestsError")
    assert owner.post(place, **sent).status_code == 201
    assert owner.post(place, content=b"", headers=sent["headers"]).status_code == 422
    assert owner.post(place, **sent).status_code == 201, "a failed upload leaves its place"


def send_slowly(client: TestClient, path: str, kind: str) -> tuple[int, dict[str, Any]]:
    """Send one letter of a body and never the rest; return the answer."""
    sent: list[dict[str, Any]] = []
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    headers = {
        "host": client.base_url.netloc.decode(),
        "content-type": kind,
        "cookie": cookies,
        "x-csrf-token": client.headers["x-csrf-token"],
    }
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"format=csv",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": None,
        "server": None,
    }

    async def talk() -> None:
        waiting = [{"type": "http.request", "body": b"a", "more_body": True}]

        async def receive() -> dict[str, Any]:
            if not waiting:
                await asyncio.Event().wait()
            return waiting.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        await client.app(scope, receive, send)  # type: ignore[arg-type]  # messages are dictionaries

    asyncio.run(talk())
    start, *parts = sent
    return int(start["status"]), json.loads(b"".join(part.get("body", b"") for part in parts))
