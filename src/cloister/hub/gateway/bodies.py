"""Bodies of requests: how large and how slow they may be, and how code that runs in a thread reads them.

Requests that are too large or too slow are ended before they cost anything. Every body has a limit: what an upload
route states for itself, and a small one everywhere else. A body must also arrive at a pace; a browser on a bad line
keeps it, a program that only wants to hold a connection does not.

Uploads are read as streams, by code in a thread. A thread waits for as long as a body arrives, and the threads answer
all other requests too. So a few uploads arrive at a time, and slow ones cannot keep everybody else waiting.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from anyio import from_thread
from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloister.errors import HubError, TooLargeError, TooManyRequestsError

__all__ = ["AT_ONCE", "BodyStream", "arriving"]


ORDINARY = 1024**2
"""The largest body of a route that takes no upload, in bytes."""

PATIENCE = 30
"""Seconds after which a body must have kept the pace."""

PACE = 1024
"""Bytes a second, on average, that a body must arrive with."""

UPLOADS: list[tuple[re.Pattern[str], Callable[[int], int]]] = []
"""Paths that take uploads, each with its limit given the hub's upload limit."""


def allow_upload(path: str, limit: Callable[[int], int] = lambda limit: limit) -> None:
    """Let a path such as "/api/v1/datasets/{}/versions" take bodies up to a limit of its own."""
    pattern = "[^/]+".join(re.escape(part) for part in path.split("{}"))
    UPLOADS.append((re.compile(pattern), limit))


def takes_upload(path: str) -> bool:
    """Return whether bodies of a path may be too large to be held in memory."""
    return any(pattern.fullmatch(path) for pattern, _ in UPLOADS)


class BodyLimits:
    """The part of the application that counts bytes and seconds of every body."""

    def __init__(self, app: ASGIApp, *, upload_limit: int) -> None:
        self._app, self._upload_limit = app, upload_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit, stated = self._limit(scope["path"]), _stated_size(scope)
        if stated > limit:
            await _refuse_body(TooLargeError("This is larger than the hub takes here.", fix="send less."), 413)(
                scope, receive, send
            )
            return
        body = _Counted(receive, limit=limit)
        answer = _Answer(send, body)
        try:
            await self._app(scope, body.receive, answer.send)
        except Exception:
            if body.refusal is None or answer.has_begun:
                raise
        if body.refusal is not None and not answer.has_begun:
            await _refuse_body(body.refusal.problem, body.refusal.status)(scope, receive, send)

    def _limit(self, path: str) -> int:
        for pattern, limit in UPLOADS:
            if pattern.fullmatch(path):
                return limit(self._upload_limit)
        return ORDINARY


class _BodyRefusedError(Exception):
    def __init__(self, problem: HubError, status: int) -> None:
        super().__init__(problem.problem)
        self.problem, self.status = problem, status


class _Counted:
    """A body with its bytes and seconds counted."""

    def __init__(self, receive: Receive, *, limit: int) -> None:
        self._receive, self._limit = receive, limit
        self._size, self._begun, self._is_over = 0, time.monotonic(), False
        self.refusal: _BodyRefusedError | None = None

    async def receive(self) -> Message:
        try:
            return await self._next()
        except _BodyRefusedError as refusal:
            self.refusal = refusal
            raise

    async def _next(self) -> Message:
        if self._is_over:
            return await self._receive()
        # Time is earned by bytes: whoever keeps the pace is never late, however large the body is.
        allowed = PATIENCE + self._size / PACE - (time.monotonic() - self._begun)
        try:
            message = await asyncio.wait_for(self._receive(), timeout=max(allowed, 0.001))
        except TimeoutError:
            raise _BodyRefusedError(HubError("This arrives too slowly.", fix="try a better line."), 408) from None
        self._size += len(message.get("body", b""))
        self._is_over = message["type"] != "http.request" or not message.get("more_body", False)
        # The stated size may be wrong or missing, so that what really comes is counted.
        if self._size > self._limit:
            raise _BodyRefusedError(TooLargeError("This is larger than the hub takes here.", fix="send less."), 413)
        return message


class _Answer:
    """An answer that gives way to a refusal of the body: whatever else made of that is not told."""

    def __init__(self, send: Send, body: _Counted) -> None:
        self._send, self._body = send, body
        self.has_begun = False

    async def send(self, message: Message) -> None:
        if self._body.refusal is None or self.has_begun:
            self.has_begun = True
            await self._send(message)


def _stated_size(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _refuse_body(problem: HubError, status: int) -> JSONResponse:
    return JSONResponse(problem.to_dict(), status_code=status, headers={"Connection": "close"})


AT_ONCE = 8
"""How many uploads arrive at a time; a fifth of the threads."""

_slots = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def arriving(request: Request) -> Iterator[BodyStream]:
    """Give the body of a request as a stream, unless too many others arrive already."""
    # Nobody waits for a slot, as waiting would hold a thread.
    if not _slots.acquire(blocking=False):
        raise TooManyRequestsError(
            "Many uploads arrive at this moment.", fix="try again in some minutes.", wait_seconds=60
        )
    try:
        yield BodyStream(request)
    finally:
        _slots.release()


class BodyStream:
    """Reads a body piece by piece, as it arrives."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._waiting, self._is_over = b"", False

    def read(self, size: int, /) -> bytes:
        """Return at most that many more bytes, none at the end; raise if the sender breaks off."""
        while not self._waiting and not self._is_over:
            message = from_thread.run(self._next)
            if message["type"] == "http.disconnect":
                raise HubError("The upload broke off.", fix="send it again.")
            self._waiting = message.get("body", b"")
            self._is_over = not message.get("more_body", False)
        piece, self._waiting = self._waiting[:size], self._waiting[size:]
        return piece

    async def _next(self) -> Message:
        return await self._request.receive()
