"""Lanes: a bounded number of requests at work and a bounded line before them, so that no crowd takes the whole hub.

A lane never blocks a thread: whoever does not fit is told at once, and whoever waits does so in the event loop. One key
(an address, an account) gets only its share of a lane. Lanes are used from any thread and any event loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Lane", "LanePlace", "TokenBuckets"]

Refusal = Literal["lane", "share"]
"""What was full: the lane, or the share of the key."""


@dataclass(slots=True, eq=False)
class LanePlace:
    """A place at work or in the line."""

    key: str | None
    loop: asyncio.AbstractEventLoop
    turn: asyncio.Future[None]
    is_working: bool = False

    def call(self) -> None:
        """Say, from whatever thread, that the work can begin."""
        self.loop.call_soon_threadsafe(_resolve, self.turn)


@dataclass(slots=True, kw_only=True)
class Lane:
    """So many at work and so many in the line, in all and for each key.

    Attributes:
        at_once: how many are at work.
        waiting: how many are in the line.
        each_at_once: how many of one key are at work.
        each_waiting: how many of one key are in the line.
    """

    at_once: int
    waiting: int
    each_at_once: int
    each_waiting: int
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _working: Counter[str | None] = field(init=False, default_factory=Counter)
    _line: list[LanePlace] = field(init=False, default_factory=list)

    def refusal(self, key: str | None) -> Refusal | None:
        """Return what is full for a key, or None where there is a place; no key shares with nobody."""
        with self._lock:
            return self._refusal(key)

    def join(self, key: str | None) -> LanePlace | Refusal:
        """Take a place, at work or in the line, or return what is full."""
        loop = asyncio.get_running_loop()
        place = LanePlace(key, loop, loop.create_future())
        with self._lock:
            full = self._refusal(key)
            if full is not None:
                return full
            self._line.append(place)
            self._call_next()
        return place

    def leave(self, place: LanePlace) -> None:
        """Give a place up, at whatever point."""
        with self._lock:
            # Leaving twice does nothing: a seat is given up before the answer, and again at the end of the request.
            if place.is_working:
                self._working[place.key] -= 1
                self._working += Counter()  # forgets keys that have nobody at work
                place.is_working = False
            elif place in self._line:
                self._line.remove(place)
            self._call_next()

    def _refusal(self, key: str | None) -> Refusal | None:
        if self._has_room(key):
            return None
        if key is not None and sum(place.key == key for place in self._line) >= self.each_waiting:
            return "share"
        return "lane" if len(self._line) >= self.waiting else None

    def _has_room(self, key: str | None) -> bool:
        return self._working.total() < self.at_once and (key is None or self._working[key] < self.each_at_once)

    def _call_next(self) -> None:
        # Whoever waits longest goes first, except where their key has its share at work already.
        for place in list(self._line):
            if self._working.total() >= self.at_once:
                return
            if self._has_room(place.key):
                self._line.remove(place)
                self._working[place.key] += 1
                place.is_working = True
                place.call()


class TokenBuckets:
    """So many at first and so many a second after that, for each of the keys that were used last.

    Args:
        burst: how many at once, after a quiet time.
        rate: how many a second in the long run.
        keys: how many keys are remembered, the ones used last.
        clock: seconds that only grow.
    """

    def __init__(
        self, *, burst: float, rate: float, keys: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._burst, self._rate, self._keys, self._clock = burst, rate, keys, clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> bool:
        """Take one of a key's, and return whether there was one."""
        with self._lock:
            moment = self._clock()
            left, since = self._left.pop(key, (float(self._burst), moment))
            left = min(left + (moment - since) * self._rate, float(self._burst))
            is_there = left >= 1
            self._left[key] = (left - is_there, moment)
            # A key that is pushed out begins anew with all its tries; whoever has so many keys has them anyway.
            while len(self._left) > self._keys:
                self._left.popitem(last=False)
            return is_there


def _resolve(turn: asyncio.Future[None]) -> None:
    # Whoever waited may have gone in the meantime.
    if not turn.done():
        turn.set_result(None)
