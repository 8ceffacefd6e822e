"""Requests must be for the hub's own address: another site cannot rename itself to this machine and use its cookies."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from cloister.errors import HubError
from cloister.hub.settings import Settings

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def known_hosts(settings: Settings) -> frozenset[str]:
    """Return the values of ``Host`` that mean this hub: its address, and this machine's own names."""
    ports = {settings.port, urlsplit(settings.address).port}
    local = {f"{name}:{port}" if port else name for name in _LOOPBACK for port in ports}
    return frozenset({urlsplit(settings.address).netloc, *local})


class KnownHosts:
    """The part of the application that refuses requests for other hosts."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and _host(scope) not in self._hosts:
            problem = HubError("This address is not the hub's.", fix="use the address that the operator gave you.")
            await JSONResponse(problem.to_dict(), status_code=421)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _host(scope: Scope) -> str:
    found = [value for name, value in scope["headers"] if name == b"host"]
    return found[0].decode("latin-1").lower() if len(found) == 1 else ""
