"""The start page as JSON."""

from __future__ import annotations

from typing import Any

from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentAccess, CurrentHub, CurrentSignIn, GuardedRouter
from cloister.hub.services import home
from cloister.hub.services.authorizing import lacks_owners_factor

router = GuardedRouter(tags=["home"])


@router.guarded("GET", "/home", actions.SEE_HOME)
def see_home(hub: CurrentHub, signed_in: CurrentSignIn) -> dict[str, Any]:
    """Show what waits for you."""
    lacks_factor = hub.settings.owner_second_factor and lacks_owners_factor(signed_in)
    with hub.store.reading() as session:
        return home.start(session, signed_in.subject, is_demo=hub.settings.demo, lacks_factor=lacks_factor)


@router.guarded("POST", "/notices/read", actions.SEE_HOME, status_code=204)
def read_notices(hub: CurrentHub, access: CurrentAccess) -> Response:
    """Mark your notices as read."""
    with hub.store.writing() as session:
        home.read_notices(session, access.person)
    return Response(status_code=204)
