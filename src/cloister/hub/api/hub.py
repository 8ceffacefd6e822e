"""Health, measurements and the description of the API."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from cloister import _version
from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentHub, GuardedRouter
from cloister.hub.services.health import check_health

router = GuardedRouter(tags=["hub"])


@router.guarded("GET", "/openapi.json", actions.READ_PUBLIC, include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    """Return the description of the API."""
    described: dict[str, Any] = request.app.openapi()
    return described


@router.guarded("GET", "/health", actions.HEALTH)
def health(hub: CurrentHub) -> dict[str, Any]:
    """Say that the hub runs, reaches its database, and has its key."""
    check_health(hub)
    return {"schema": "cloister.health/1", "status": "ok", "version": _version.__version__}


@router.guarded("GET", "/metrics", actions.METRICS, response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """Give the hub's own measurements in the text format of Prometheus."""
    return Response(generate_latest(request.app.state.measurements.registry), media_type=CONTENT_TYPE_LATEST)
