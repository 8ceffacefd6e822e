"""The application: the API, the pages, and what surrounds them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute

from cloister import _version
from cloister.hub.api import hub as hub_api, routers as api_routers
from cloister.hub.domain import actions
from cloister.hub.gateway import GuardedRouter, failures
from cloister.hub.gateway.admission import RequestAdmission
from cloister.hub.gateway.bodies import BodyLimits
from cloister.hub.gateway.identity import KnownHosts, known_hosts
from cloister.hub.gateway.metrics import Measurements, Measuring
from cloister.hub.hub import Hub
from cloister.hub.use_cases.health import HealthMonitor
from cloister.hub.web import routers as web_routers, shell


def create_app(hub: Hub) -> FastAPI:
    """Return the web application of a hub."""
    app = FastAPI(
        title="cloister hub",
        version=_version.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.hub, app.state.measurements, app.state.health = hub, Measurements(), HealthMonitor(hub)
    failures.install(app)
    app.router.routes.extend(_routes())
    shell.install(app)
    app.add_middleware(RequestAdmission, hub=hub)
    app.add_middleware(BodyLimits, upload_limit=hub.settings.upload_limit)
    app.add_middleware(KnownHosts, hosts=known_hosts(hub.settings))
    app.add_middleware(Measuring, measurements=app.state.measurements)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    monitor: HealthMonitor = app.state.health
    await run_in_threadpool(monitor.start)
    _build_routes(app)
    yield
    monitor.stop()


def _build_routes(app: FastAPI) -> None:
    """Look for a path that no route has: FastAPI builds routes when they are first tried, which holds up everybody."""
    for route in app.routes:
        route.matches({"type": "http", "method": "GET", "path": "/-", "root_path": "", "headers": []})


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """Return the routes, which every hub of a process shares: to build them takes longer than most requests."""
    whole = APIRouter()
    for router in (_roots(), *web_routers()):
        whole.include_router(router, include_in_schema=False)
    for router in (*api_routers(), shell.twin_router()):
        whole.include_router(router, prefix="/api/v1")
    return tuple(whole.routes)


def _roots() -> GuardedRouter:
    """Return what monitors expect at the root."""
    router = GuardedRouter()
    router.add_api_route("/health", hub_api.health, methods=["GET"], action=actions.HEALTH)
    router.add_api_route("/metrics", hub_api.metrics, methods=["GET"], action=actions.METRICS)
    return router
