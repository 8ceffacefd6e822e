"""The start page as JSON."""

from __future__ import annotations

from typing import Any

from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services import home

router = GuardedRouter(tags=["home"])


@router.guarded("GET", "/home", actions.SEE_HOME)
def see_home(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """Show what waits for you."""
    with hub.store.reading() as session:
        return home.start(session, access.person, is_demo=hub.settings.demo)


@router.guarded("POST", "/notices/read", actions.SEE_HOME, status_code=204)
def read_notices(hub: CurrentHub, access: CurrentAccess) -> Response:
    """Mark your notices as read."""
    with hub.store.writing() as session:
        home.read_notices(session, access.person)
    return Response(status_code=204)
