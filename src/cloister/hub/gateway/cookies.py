"""The hub's cookies: never for another site, never over an open line where the hub has TLS, never for a subdomain."""

from __future__ import annotations

from typing import Literal

from fastapi import Request
from fastapi.responses import Response

from cloister.hub.hub import Hub
from cloister.hub.settings import Settings

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


def clear(response: Response, settings: Settings, *names: str) -> None:
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
