"""The worker queue in the hub's own database: workers claim work, renew the claim, and end what is still theirs.

A claim has a number, its attempt. Whoever was taken for lost, and was only slow, finds a higher number and can change
nothing any more; so a piece of work ends once, whatever the clocks say. Leases are counted by the database's clock.
Every function works in the transaction of its session, which the caller commits: a writing one, except for
`is_work_waiting`.

Beside the database there are two files in the hub's folder. Whoever adds work rings a bell, so that idle workers on
this machine look at once: ringing changes the times of a file, and looking at them is cheap. A missed ring costs a
moment only, because workers look into the queue from time to time anyway.

The other file counts how often work has failed that was paid for: a number for operators, which names no work, person
or dataset. It is the length of the file, which all machines of a hub share: every worker adds a byte for each failure,
in one call that a local file system does not interleave, so that nothing has to be locked or read first. On a network
file system two machines that fail at the same moment may be counted once.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, and_, func, not_, or_, select, update
from sqlalchemy.orm import Session, lazyload

from cloister.errors import ConflictError
from cloister.hub.domain.lifecycles import MOST_LOSSES, JobState, check_change
from cloister.hub.store.models import Job, now

__all__ = [
    "Bell",
    "BrokenOff",
    "Claim",
    "FailureCount",
    "Standing",
    "claim",
    "end",
    "give_back",
    "heartbeat",
    "hold",
    "is_work_waiting",
    "report_progress",
    "request_cancel",
    "sweep",
]


LONGEST_LEASE = 86_400.0
"""Seconds; the setting ``lease_seconds`` is below."""

LOST = {
    "problem": "The worker was lost four times.",
    "fix": "ask for less at once; what was paid stays paid.",
    "kind": "lost",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right of one worker to one piece of work, until its lease runs out unrenewed."""

    job_id: str
    attempt: int
    worker: str
    is_last: bool = False
    """Whether so many workers were lost with it that its rows may be the reason: they are not looked at again."""


class Standing(StrEnum):
    """What has become of a claim."""

    HELD = "held"
    CANCELED = "canceled"
    LOST = "lost"


class BrokenOff(BaseException):  # not an Exception, so that no service takes it for a failure of its own
    """Work must stop here: it was canceled, its claim was lost, or its worker ends."""

    def __init__(self, standing: Standing | None) -> None:
        super().__init__()
        self.standing = standing


def is_work_waiting(
    session: Session, *, lease_seconds: float = LONGEST_LEASE, passed_over: Collection[str] = ()
) -> bool:
    """Return whether there is something to claim or to sweep, without taking it.

    Args:
        session: of the database.
        lease_seconds: how long claims last.
        passed_over: work that the worker cannot do.
    """
    moment = _this_moment(session)
    found = select(Job.id).where(or_(_is_free(moment), _is_too_far(moment, lease_seconds)), Job.id.not_in(passed_over))
    return session.scalars(found.limit(1)).first() is not None


def sweep(session: Session, *, lease_seconds: float = LONGEST_LEASE) -> list[Job]:
    """End the work that lost its worker too often, or while it was to be canceled, and return it.

    A claim that would last for longer than claims do was made by a clock that was ahead. It is taken as made now:
    whoever holds it renews it, and whoever is gone loses it when the lease is over.
    """
    moment = _this_moment(session)
    renewed = moment + timedelta(seconds=lease_seconds)
    session.execute(update(Job).where(_is_too_far(moment, lease_seconds)).values(lease_until=renewed))
    is_lost = and_(Job.state == JobState.RUNNING, Job.lease_until < moment)
    is_over = or_(Job.losses >= MOST_LOSSES, Job.is_cancel_requested)
    found = list(session.scalars(_lock_rows(select(Job).where(is_lost, is_over))))
    for job in found:
        job.losses += 1
        if job.is_cancel_requested:
            end(job, JobState.CANCELED)
        else:
            end(job, JobState.FAILED, error=LOST)
    return found


def claim(session: Session, worker: str, lease_seconds: float, *, passed_over: Collection[str] = ()) -> Claim | None:
    """Take the oldest work that nobody has, or that its worker let lapse; `sweep` ends what lapsed too often.

    Args:
        session: of the database.
        worker: who claims.
        lease_seconds: for how long, unless the claim is renewed.
        passed_over: work that the worker cannot do.
    """
    moment = _this_moment(session)
    # These are for `sweep`, after which people are told of their end: claiming must not take them away.
    is_over = or_(and_(Job.state == JobState.RUNNING, Job.losses >= MOST_LOSSES), Job.is_cancel_requested)
    found = select(Job).where(_is_free(moment), not_(is_over), Job.id.not_in(passed_over))
    # Locked rows are skipped, so that workers that come at once take different work instead of waiting in line.
    job = session.scalars(_lock_rows(found.order_by(Job.created, Job.id).limit(1))).first()
    if job is None:
        return None
    # Running work that is free to take has lost its worker.
    job.losses += job.state == JobState.RUNNING
    job.state, job.worker, job.progress, job.stage = JobState.RUNNING.value, worker, 0.0, ""
    # The new number makes every older claim void, whoever still believes to hold one.
    job.attempt += 1
    job.lease_until = moment + timedelta(seconds=lease_seconds)
    return Claim(job_id=job.id, attempt=job.attempt, worker=worker, is_last=job.losses >= MOST_LOSSES)


def heartbeat(session: Session, held: Claim, lease_seconds: float) -> Standing:
    """Renew a claim, and return what has become of it."""
    return _renew(session, held, lease_until=_this_moment(session) + timedelta(seconds=lease_seconds))


def report_progress(session: Session, held: Claim, share: float, stage: str) -> Standing:
    """Say how far the work is, 0 to 1, and in what stage; return what has become of the claim."""
    return _renew(session, held, progress=min(max(float(share), 0.0), 1.0), stage=stage[:100])


def hold(session: Session, held: Claim) -> Job | None:
    """Return the work, locked until the end of the transaction, if the claim is still the newest; else None."""
    # This waits for the lock: skipping a locked row would look like a lost claim.
    return session.scalars(_lock_rows(select(Job).where(_is_of(held)), wait=True)).first()


def give_back(session: Session, held: Claim) -> bool:
    """Put the work back into the queue, as a worker that ends does; return whether the claim was still the newest."""
    job = hold(session, held)
    if job is None:
        return False
    if job.is_cancel_requested:
        end(job, JobState.CANCELED)
    else:
        job.state, job.worker, job.lease_until = JobState.QUEUED.value, None, None
    return True


def request_cancel(session: Session, job_id: str) -> JobState:
    """Cancel work that nobody runs at once, ask for it where somebody does, and return the state.

    Raises:
        ConflictError: if the work has ended, or there is none.
    """
    job = session.scalars(_lock_rows(select(Job).where(Job.id == job_id), wait=True)).first()
    if job is None or JobState(job.state).is_final:
        raise ConflictError("This work has ended already.", fix="look at it again.")
    job.is_cancel_requested = True
    if job.state != JobState.RUNNING:
        end(job, JobState.CANCELED)
    return JobState(job.state)


def end(job: Job, state: JobState, *, error: dict[str, Any] | None = None) -> None:
    """End work that the caller holds.

    Raises:
        ConflictError: if it is in no state for that.
    """
    check_change(JobState(job.state), state)
    job.state, job.error, job.lease_until, job.stage = state.value, error, None, ""
    if state.is_final:
        job.finished = now()
    if state in {JobState.DONE, JobState.WAITING}:
        job.progress = 1.0


def _is_free(moment: datetime) -> ColumnElement[bool]:
    return or_(Job.state == JobState.QUEUED, and_(Job.state == JobState.RUNNING, Job.lease_until < moment))


def _is_too_far(moment: datetime, lease_seconds: float) -> ColumnElement[bool]:
    return and_(Job.state == JobState.RUNNING, Job.lease_until > moment + timedelta(seconds=lease_seconds))


def _is_of(held: Claim) -> ColumnElement[bool]:
    return and_(Job.id == held.job_id, Job.attempt == held.attempt, Job.state == JobState.RUNNING)


def _lock_rows(statement: Any, *, wait: bool = False) -> Any:  # a select of jobs, before and after
    """Return a select that locks what it finds; the writers of SQLite queue for the whole database anyway."""
    # Relations are not joined in: only the work is to be locked, and read anew under the lock.
    locking = statement.options(lazyload("*")).with_for_update(skip_locked=not wait, of=Job)
    return locking.execution_options(populate_existing=True)


def _renew(session: Session, held: Claim, **values: Any) -> Standing:
    # One statement looks and renews, so that no cancel can slip in between.
    statement = update(Job).where(_is_of(held)).values(**values).returning(Job.is_cancel_requested)
    found = session.execute(statement).first()
    if found is None:
        return Standing.LOST
    return Standing.CANCELED if found[0] else Standing.HELD


def _this_moment(session: Session) -> datetime:
    """Return this moment by the clock of the database: machines that share one need not agree about the time."""
    if session.get_bind().dialect.name == "sqlite":
        return datetime.now(UTC)
    found: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
    return found.astimezone(UTC)


class Bell:
    """A file whose time of change says when work was last added."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "bell"
        self._heard = self._rung()

    def ring(self) -> None:
        """Tell the workers that there is work; a folder that cannot be written only makes them slower."""
        with suppress(OSError):
            self._path.touch(mode=0o600)

    def has_rung(self) -> bool:
        """Return whether somebody has rung since the last look."""
        rung, before = self._rung(), self._heard
        self._heard = rung
        return rung != before

    def _rung(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0


class FailureCount:
    """The count of all workers that share a hub's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "failures"

    def add(self, failures: int) -> None:
        """Count some failures; a folder that cannot be written loses the count, not the work."""
        if failures < 1:
            return
        with suppress(OSError):
            number = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(number, b"." * failures)
            finally:
                os.close(number)

    @property
    def value(self) -> int:
        """Return the count."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0
