"""Fixed time slots: what a block does with its time is visible neither to later blocks nor to anybody outside.

Blocks run one after the other, never two at a time, since two could measure each other's load. Each starts at a fixed
distance from the first, however long the one before took: else a block could tell a later one, who reads the clock,
that it was there. The run ends with the last slot. So a run of m blocks takes m slots, whatever is in the data.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

__all__ = ["MARGIN_SECONDS", "Slots", "alone_on_this_machine", "slot_seconds"]

MARGIN_SECONDS = Fraction(1, 4)
"""What starting and ending a process may take besides its own time."""


def slot_seconds(wall_seconds: Fraction) -> Fraction:
    """Return how long a slot is for blocks with a time limit."""
    return wall_seconds + MARGIN_SECONDS


class Slots:
    """The clock that blocks are run by."""

    def __init__(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds, self._clock, self._sleep = seconds, clock, sleep

    def each(self, count: int) -> Iterator[int]:
        """Yield the number of each block when its slot begins, and end when the last slot ends.

        A slot that was overrun, on a machine that is too busy, costs whole slots.
        """
        begin, place = self._clock(), 0
        for number in range(count):
            self._wait_until(begin + place * self._seconds)
            yield number
            place = max(place + 1, math.ceil((self._clock() - begin) / self._seconds))
        self._wait_until(begin + place * self._seconds)

    def _wait_until(self, moment: float) -> None:
        left = moment - self._clock()
        if left > 0:
            self._sleep(left)


@contextlib.contextmanager
def alone_on_this_machine() -> Iterator[None]:
    """Wait until no other foreign algorithm of this account runs here, and keep others waiting meanwhile."""
    path = Path(tempfile.gettempdir()) / f"cloister-sandbox-{os.getuid()}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
