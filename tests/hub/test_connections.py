"""Connections to the hub: small answers go out at once; clients send headers and take answers in time."""

from __future__ import annotations

import asyncio
import resource
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from cloister.hub import server
from cloister.hub.server import ANSWER_SECONDS, HEADER_SECONDS, TimedConnection, bind_socket
from cloister.hub.settings import Settings


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_accepted_connections_send_small_answers_at_once(tmp_path: Path, host: str) -> None:
    async def accept() -> int:
        accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bind_socket(Settings(folder=tmp_path, host=host, port=0)) as listening:
            async with await asyncio.start_server(look, sock=listening):
                _, writer = await asyncio.open_connection(*listening.getsockname()[:2])
                found = await accepted
                writer.close()
                await writer.wait_closed()
        return found

    if host == "::1" and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    assert asyncio.run(accept()) != 0


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True


class Line:
    """A connection whose clock is turned by hand."""

    def __init__(self) -> None:
        self.timers: list[Any] = []
        self.is_aborted, self.unsent, self.most_unsent = False, 0, -1
        config = uvicorn.Config(_answer, http=TimedConnection, lifespan="off", log_config=None)
        config.load()
        self.protocol = TimedConnection(config, ServerState(), {}, _loop=self)  # type: ignore[arg-type]
        self.protocol.connection_made(self)  # type: ignore[arg-type]

    # What the protocol asks of its loop
    def call_later(self, seconds: float, work: Any) -> Any:
        timer = SimpleNamespace(seconds=seconds, work=work, is_canceled=False)
        timer.cancel = lambda: setattr(timer, "is_canceled", True)
        self.timers.append(timer)
        return timer

    def create_task(self, work: Any) -> Any:
        work.close()
        return _Task()

    # What it asks of its transport
    def get_extra_info(self, name: str) -> Any:
        return None

    def set_write_buffer_limits(self, *, high: int) -> None:
        self.most_unsent = high

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    close = resume_reading = pause_reading = abort

    def write(self, data: bytes) -> None: ...

    @property
    def waiting(self) -> list[Any]:
        return [timer for timer in self.timers if not timer.is_canceled]


class _Task:
    def add_done_callback(self, _: Any) -> None: ...


async def _answer(scope: Any, receive: Any, send: Any) -> None: ...


def test_a_connection_that_sends_no_headers_is_ended_in_time() -> None:
    line = Line()
    (timer,) = line.waiting
    assert timer.seconds == HEADER_SECONDS
    timer.work()
    assert line.is_aborted


def test_letters_now_and_then_do_not_prolong_the_time() -> None:
    line = Line()
    for letter in b"GET /health HTTP/1.1\r\nhost: x":
        line.protocol.data_received(bytes([letter]))
    (timer,) = line.waiting
    assert timer is line.timers[0]
    asyncio.run(_finish(line))
    assert line.waiting == []


async def _finish(line: Line) -> None:
    line.protocol.data_received(b"\r\n\r\n")


def test_a_connection_that_is_lost_is_waited_for_no_more() -> None:
    line = Line()
    line.protocol.connection_lost(None)
    assert line.waiting == []


def paused() -> Line:
    """Return a connection with a request, of whose answer some waits for the client."""
    line = Line()
    asyncio.run(_ask(line))
    assert line.waiting == []
    assert line.most_unsent == 0, "whatever waits is timed, however little"
    line.unsent = 1_000
    line.protocol.pause_writing()
    return line


async def _ask(line: Line) -> None:
    line.protocol.data_received(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")


def test_a_client_that_takes_nothing_of_its_answer_is_ended() -> None:
    line = paused()
    (timer,) = line.waiting
    assert timer.seconds == ANSWER_SECONDS
    timer.work()
    assert line.is_aborted


def test_a_client_that_takes_some_of_its_answer_gets_more_time_for_the_rest() -> None:
    line = paused()
    line.unsent = 999
    line.timers[-1].work()
    assert not line.is_aborted
    line.timers[-1].work()
    assert line.is_aborted


@pytest.mark.parametrize("end", ["resume_writing", "connection_lost"])
def test_a_client_that_has_its_answer_or_has_gone_is_waited_for_no_more(end: str) -> None:
    line = paused()
    getattr(line.protocol, end)(*([None] if end == "connection_lost" else []))
    assert line.waiting == []
    assert not line.protocol.flow.write_paused


@pytest.mark.parametrize(
    ("limits", "raised"),
    [((1_024, 2_048), (2_048, 2_048)), ((1_024, -1), (8_000, -1)), ((-1, -1), None), ((9_000, 9_000), None)],
)
def test_the_hub_may_hold_as_many_connections_as_it_takes(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], raised: tuple[int, int] | None
) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: given.append(wanted))
    server._raise_file_limit()
    assert given == ([] if raised is None else [raised])
