"""A version's checks as work in the queue: paid for, begun, ended and told. What is checked: `hub.sandbox.review`.

Foreign code runs in the sandbox, on made-up data only. Whether this machine can confine foreign code is asked before
anything is paid. Workers run on the hub's machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, NotFoundError, TooManyRequestsError
from cloister.hub.domain import actions
from cloister.hub.domain.algorithms import VersionState, VersionStep, next_state
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.queue import Bell
from cloister.hub.sandbox import runner
from cloister.hub.sandbox.review import CheckReport, check_artifact
from cloister.hub.sandbox.run_plan import alone_on_this_machine
from cloister.hub.sandbox.runner import Isolation
from cloister.hub.store.models import AlgorithmVersion, Job
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases._chores import add_chore, chores
from cloister.hub.use_cases.algorithms.versions import full_name, load_version, open_sources
from cloister.hub.use_cases.notices import notify

__all__ = ["CHECK", "queue_check", "require_isolation", "start_check"]


_ASK_AGAIN_SECONDS = 60.0
_lock = threading.Lock()
_known: list[tuple[float, Isolation]] = []


def require_isolation() -> Isolation:
    """Return what the sandbox offers here; walls that stood once are not tried again, others after a minute.

    Raises:
        SandboxUnavailableError: if foreign code cannot be confined.
    """
    with _lock:
        moment = time.monotonic()
        if not _known or (not _known[0][1].is_enough and moment - _known[0][0] > _ASK_AGAIN_SECONDS):
            _known[:] = [(moment, runner.detect_isolation())]
        found = _known[0][1]
    found.require()
    return found


MOST_WAITING = 5
"""How many checks of one person may wait or run at a time."""


class AlgorithmCheck:
    """Checks the sources of a version; a version that passes can be published."""

    name: ClassVar[str] = "algorithm.check"
    title: ClassVar[str] = "Check of an algorithm"

    def work(self, hub: Hub, parameters: dict[str, Any], progress: Callable[[float, str], None]) -> CheckReport:
        """Run the checks, while no other foreign algorithm runs here: it could be watched by this one."""
        progress(0.05, "waiting until no other algorithm runs")
        with hub.store.reading() as session:
            sources = open_sources(hub, _find_requested(session, parameters))
        with alone_on_this_machine():
            progress(0.2, "running on made-up data")
            return check_artifact(sources.artifact)

    def keep(self, session: Session, parameters: dict[str, Any], found: CheckReport) -> None:
        """Keep the report, and say that the version passed if it did."""
        version = _find_requested(session, parameters)
        version.report = found.to_dict()
        if found.passed and version.state == VersionState.DRAFT:
            version.state = next_state(VersionState.DRAFT, VersionStep.PASS_CHECKS).value
        words = "passed the checks, and can be published" if found.passed else "did not pass the checks"
        notify(
            session,
            version.algorithm.provider_id,
            f"{full_name(version)} {words}.",
            link=f"/algorithms/{version.algorithm_id}/versions/{version.version}",
        )


CHECK = chores.register(AlgorithmCheck.name)(AlgorithmCheck())


def start_check(hub: Hub, subject: AccessSubject, algorithm_id: str, version: str) -> str:
    """Queue the checks of a version again, and return the id of the work.

    Raises:
        ConflictError: if the version is no draft.
        TooManyRequestsError: if too many checks wait already.
    """
    with hub.store.writing() as session:
        stored = load_version(session, algorithm_id, version, lock=True)
        if stored.state != VersionState.DRAFT:
            raise ConflictError(f"The version is {stored.state}.", fix="check drafts; others were checked.")
        job = queue_check(session, subject, stored)
        audit_log.append(
            session,
            actions.EDIT_ALGORITHM,
            by=subject,
            target=f"algorithm:{algorithm_id}",
            what="check",
            version=version,
        )
    Bell(hub.settings.folder).ring()
    return job.id


def queue_check(session: Session, subject: AccessSubject, version: AlgorithmVersion) -> Job:
    """Add the checks of a version to the queue, in the caller's transaction.

    Raises:
        TooManyRequestsError: if too many checks wait already.
    """
    open_states = (JobState.QUEUED.value, JobState.RUNNING.value)
    waiting = select(func.count()).where(
        Job.requester_id == subject.user_id, Job.service == CHECK.name, Job.state.in_(open_states)
    )
    if (session.scalar(waiting) or 0) >= MOST_WAITING:
        raise TooManyRequestsError("Too many of your checks wait already.", fix="try again when they are done.")
    return add_chore(session, CHECK, subject, algorithm=full_name(version), version=version.id, digest=version.digest)


def _find_requested(session: Session, parameters: dict[str, Any]) -> AlgorithmVersion:
    """Return the version that is to be checked, if it still has the sources that it had."""
    version = session.get(AlgorithmVersion, str(parameters["version"]))
    if version is None:
        raise NotFoundError("There is no such version any more.", fix="look at the algorithm's page.")
    # A report about earlier sources must not let later ones pass.
    if version.digest != parameters["digest"]:
        raise ConflictError("The sources were replaced after this check was asked for.", fix="see the newer check.")
    return version
