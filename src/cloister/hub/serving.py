"""Running a hub: the web server in this process, workers in their own."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Any

import uvicorn

from cloister.data.engines.duckdb import forbid_spilling
from cloister.errors import HubUnavailableError, ParameterError
from cloister.hub import logs
from cloister.hub.app import create_app
from cloister.hub.hub import Hub, open_hub
from cloister.hub.settings import Settings
from cloister.hub.working.supervisor import Supervisor

KEEP_ALIVE = 20
"""Seconds for which an idle connection is kept."""

GRACE = 10
"""Seconds that requests under way have to end when the hub is told to."""

MOST_CONNECTIONS = 1_000
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
    hub = open_hub(settings)
    try:
        listening = bound_socket(settings)
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


def bound_socket(settings: Settings) -> socket.socket:
    """Return the socket on which the hub will answer."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
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
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=LARGEST_HEADERS,
        http="h11",
        ws="none",
        **options,
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
