"""Signing in and out, and who is signed in."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response
from pydantic import Field

from cloister.hub.domain import actions
from cloister.hub.domain.request_body import RequestBody
from cloister.hub.domain.roles import Subject
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter, cookies
from cloister.hub.services.accounts import lockout, signing_in

router = GuardedRouter(tags=["session"])


class SignIn(RequestBody):
    """What somebody types to sign in."""

    name: str = Field(max_length=200, description="The name of the account.")
    password: str = Field(max_length=1024, description="Its password.")
    code: str = Field("", max_length=64, description="A code from the authenticator, or a recovery code.")


@router.guarded("POST", "/session", actions.SIGN_IN)
def sign_in(request: Request, response: Response, hub: CurrentHub, given: SignIn) -> dict[str, Any]:
    """Sign in; the answer sets the cookies."""
    opened = signing_in.sign_in(
        hub,
        name=given.name,
        password=given.password,
        code=given.code,
        browser=cookies.read_cookie(request, cookies.BROWSER_COOKIE),
        replaced=cookies.session_cookie(request),
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
    signing_in.sign_out(hub, access.person, cookies.session_cookie(request) or "")
    cookies.clear(response, hub.settings, cookies.COOKIE, cookies.CSRF_COOKIE)
    return {"schema": "cloister.session/1", "account": None}


def give_cookies(response: Response, hub: CurrentHub, opened: signing_in.Opened) -> None:
    """Set the cookies of a new sign-in."""
    cookies.set_session(response, hub.settings, cookie=opened.cookie, csrf=opened.csrf)
    seconds = lockout.BROWSER_DAYS * 24 * 3600
    cookies.set_cookie(response, hub.settings, cookies.BROWSER_COOKIE, opened.browser, seconds=seconds)


def describe(subject: Subject) -> dict[str, Any]:
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
