"""Measurements for Prometheus. Labels are names of routes, methods and kinds of answers: nothing that data decides."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Measurements:
    """What one hub process has measured of itself."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("cloister_hub_requests", "Requests answered.", labels, registry=self.registry)
        self.seconds = Histogram(
            "cloister_hub_request_seconds",
            "Seconds until the answer began.",
            ("method", "route"),
            registry=self.registry,
        )


class Measuring:
    """The part of the application that counts and times requests."""

    def __init__(self, app: ASGIApp, *, measurements: Measurements) -> None:
        self._app, self._measurements = app, measurements

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and measure its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()

        async def measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(scope, message["status"], time.perf_counter() - begun)
            await send(message)

        await self._app(scope, receive, measured)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        # Clients may send any word as a method: unknown ones share a label, or labels would grow without end.
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._measurements.requests.labels(method, route, f"{status // 100}xx").inc()
        self._measurements.seconds.labels(method, route).observe(seconds)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
