"""Signing in through another service (OpenID Connect)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import RedirectResponse

from cloister.errors import NotSignedInError
from cloister.hub.api.session import give_cookies
from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter, cookies
from cloister.hub.services.accounts import oidc_login, oidc_provider

router = GuardedRouter(tags=["session"])

_COOKIE = "cloister_oidc"
_SEE_OTHER = 303


@router.guarded("GET", "/oidc", actions.SIGN_IN)
def list_services(hub: CurrentHub) -> dict[str, Any]:
    """List the services by which one can sign in here."""
    found = oidc_provider.providers(hub.settings)
    return {
        "schema": "cloister.sign-in-services/1",
        "items": [{"name": item.name, "title": item.title} for item in found],
        "next": None,
    }


@router.guarded("GET", "/oidc/{provider}/start", actions.SIGN_IN, response_class=RedirectResponse, status_code=303)
def start(
    hub: CurrentHub,
    access: CurrentAccess,
    provider: str,
    next_path: Annotated[str, Query(alias="next")] = "",
    ticket: str = "",
) -> RedirectResponse:
    """Send the browser to a sign-in service; ``next`` is a page of the hub, ``ticket`` links one's own account."""
    begun = oidc_login.begin(hub, provider, next_path=next_path, link_ticket=ticket, subject=access.subject)
    response = RedirectResponse(begun.address, status_code=_SEE_OTHER)
    cookies.set_cookie(response, hub.settings, _COOKIE, begun.cookie, seconds=oidc_login.MINUTES * 60)
    return response


@router.guarded("GET", "/oidc/{provider}/callback", actions.SIGN_IN, response_class=RedirectResponse, status_code=303)
def callback(
    *,
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    provider: str,
    state: str = "",
    code: str = "",
    iss: str | None = None,
    error: str | None = None,
) -> RedirectResponse:
    """Take what the sign-in service sent back, and go on to the page that was wanted."""
    if error is not None:
        raise NotSignedInError("The sign-in service did not let you in.", fix="begin again on the sign-in page.")
    finished = oidc_login.finish(
        hub,
        provider,
        cookie=cookies.read_cookie(request, _COOKIE),
        state=state,
        code=code,
        issuer=iss,
        subject=access.subject,
        browser=cookies.read_cookie(request, cookies.BROWSER_COOKIE),
        replaced=cookies.session_cookie(request),
    )
    response = RedirectResponse(finished.next_path, status_code=_SEE_OTHER)
    cookies.clear(response, hub.settings, _COOKIE)
    if finished.opened is not None:
        give_cookies(response, hub, finished.opened)
    return response
