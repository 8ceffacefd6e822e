"""Doing chores, in a worker: work that is about no dataset, so that its failures may be told in full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloister.errors import CloisterError, HubUnavailableError, SourceNotFoundError
from cloister.hub.domain.jobs import State
from cloister.hub.hub import Hub
from cloister.hub.jobs import queue
from cloister.hub.jobs.queue import Claim
from cloister.hub.services.chores import Chore, chores
from cloister.hub.services.running.telling import tell_end
from cloister.hub.store.models import Job

__all__ = ["perform_chore"]

_FAILED = {"problem": "The work failed.", "fix": "try again; if it stays, tell the operator."}


def perform_chore(hub: Hub, held: Claim, progress: Callable[[float, str], None]) -> bool:
    """Do the work of a claim if it is a chore, keep what it gives with its end, and return whether it was one."""
    with hub.store.reading() as session:
        job = session.get(Job, held.job_id)
        if job is None or job.service not in chores:
            return False
        chore, parameters = chores.get(job.service), dict(job.parameters)
    try:
        found = chore.work(hub, parameters, progress)
        _end(hub, held, chore, found)
    except HubUnavailableError:
        raise
    except SourceNotFoundError:
        with hub.store.writing() as session:
            queue.give_back(session, held)
        raise
    except CloisterError as error:
        _fail(hub, held, {"problem": error.problem, "fix": error.fix, "kind": type(error).__name__})
    except Exception as error:  # noqa: BLE001  # whatever a chore raises, it ends this work and not the worker
        _fail(hub, held, _FAILED | {"kind": type(error).__name__})
    return True


def _end(hub: Hub, held: Claim, chore: Chore, found: Any) -> None:
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return
        if job.is_cancel_requested:
            queue.end(job, State.CANCELED)
        else:
            chore.keep(session, dict(job.parameters), found)
            queue.end(job, State.DONE)
        tell_end(session, job)


def _fail(hub: Hub, held: Claim, error: dict[str, Any]) -> None:
    with hub.store.writing() as session:
        job = queue.hold(session, held)
        if job is None:
            return
        queue.end(job, State.CANCELED if job.is_cancel_requested else State.FAILED, error=error)
        tell_end(session, job)
