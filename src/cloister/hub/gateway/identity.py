"""Who a request comes from, that a browser sent it on purpose, and that it is meant for this hub.

The hub's cookies are never for another site, never sent over an open line where the hub has TLS, never for a subdomain.
Requests must be for the hub's own address: another site cannot rename itself to this machine and use its cookies.
"""

from __future__ import annotations

import hmac
from typing import Literal
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from sqlalchemy.orm import Session
from starlette.types import ASGIApp, Receive, Scope, Send

from cloister.errors import ForbiddenError, HubError, NotSignedInError
from cloister.hub.hub import Hub
from cloister.hub.settings import Settings
from cloister.hub.use_cases.sessions import SignedIn, digest_secret, find_login, find_token

__all__ = ["COOKIE", "CSRF_COOKIE", "CSRF_HEADER", "check_origin", "check_proof", "identify"]


COOKIE = "cloister_session"
CSRF_COOKIE = "cloister_csrf"
BROWSER_COOKIE = "cloister_browser"
"""Says that somebody has signed in with this browser before; gives no access."""


def cookie_name(name: str, settings: Settings) -> str:
    """Return the name of a secret cookie; with TLS browsers take it only from this very host."""
    return f"__Host-{name}" if settings.is_https else name


def read_cookie(request: Request, name: str) -> str | None:
    """Return a secret cookie of a request."""
    hub: Hub = request.app.state.hub
    return request.cookies.get(cookie_name(name, hub.settings))


def session_cookie(request: Request) -> str | None:
    """Return the secret of the sign-in."""
    return read_cookie(request, COOKIE)


def set_cookie(response: Response, settings: Settings, name: str, value: str, *, seconds: int) -> None:
    """Add a secret cookie that scripts cannot read."""
    _set(response, settings, cookie_name(name, settings), value, seconds=seconds, httponly=True)


def set_session(response: Response, settings: Settings, *, cookie: str, csrf: str) -> None:
    """Add the cookies of a sign-in: the secret, and the proof that the pages' scripts send along."""
    seconds = settings.session_hours * 3600
    set_cookie(response, settings, COOKIE, cookie, seconds=seconds)
    _set(response, settings, CSRF_COOKIE, csrf, seconds=seconds, httponly=False, samesite="strict")


def clear_cookies(response: Response, settings: Settings, *names: str) -> None:
    """Take cookies away."""
    for name in names:
        full = name if name == CSRF_COOKIE else cookie_name(name, settings)
        response.delete_cookie(full, path="/", secure=settings.is_https, httponly=name != CSRF_COOKIE, samesite="lax")


def _set(
    response: Response,
    settings: Settings,
    name: str,
    value: str,
    *,
    seconds: int,
    httponly: bool,
    samesite: Literal["lax", "strict"] = "lax",
) -> None:
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=settings.is_https, httponly=httponly, samesite=samesite
    )


CSRF_HEADER = "x-csrf-token"
_OWN_SITE = frozenset({"same-origin", "none"})
_RETRY = "load the page again, then repeat."


def identify(session: Session, request: Request) -> SignedIn | None:
    """Return who asks: by a token if there is one, else by the cookie, else nobody. A wrong token is refused."""
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, secret = header.partition(" ")
        found = find_token(session, secret.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise NotSignedInError("This token is not valid.", fix="make a new one on your account page.")
        return found
    hub: Hub = request.app.state.hub
    cookie = session_cookie(request)
    return None if cookie is None else find_login(session, cookie, idle_minutes=hub.settings.idle_minutes)


def check_origin(request: Request) -> None:
    """Raise if a browser sent a change from a page of another site, whether or not anybody is signed in."""
    site = request.headers.get("sec-fetch-site")
    if (site is not None and site not in _OWN_SITE) or not _is_own_origin(request):
        raise ForbiddenError("This request came from another site.", fix=_RETRY)


def check_proof(request: Request, signed_in: SignedIn) -> None:
    """Raise unless a change carries the proof that only the hub's own pages can read, or a token."""
    if signed_in.csrf_digest is None:
        return
    proof = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(digest_secret(proof), signed_in.csrf_digest):
        raise ForbiddenError("This request has no proof that your browser sent it on purpose.", fix=_RETRY)


def _is_own_origin(request: Request) -> bool:
    origin = request.headers.get("origin")
    if origin is None:
        return True
    hub: Hub = request.app.state.hub
    if hub.settings.public_url:
        own = urlsplit(hub.settings.address)
        return origin == f"{own.scheme}://{own.netloc}"
    return urlsplit(origin).netloc == request.headers.get("host", "")


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
    # Two of these headers could mean one host to a proxy and another one here.
    return found[0].decode("latin-1").lower() if len(found) == 1 else ""
