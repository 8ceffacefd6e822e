"""Starts worker processes, and starts them again when they die, less and less often if they keep dying."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

from cloister.hub.settings import Settings
from cloister.hub.working import worker

__all__ = ["Supervisor"]

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 60.0
"""A worker that lived so long is taken for sound: its next death is the first one again."""


@dataclass(slots=True)
class _Place:
    """One worker's place: who holds it, since when, and when it may be filled again."""

    process: BaseProcess | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    not_before: float = 0.0


class Supervisor:
    """So many workers as the settings say, until the block ends.

    Args:
        settings: of the hub; workers do not learn the secrets of sign-in providers.
        target: what a worker process runs.
        grace_seconds: how long a worker may take to end.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        target: Callable[[Settings], Any] = worker.main,
        grace_seconds: float = 10.0,
    ) -> None:
        self._settings = replace(settings, oidc=None)
        self._target, self._grace = target, grace_seconds
        self._context = multiprocessing.get_context("spawn")
        self._places = [_Place() for _ in range(settings.workers)]
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the workers."""
        for place in self._places:
            self._fill(place)
        self._thread.start()

    def stop(self) -> None:
        """End the workers: ask, wait, then insist."""
        self._ending.set()
        self._thread.join()
        alive = [place.process for place in self._places if place.process is not None]
        for process in alive:
            process.terminate()
        until = time.monotonic() + self._grace
        for process in alive:
            process.join(max(until - time.monotonic(), 0.0))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Return the processes that live now."""
        found = (place.process for place in self._places)
        return tuple(process.pid for process in found if process is not None and process.pid and process.is_alive())

    def _watch(self) -> None:
        while not self._ending.wait(0.05):
            for place in self._places:
                self._look_after(place)

    def _look_after(self, place: _Place) -> None:
        moment = time.monotonic()
        if place.process is not None and not place.process.is_alive():
            place.process.close()
            place.process = None
            lived = moment - place.started
            place.pause = FIRST_PAUSE if lived > STEADY_SECONDS else place.pause
            place.not_before = moment + place.pause
            place.pause = min(place.pause * 2, LONGEST_PAUSE)
        if place.process is None and moment >= place.not_before:
            self._fill(place)

    def _fill(self, place: _Place) -> None:
        place.process = self._context.Process(target=self._target, args=(self._settings,), name="cloister worker")
        place.process.start()
        place.started = time.monotonic()
