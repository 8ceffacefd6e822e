"""The server of a hub: the web server in this process, workers in their own."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cloister.data.engines.duckdb import forbid_spilling
from cloister.errors import HubUnavailableError, ParameterError
from cloister.hub import logs
from cloister.hub.app import create_app
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.workers import Supervisor

KEEP_ALIVE = 20
"""Seconds for which an idle connection is kept."""

GRACE = 10
"""Seconds that requests under way have to end when the hub is told to."""

MOST_CONNECTIONS = 4_000
"""How many connections are open at a time; with more, requests are refused."""

BACKLOG = 2_048
"""How many connections the system holds that were not accepted yet."""

HEADER_SECONDS = 10
"""Seconds in which the first line and the headers of a request have to arrive."""

ANSWER_SECONDS = 30
"""Seconds in which a client has to take some of what waits to be sent to it."""

SWITCH_SECONDS = 0.001
"""How long a thread computes until others get their turn: the thread that accepts requests must not wait for long."""

LARGEST_HEADERS = 64 * 1024


def serve(settings: Settings, *, ready: Callable[[Hub], None] | None = None) -> None:
    """Serve a hub until it is told to end.

    Args:
        settings: everything that the hub is told.
        ready: called once, when the hub answers.
    """
    check_place(settings)
    forbid_spilling()
    logs.configure(settings.log_level)
    _raise_file_limit()
    sys.setswitchinterval(SWITCH_SECONDS)
    hub = open_hub(settings)
    try:
        listening = bind_socket(settings)
        with listening:
            _Server(hub, _configuration(hub), ready).run(sockets=[listening])
    finally:
        hub.close()


def check_place(settings: Settings) -> None:
    """Raise where passwords would cross a network in plain, or a demo would be reachable from elsewhere."""
    if _is_loopback(settings.host):
        return
    if settings.demo:
        raise ParameterError("The demo is for this machine only.", fix="leave the host at 127.0.0.1.")
    if not settings.is_https:
        raise ParameterError(
            "The hub would listen on a network without TLS.",
            fix="put a proxy with TLS before it and set public_url to its https address, or listen on 127.0.0.1.",
        )


def bind_socket(settings: Settings) -> socket.socket:
    """Return the socket on which the hub will answer.

    It names its protocol: only then does asyncio send small answers at once (TCP_NODELAY) instead of waiting 40 ms for
    more to send.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise HubUnavailableError(
            f"The hub cannot listen on {settings.host}, port {settings.port}: {error.strerror}.",
            fix="choose another port with --port, or end the program that uses this one.",
        ) from None
    listening.set_inheritable(True)
    return listening


class TimedConnection(H11Protocol):
    """HTTP whose clients send their headers in time, and take their answers in time.

    Uvicorn itself ends connections that send nothing after a request, but not those that send a letter now and then,
    nor those that never read what they asked for.
    """

    _headers: asyncio.TimerHandle | None = None
    _answer: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for headers."""
        super().connection_made(transport)
        # Writing pauses as soon as anything waits, however little, so that every wait is timed.
        transport.set_write_buffer_limits(high=0)
        self._look_at_headers()

    def data_received(self, data: bytes) -> None:
        """Take some bytes, and wait for the rest of the headers where they are not there yet."""
        super().data_received(data)
        self._look_at_headers()

    def pause_writing(self) -> None:
        """Begin to wait for the client to take its answer."""
        super().pause_writing()
        self._wait_for_client()

    def resume_writing(self) -> None:
        """Stop waiting: the answer is with the system."""
        _cancel(self._answer)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        _cancel(self._headers)
        _cancel(self._answer)
        super().connection_lost(exc)

    def _look_at_headers(self) -> None:
        # Until its headers are there, the other side of a connection is idle, whatever it has sent.
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            _cancel(self._headers)
            self._headers = None
        elif self._headers is None:
            self._headers = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _wait_for_client(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._answer = self.loop.call_later(ANSWER_SECONDS, self._look_at_client)

    def _look_at_client(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent:
            self._wait_for_client()
        else:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class _Server(uvicorn.Server):
    """A server that says when it answers, and starts its workers then: they load as much as it does, beside it."""

    def __init__(self, hub: Hub, config: uvicorn.Config, ready: Callable[[Hub], None] | None) -> None:
        super().__init__(config)
        self._hub, self._ready = hub, ready
        self._workers = ExitStack()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to end, then end the workers."""
        with self._workers:
            super().run(sockets=sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets=sockets)
        # What is loaded by now stays until the end: looking through it again and again would only take time.
        gc.freeze()
        gc.enable()
        if self.should_exit:
            return
        if self._ready is not None:
            await asyncio.to_thread(self._ready, self._hub)
        self._workers.enter_context(Supervisor(self._hub.settings))


def _configuration(hub: Hub) -> uvicorn.Config:
    options: dict[str, Any] = {}
    if sys.platform != "win32":
        options["loop"] = "asyncio"
    return uvicorn.Config(
        create_app(hub),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        # Whoever connects could write such headers.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=LARGEST_HEADERS,
        http=TimedConnection,
        backlog=BACKLOG,
        ws="none",
        **options,
    )


def _raise_file_limit() -> None:
    """Let the process have as many files and connections open as the system allows it to ask for."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(2 * MOST_CONNECTIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
