"""The pages of a person: the start page, signing in, what a one-time link opens, and one's own account."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import RedirectResponse, Response

from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccountRole
from cloister.hub.domain.untrusted_input import local_path
from cloister.hub.gateway import CurrentAccess, CurrentHub, CurrentSignIn, GuardedRouter
from cloister.hub.use_cases import home
from cloister.hub.use_cases.accounts import enrolment, oidc_provider, own_account, passwords
from cloister.hub.use_cases.authorization import lacks_owners_factor
from cloister.hub.web import shell

home_router = GuardedRouter()


@shell.page(home_router, "/", actions.READ_PUBLIC, twin="/home")
def start(request: Request, hub: CurrentHub, access: CurrentAccess) -> Response:
    """Show the start page, or the way to sign in."""
    if access.subject is None:
        return RedirectResponse("/login", status_code=303)
    with hub.store.reading() as session:
        found = home.start(
            session,
            access.person,
            is_demo=hub.settings.demo,
            lacks_factor=hub.settings.owner_second_factor and lacks_owners_factor(request.state.signed_in),
        )
    return shell.render(request, "home.html", title=f"Welcome, {access.person.name}", home=found)


login_router = GuardedRouter()


@shell.page(login_router, "/login", actions.SIGN_IN, twin="/oidc")
def login(request: Request, hub: CurrentHub, wanted: Annotated[str, Query(alias="next")] = "") -> Response:
    """Sign in, here or through another service."""
    services = oidc_provider.providers(hub.settings)
    return shell.render(request, "login.html", title="Sign in", services=services, next_path=local_path(wanted))


@shell.page(login_router, "/enrol/{token}", actions.ENROL, twin="/enrolments/{token}")
def enrol(request: Request, hub: CurrentHub, token: str) -> Response:
    """Set one's own password by a one-time link."""
    with hub.store.reading() as session:
        link, user = enrolment.find_link(session, token)
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


router = GuardedRouter()


@shell.page(router, "/account", actions.SEE_SELF, twin="/account")
def account(request: Request, hub: CurrentHub, signed_in: CurrentSignIn) -> Response:
    """See and change one's own account."""
    with hub.store.reading() as session:
        described = own_account.describe_own(session, signed_in)
    return shell.render(
        request,
        "account.html",
        title="Your account",
        account=described,
        scopes=own_account.known_scopes(),
        services=oidc_provider.providers(hub.settings),
        shortest=passwords.SHORTEST,
        most_days=own_account.MOST_DAYS,
        keeps_factor=hub.settings.owner_second_factor and AccountRole.DATA_OWNER in signed_in.subject.roles,
    )
