"""The application: the API, the pages, and what surrounds them."""

from __future__ import annotations

from fastapi import FastAPI

from cloister import _version
from cloister.hub.api import hub as hub_api, routers as api_routers
from cloister.hub.domain import actions
from cloister.hub.gateway import GuardedRouter, failures
from cloister.hub.gateway.hosts import KnownHosts, known_hosts
from cloister.hub.gateway.limits import BodyLimits
from cloister.hub.gateway.measuring import Measurements, Measuring
from cloister.hub.hub import Hub
from cloister.hub.web import routers as web_routers, shell


def create_app(hub: Hub) -> FastAPI:
    """Return the web application of a hub."""
    app = FastAPI(
        title="cloister hub",
        version=_version.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.hub, app.state.measurements = hub, Measurements()
    failures.install(app)
    for router in (_roots(), *web_routers()):
        app.include_router(router, include_in_schema=False)
    for router in api_routers():
        app.include_router(router, prefix="/api/v1")
    shell.install(app)
    app.add_middleware(BodyLimits, upload_limit=hub.settings.upload_limit)
    app.add_middleware(KnownHosts, hosts=known_hosts(hub.settings))
    app.add_middleware(Measuring, measurements=app.state.measurements)
    return app


def _roots() -> GuardedRouter:
    """Return what monitors expect at the root."""
    router = GuardedRouter()
    router.add_api_route("/health", hub_api.health, methods=["GET"], action=actions.HEALTH)
    router.add_api_route("/metrics", hub_api.metrics, methods=["GET"], action=actions.METRICS)
    return router
