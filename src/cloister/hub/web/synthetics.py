"""The page of a synthetic table that was released: its card, its files, and more rows."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.services.running import synthetics
from cloister.hub.web import shell

router = GuardedRouter()


@shell.page(router, "/synthetics/{synthetic_id}", actions.READ_SYNTHETIC, twin="/synthetics/{synthetic_id}")
def synthetic(
    request: Request,
    hub: CurrentHub,
    access: CurrentAccess,
    synthetic_id: str,  # noqa: ARG001  # the guard reads it
    purpose: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """See what a synthetic table is, download it, and draw more rows."""
    card = synthetics.see_card(hub, access, purpose=purpose)
    return shell.render(request, "synthetic.html", title="A synthetic table", card=card, purpose=purpose)
