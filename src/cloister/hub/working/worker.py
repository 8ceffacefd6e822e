"""A worker: one process that claims work, does it, and goes on until it is told to end.

A worker that is told to end (SIGTERM) gives its work back where the work reports progress, and else finishes it. One
that is killed loses its claim after the lease; another one does the work again for the same receipt.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import threading
import time
from typing import Any

from cloister.data.engines.duckdb import forbid_spilling
from cloister.errors import CloisterError, SourceNotFoundError
from cloister.hub import logs
from cloister.hub.hub import Hub, open_hub
from cloister.hub.jobs import queue
from cloister.hub.jobs.bell import Bell
from cloister.hub.jobs.queue import BrokenOff, Claim, Standing
from cloister.hub.services import running
from cloister.hub.services.upkeep import EVERY, do_upkeep
from cloister.hub.settings import Settings
from cloister.hub.store.folder_identity import is_own_folder
from cloister.hub.working.keeping import KeptClaim
from cloister.hub.working.tables import OpenTables

__all__ = ["Worker", "main", "worker_name"]

SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
AGAIN_SECONDS = 60.0
"""After so long a worker looks again whether the files of some work are there."""


class Worker:
    """Does the work of a hub, one piece after the other.

    Args:
        hub: the hub.
        name: what the claims are signed with.
        stopping: set to end the worker.
    """

    def __init__(self, hub: Hub, *, name: str = "", stopping: threading.Event | None = None) -> None:
        self._hub, self._name = hub, name or worker_name()
        self._stopping = stopping or threading.Event()
        self._bell = Bell(hub.settings.folder)
        self._tables = OpenTables()
        self._passed_over: dict[str, float] = {}
        self._next_upkeep = 0.0

    def run(self) -> None:
        """Work until told to end; problems of the database are waited out."""
        pause = SHORTEST_PAUSE
        while not self._stopping.is_set() and _has_parent():
            try:
                found = self.work_once()
            except CloisterError:
                found = False
            pause = SHORTEST_PAUSE if found else min(pause * 2, LONGEST_PAUSE)
            if not found:
                self._tables.forget_idle()
                self._do_upkeep()
                self._rest(pause)

    def work_once(self) -> bool:
        """Do one piece of work if there is any, and return whether there was."""
        held = self._claimed()
        if held is None:
            return False
        try:
            with KeptClaim(self._hub, held, stopping=self._stopping) as kept:
                running.perform(self._hub, held, kept.progress, open_table=self._tables)
        except BrokenOff as reason:
            self._break_off(held, reason.standing)
        except SourceNotFoundError:
            self._passed_over[held.job_id] = time.monotonic() + AGAIN_SECONDS
            logs.logger().error("a file of the work is missing", job=held.job_id)
        return True

    def _claimed(self) -> Claim | None:
        moment = time.monotonic()
        self._passed_over = {job: until for job, until in self._passed_over.items() if until > moment}
        lease, skipped = self._hub.settings.lease_seconds, tuple(self._passed_over)
        with self._hub.store.reading() as session:
            if not queue.is_work_waiting(session, lease_seconds=lease, passed_over=skipped):
                return None
            if not is_own_folder(session, self._hub.settings.folder):
                return None
        return running.take(self._hub, self._name, passed_over=skipped)

    def _break_off(self, held: Claim, standing: Standing | None) -> None:
        if standing is Standing.LOST:
            return
        with self._hub.store.writing() as session:
            queue.give_back(session, held)

    def _do_upkeep(self) -> None:
        """Do what the hub does by itself, if it is due; a problem of the database is waited out."""
        if time.monotonic() < self._next_upkeep:
            return
        self._next_upkeep = time.monotonic() + EVERY.total_seconds()
        with contextlib.suppress(CloisterError):
            do_upkeep(self._hub)

    def _rest(self, pause: float) -> None:
        """Wait until somebody rings, the worker is to end, or the pause is over."""
        until = time.monotonic() + pause
        while time.monotonic() < until and not self._bell.has_rung():
            if self._stopping.wait(SHORTEST_PAUSE):
                return


def main(settings: Settings, **options: Any) -> None:
    """Be a worker process; the rows that it unseals stay in memory, and what it dies of is logged without words."""
    forbid_spilling()
    logs.configure(settings.log_level)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())  # noqa: ARG005
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hub = open_hub(settings)
    try:
        Worker(hub, stopping=stopping, **options).run()
    except Exception as error:  # noqa: BLE001  # its words could quote what the worker was working on
        logs.logger().error("worker failed", **logs.facts_of(error))
        raise SystemExit(1) from None
    finally:
        hub.close()


def worker_name() -> str:
    """Return a name that tells workers apart."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _has_parent() -> bool:
    """Return whether the process that started this one still lives; a worker does not outlive it."""
    parent = multiprocessing.parent_process()
    return parent is None or parent.is_alive()
