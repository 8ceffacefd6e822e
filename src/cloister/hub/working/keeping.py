"""Keeping a claim while its work runs: a thread renews it, and the work hears when it is to stop."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from cloister.errors import HubUnavailableError
from cloister.hub.hub import Hub
from cloister.hub.jobs import queue
from cloister.hub.jobs.queue import BrokenOff, Claim, Standing

__all__ = ["KeptClaim"]

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
            self._standing = self._told(share, stage)
        if self._standing is not Standing.HELD:
            raise BrokenOff(self._standing)
        if self._stopping.is_set():
            raise BrokenOff(None)

    def _told(self, share: float, stage: str) -> Standing:
        try:
            with self._hub.store.writing() as session:
                return queue.report_progress(session, self._held, share, stage)
        except HubUnavailableError:
            return self._standing

    def _renew(self) -> None:
        while not self._over.wait(max(self._lease / 3, 0.05)):
            try:
                with self._hub.store.writing() as session:
                    self._standing = queue.heartbeat(session, self._held, self._lease)
            except HubUnavailableError:
                continue
            if self._standing is Standing.LOST:
                return
