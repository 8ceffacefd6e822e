"""Signing in and out, here or through another service (OpenID Connect), and who is signed in."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Field

from cloister.errors import NotSignedInError
from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter, identity
from cloister.hub.use_cases.accounts import oidc_login, oidc_provider, sign_in as accounts_sign_in

router = GuardedRouter(tags=["session"])


class SignIn(RequestBody):
    """What somebody types to sign in."""

    name: str = Field(max_length=200, description="The name of the account.")
    password: str = Field(max_length=1024, description="Its password.")
    code: str = Field("", max_length=64, description="A code from the authenticator, or a recovery code.")


@router.guarded("POST", "/session", actions.SIGN_IN)
def sign_in(request: Request, response: Response, hub: CurrentHub, given: SignIn) -> dict[str, Any]:
    """Sign in; the answer sets the cookies."""
    opened = accounts_sign_in.sign_in(
        hub,
        name=given.name,
        password=given.password,
        code=given.code,
        browser=identity.read_cookie(request, identity.BROWSER_COOKIE),
        replaced=identity.session_cookie(request),
    )
    give_cookies(response, hub, opened)
    return describe(opened.subject)


@router.guarded("GET", "/session", actions.SEE_SELF)
def who_am_i(access: CurrentAccess) -> dict[str, Any]:
    """Say who is signed in, or whose token it is."""
    return describe(access.person)


@router.guarded("DELETE", "/session", actions.SIGN_OUT)
def sign_out(request: Request, response: Response, hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Sign out in this browser."""
    accounts_sign_in.sign_out(hub, access.person, identity.session_cookie(request) or "")
    identity.clear_cookies(response, hub.settings, identity.COOKIE, identity.CSRF_COOKIE)
    return {"schema": "cloister.session/1", "account": None}


def give_cookies(response: Response, hub: CurrentHub, opened: accounts_sign_in.Opened) -> None:
    """Set the cookies of a new sign-in."""
    identity.set_session(response, hub.settings, cookie=opened.cookie, csrf=opened.csrf)
    seconds = accounts_sign_in.BROWSER_DAYS * 24 * 3600
    identity.set_cookie(response, hub.settings, identity.BROWSER_COOKIE, opened.browser, seconds=seconds)


def describe(subject: AccessSubject) -> dict[str, Any]:
    """Return who somebody is, for themselves."""
    return {
        "schema": "cloister.session/1",
        "account": {
            "id": subject.user_id,
            "name": subject.name,
            "organisation_id": subject.organisation_id,
            "roles": sorted(subject.roles),
            "attributes": dict(subject.attributes),
            "scopes": None if subject.scopes is None else sorted(subject.scopes),
        },
    }


oidc_router = GuardedRouter(tags=["session"])

_COOKIE = "cloister_oidc"
_SEE_OTHER = 303


@oidc_router.guarded("GET", "/oidc", actions.SIGN_IN)
def list_services(hub: CurrentHub) -> dict[str, Any]:
    """List the services by which one can sign in here."""
    found = oidc_provider.providers(hub.settings)
    return {
        "schema": "cloister.sign-in-services/1",
        "items": [{"name": item.name, "title": item.title} for item in found],
        "next": None,
    }


@oidc_router.guarded("GET", "/oidc/{provider}/start", actions.SIGN_IN, response_class=RedirectResponse, status_code=303)
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
    identity.set_cookie(response, hub.settings, _COOKIE, begun.cookie, seconds=oidc_login.MINUTES * 60)
    return response


@oidc_router.guarded(
    "GET", "/oidc/{provider}/callback", actions.SIGN_IN, response_class=RedirectResponse, status_code=303
)
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
        cookie=identity.read_cookie(request, _COOKIE),
        state=state,
        code=code,
        issuer=iss,
        subject=access.subject,
        browser=identity.read_cookie(request, identity.BROWSER_COOKIE),
        replaced=identity.session_cookie(request),
    )
    response = RedirectResponse(finished.next_path, status_code=_SEE_OTHER)
    identity.clear_cookies(response, hub.settings, _COOKIE)
    if finished.opened is not None:
        give_cookies(response, hub, finished.opened)
    return response
