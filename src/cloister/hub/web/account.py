"""The page of one's own account."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.domain.roles import Role
from cloister.hub.gateway import CurrentHub, CurrentSignIn, GuardedRouter
from cloister.hub.services.accounts import oidc_provider, own, passwords, tokens
from cloister.hub.web import shell

router = GuardedRouter()


@shell.page(router, "/account", actions.SEE_SELF, twin="/account")
def account(request: Request, hub: CurrentHub, signed_in: CurrentSignIn) -> Response:
    """See and change one's own account."""
    with hub.store.reading() as session:
        described = own.describe_own(session, signed_in)
    return shell.render(
        request,
        "account.html",
        title="Your account",
        account=described,
        scopes=tokens.known_scopes(),
        services=oidc_provider.providers(hub.settings),
        shortest=passwords.SHORTEST,
        most_days=tokens.MOST_DAYS,
        keeps_factor=hub.settings.owner_second_factor and Role.DATA_OWNER in signed_in.subject.roles,
    )
