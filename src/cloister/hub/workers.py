"""Worker processes, which do the work in the queue, and the supervisor that keeps them running.

A worker is one process that claims work, does it, and goes on until it is told to end. While its work runs, a thread
renews the claim, and the work hears when it is to stop. A worker that is told to end (SIGTERM) gives its work back
where the work reports progress, and else finishes it. One that is killed loses its claim after the lease; another one
does the work again for the same receipt.

Between runs a worker keeps tables open, because unsealing them takes time. When it has nothing to do, it does what the
hub does by itself now and then: note what expired, point out unusual days, remove what nobody finished.

The supervisor starts worker processes, and starts them again when they die, less and less often if they keep dying.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

from cloister.data.engines.duckdb import forbid_spilling
from cloister.data.table import Table
from cloister.errors import CloisterError, HubUnavailableError, SourceNotFoundError
from cloister.hub import logs, queue
from cloister.hub.hub import Hub, open_hub
from cloister.hub.queue import Bell, BrokenOff, Claim, Standing
from cloister.hub.settings import Settings
from cloister.hub.store.folder_identity import is_own_folder
from cloister.hub.use_cases import activity_profiles, jobs
from cloister.hub.use_cases.access.decisions import expire_due

__all__ = ["UPKEEP_EVERY", "KeptClaim", "OpenTables", "Supervisor", "Worker", "do_upkeep", "run_worker", "worker_name"]


class OpenTables:
    """The views used last, by their digest. The right to use one is decided anew for every run, before it is asked for.

    Args:
        limit: how many are kept.
        idle_seconds: how long one is kept that nobody uses, so that deleted data does not stay in memory.
    """

    def __init__(self, *, limit: int = 4, idle_seconds: float = 300.0) -> None:
        self._limit, self._idle_seconds = limit, idle_seconds
        self._tables: OrderedDict[str, tuple[Table, float]] = OrderedDict()

    def __call__(self, view: str, opener: Callable[[], Table]) -> Table:
        """Return the table of a view, opening it if it is not open."""
        found = self._tables.pop(view, None)
        table = opener() if found is None else found[0]
        self._tables[view] = (table, time.monotonic())
        while len(self._tables) > self._limit:
            self._tables.popitem(last=False)
        return table

    def __len__(self) -> int:
        return len(self._tables)

    def forget_idle(self) -> None:
        """Let go of what nobody has used for a while."""
        oldest = time.monotonic() - self._idle_seconds
        for view in [view for view, (_, used) in self._tables.items() if used < oldest]:
            del self._tables[view]


_BETWEEN_REPORTS = 0.2


class KeptClaim:
    """A claim that a thread renews until the block ends.

    Args:
        hub: the hub.
        held: the claim.
        stopping: set when the worker ends, so that the work is given back.
    """

    def __init__(self, hub: Hub, held: Claim, *, stopping: threading.Event) -> None:
        self._hub, self._held, self._stopping = hub, held, stopping
        self._lease = hub.settings.lease_seconds
        self._standing = Standing.HELD
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="heartbeat", daemon=True)
        self._reported = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def progress(self, share: float, stage: str) -> None:
        """Say how far the work is, now and then; raise `BrokenOff` where it must stop.

        Raises:
            BrokenOff: if the work was canceled, or its claim lost, or the worker ends.
        """
        moment = time.monotonic()
        if moment - self._reported >= _BETWEEN_REPORTS:
            self._reported = moment
            self._standing = self._report_progress(share, stage)
        # What the heartbeat has heard in the meantime counts here as well.
        if self._standing is not Standing.HELD:
            raise BrokenOff(self._standing)
        if self._stopping.is_set():
            raise BrokenOff(None)

    def _report_progress(self, share: float, stage: str) -> Standing:
        try:
            with self._hub.store.writing() as session:
                return queue.report_progress(session, self._held, share, stage)
        except HubUnavailableError:
            # A database that cannot be reached says nothing about the claim; in the end the lease decides.
            return self._standing

    def _renew(self) -> None:
        # A third of the lease: two renewals may fail before the work is taken for lost.
        while not self._over.wait(max(self._lease / 3, 0.05)):
            try:
                with self._hub.store.writing() as session:
                    self._standing = queue.heartbeat(session, self._held, self._lease)
            except HubUnavailableError:
                continue
            if self._standing is Standing.LOST:
                return


UPKEEP_EVERY = timedelta(minutes=15)
"""How often upkeep is done."""


def do_upkeep(hub: Hub) -> None:
    """Do what is due; doing it twice changes nothing."""
    with hub.store.writing() as session:
        expire_due(session)
    with hub.store.writing() as session:
        activity_profiles.alert(session)
    hub.blobs.sweep()


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
        held = self._claim()
        if held is None:
            return False
        try:
            with KeptClaim(self._hub, held, stopping=self._stopping) as kept:
                jobs.perform(self._hub, held, kept.progress, open_table=self._tables)
        except BrokenOff as reason:
            self._break_off(held, reason.standing)
        except SourceNotFoundError:
            self._passed_over[held.job_id] = time.monotonic() + AGAIN_SECONDS
            logs.logger().error("a file of the work is missing", job=held.job_id)
        return True

    def _claim(self) -> Claim | None:
        moment = time.monotonic()
        self._passed_over = {job: until for job, until in self._passed_over.items() if until > moment}
        lease, skipped = self._hub.settings.lease_seconds, tuple(self._passed_over)
        with self._hub.store.reading() as session:
            # Looking is a reading transaction: idle workers must not queue up for the right to write.
            if not queue.is_work_waiting(session, lease_seconds=lease, passed_over=skipped):
                return None
            if not is_own_folder(session, self._hub.settings.folder):
                return None
        return jobs.take(self._hub, self._name, passed_over=skipped)

    def _break_off(self, held: Claim, standing: Standing | None) -> None:
        if standing is Standing.LOST:
            return
        with self._hub.store.writing() as session:
            queue.give_back(session, held)

    def _do_upkeep(self) -> None:
        """Do what the hub does by itself, if it is due; a problem of the database is waited out."""
        if time.monotonic() < self._next_upkeep:
            return
        self._next_upkeep = time.monotonic() + UPKEEP_EVERY.total_seconds()
        with contextlib.suppress(CloisterError):
            do_upkeep(self._hub)

    def _rest(self, pause: float) -> None:
        """Wait until somebody rings, the worker is to end, or the pause is over."""
        until = time.monotonic() + pause
        while time.monotonic() < until and not self._bell.has_rung():
            if self._stopping.wait(SHORTEST_PAUSE):
                return


def run_worker(settings: Settings, **options: Any) -> None:
    """Be a worker process; the rows that it unseals stay in memory, and what it dies of is logged without words."""
    forbid_spilling()
    logs.configure(settings.log_level)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())  # noqa: ARG005
    # Ctrl-C reaches all processes of a terminal, and the supervisor is the one to end the workers.
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


FIRST_RESTART_PAUSE = 0.2
LONGEST_RESTART_PAUSE = 30.0
STEADY_SECONDS = 60.0
"""A worker that lived so long is taken for sound: its next death is the first one again."""


@dataclass(slots=True)
class _Place:
    """One worker's place: who holds it, since when, and when it may be filled again."""

    process: BaseProcess | None = None
    started: float = 0.0
    pause: float = FIRST_RESTART_PAUSE
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
        target: Callable[[Settings], Any] = run_worker,
        grace_seconds: float = 10.0,
    ) -> None:
        self._settings = replace(settings, oidc=None)
        self._target, self._grace = target, grace_seconds
        # A forked process would inherit connections, and locks that threads of this one hold.
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
        # The watching thread ends first, or it would start workers anew while they are ended.
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
            place.pause = FIRST_RESTART_PAUSE if lived > STEADY_SECONDS else place.pause
            place.not_before = moment + place.pause
            place.pause = min(place.pause * 2, LONGEST_RESTART_PAUSE)
        if place.process is None and moment >= place.not_before:
            self._fill(place)

    def _fill(self, place: _Place) -> None:
        place.process = self._context.Process(target=self._target, args=(self._settings,), name="cloister worker")
        place.process.start()
        place.started = time.monotonic()
