"""The page to sign in, and the page that a one-time link opens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.domain.local_paths import local_path
from cloister.hub.gateway import CurrentHub, GuardedRouter
from cloister.hub.services.accounts import enrolling, oidc_provider, passwords
from cloister.hub.web import shell

router = GuardedRouter()


@shell.page(router, "/login", actions.SIGN_IN, twin="/oidc")
def login(request: Request, hub: CurrentHub, wanted: Annotated[str, Query(alias="next")] = "") -> Response:
    """Sign in, here or through another service."""
    services = oidc_provider.providers(hub.settings)
    return shell.render(request, "login.html", title="Sign in", services=services, next_path=local_path(wanted))


@shell.page(router, "/enrol/{token}", actions.ENROL, twin="/enrolments/{token}")
def enrol(request: Request, hub: CurrentHub, token: str) -> Response:
    """Set one's own password by a one-time link."""
    with hub.store.reading() as session:
        link, user = enrolling.find_link(session, token)
        name, expires = user.name, link.expires
    return shell.render(
        request,
        "enrol.html",
        title="Choose your password",
        name=name,
        expires=expires,
        token=token,
        shortest=passwords.SHORTEST,
    )
