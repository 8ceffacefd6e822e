"""The start page: what waits for the person, and where to go."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services import home
from cloister.hub.services.authorizing import lacks_owners_factor
from cloister.hub.web import shell

router = GuardedRouter()


@shell.page(router, "/", actions.READ_PUBLIC, twin="/home")
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
