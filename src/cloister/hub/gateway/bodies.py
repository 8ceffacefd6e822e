"""The body of a request as a stream for code that runs in a thread.

A thread waits for as long as a body arrives, and the threads answer all other requests too. So a few uploads arrive at
a time, and slow ones cannot keep everybody else waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from anyio import from_thread
from fastapi import Request
from starlette.types import Message

from cloister.errors import HubError, TooManyRequestsError

__all__ = ["AT_ONCE", "BodyStream", "arriving"]

AT_ONCE = 8
"""How many uploads arrive at a time; a fifth of the threads."""

_slots = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def arriving(request: Request) -> Iterator[BodyStream]:
    """Give the body of a request as a stream, unless too many others arrive already."""
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
