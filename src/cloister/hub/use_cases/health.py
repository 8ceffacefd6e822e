"""Whether a hub can do its work: looked at now and then by a thread of its own, and answered from memory.

A monitor asks often and a crowd more often, so asking costs nothing: no thread of the pool, no question to the
database. What was seen too long ago counts as a problem, because then the look itself does not come back.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, text
from sqlalchemy.exc import SQLAlchemyError

from cloister import _version
from cloister.crypto.encryption import random_bytes
from cloister.errors import CloisterError
from cloister.hub.hub import Hub

__all__ = ["Health", "HealthMonitor", "check_health"]

EVERY = 5.0
"""Seconds between two looks."""

STALE = 60.0
"""Seconds after which the last look says nothing any more."""

_PROBE = b"cloister" * 512


@dataclass(frozen=True, slots=True)
class Health:
    """What was seen: nothing wrong, or sentences for the operator, without anything that only some may know."""

    problems: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Return whether the hub can do its work."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.health/1",
            "status": "ok" if self.is_fine else "degraded",
            "version": _version.__version__,
            "problems": list(self.problems),
        }


def check_health(hub: Hub) -> Health:
    """Look whether the database answers and takes changes, and whether there is room for files and they are taken."""
    return Health(tuple(_problems(hub)))


class HealthMonitor:
    """Looks from time to time while it runs, and else when it is asked.

    Args:
        hub: the hub.
        look: what is done to look.
        clock: seconds that only grow.
    """

    def __init__(
        self, hub: Hub, *, look: Callable[[Hub], Health] = check_health, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._hub, self._look, self._clock = hub, look, clock
        self._seen: tuple[Health, float] | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look from time to time."""
        self.refresh()
        self._over.clear()
        self._thread = threading.Thread(target=self._watch, name="health", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End that; a look under way is not waited for."""
        self._over.set()
        self._thread = None

    def refresh(self) -> Health:
        """Look now."""
        seen = self._look(self._hub)
        self._seen = (seen, self._clock())
        return seen

    def latest(self) -> Health | None:
        """Return what was seen last, at once, or None where nobody looks from time to time."""
        if self._thread is None or self._seen is None:
            return None
        health, moment = self._seen
        if self._clock() - moment > STALE:
            return Health(("The hub has not been able to look at its database and folder for a while.",))
        return health

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            self.refresh()


def _problems(hub: Hub) -> Iterator[str]:
    yield from _database_problems(hub)
    least = hub.settings.least_free_bytes
    for what, folder in _folders(hub):
        try:
            if shutil.disk_usage(folder).free < least:
                yield f"The disk of {what} is nearly full."
            _write_probe(folder)
        except OSError:
            yield f"Nothing can be written to {what}."


def _database_problems(hub: Hub) -> Iterator[str]:
    is_sqlite = hub.store.dialect == "sqlite"
    try:
        with hub.store.reading() as session:
            found = session.execute(text("SELECT 1" if is_sqlite else "SHOW transaction_read_only")).scalar()
    except (CloisterError, SQLAlchemyError):
        yield "The database does not answer."
        return
    file = make_url(hub.store.url).database if is_sqlite else None
    if found == "on" or (file and not os.access(file, os.W_OK)):
        yield "The database takes no changes."


def _folders(hub: Hub) -> Iterator[tuple[str, Path]]:
    yield "the hub's folder", hub.settings.folder
    file = make_url(hub.store.url).database if hub.store.dialect == "sqlite" else None
    if file and Path(file).parent != hub.settings.folder:
        yield "the database", Path(file).parent


def _write_probe(folder: Path) -> None:
    """Write a small file to the disk and remove it: a full or read-only disk says so only then."""
    path = folder / f".health-{random_bytes(8).hex()}"
    try:
        with path.open("xb") as file:
            file.write(_PROBE)
            file.flush()
            os.fsync(file.fileno())
    finally:
        path.unlink(missing_ok=True)
