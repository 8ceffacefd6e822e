"""Health, measurements and the description of the API."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from starlette.concurrency import run_in_threadpool

from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentHub, GuardedRouter
from cloister.hub.hub import Hub
from cloister.hub.queue import FailureCount
from cloister.hub.use_cases.health import HealthMonitor

router = GuardedRouter(tags=["hub"])


@router.guarded("GET", "/openapi.json", actions.READ_PUBLIC, include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    """Return the description of the API."""
    described: dict[str, Any] = request.app.openapi()
    return described


@router.guarded("GET", "/health", actions.HEALTH)
async def health(request: Request) -> JSONResponse:
    """Say whether the hub runs, reaches its database, and can write: 503 with the problems where it cannot."""
    monitor: HealthMonitor = request.app.state.health
    found = monitor.latest()
    if found is None:
        found = await run_in_threadpool(monitor.refresh)
    return JSONResponse(found.to_dict(), status_code=200 if found.is_fine else 503)


@router.guarded("GET", "/metrics", actions.METRICS, response_class=PlainTextResponse)
def metrics(request: Request, hub: CurrentHub) -> Response:
    """Give the hub's own measurements in the text format of Prometheus."""
    measured = generate_latest(request.app.state.measurements.registry)
    return Response(measured + _failures(hub), media_type=CONTENT_TYPE_LATEST)


def _failures(hub: Hub) -> bytes:
    """Return how often paid work failed: workers are processes of their own, and count in the hub's folder."""
    registry = CollectorRegistry()
    counter = Counter("cloister_hub_failures", "Paid work that failed and ended about nobody.", registry=registry)
    counter.inc(FailureCount(hub.settings.folder).value)
    return generate_latest(registry)
