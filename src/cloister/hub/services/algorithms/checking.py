"""The automated checks of a version, as work in the queue: foreign code runs in the sandbox, on made-up data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, NotFoundError, TooManyRequestsError
from cloister.hub.domain import actions
from cloister.hub.domain.algorithms import State, Step, after
from cloister.hub.domain.jobs import State as JobState
from cloister.hub.domain.roles import Subject
from cloister.hub.hub import Hub
from cloister.hub.jobs.bell import Bell
from cloister.hub.sandbox.checking import CheckReport, check_artifact
from cloister.hub.sandbox.slots import alone_on_this_machine
from cloister.hub.services import auditing
from cloister.hub.services.algorithms.sources import full_name, open_sources, stored_version
from cloister.hub.services.chores import add_chore, chores
from cloister.hub.services.notices import notify
from cloister.hub.store.models import AlgorithmVersion, Job

__all__ = ["CHECK", "queue_check", "start_check"]

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
            sources = open_sources(hub, _asked(session, parameters))
        with alone_on_this_machine():
            progress(0.2, "running on made-up data")
            return check_artifact(sources.artifact)

    def keep(self, session: Session, parameters: dict[str, Any], found: CheckReport) -> None:
        """Keep the report, and say that the version passed if it did."""
        version = _asked(session, parameters)
        version.report = found.to_dict()
        if found.passed and version.state == State.DRAFT:
            version.state = after(State.DRAFT, Step.PASS_CHECKS).value
        words = "passed the checks, and can be published" if found.passed else "did not pass the checks"
        notify(
            session,
            version.algorithm.provider_id,
            f"{full_name(version)} {words}.",
            link=f"/algorithms/{version.algorithm_id}/versions/{version.version}",
        )


CHECK = chores.register(AlgorithmCheck.name)(AlgorithmCheck())


def start_check(hub: Hub, subject: Subject, algorithm_id: str, version: str) -> str:
    """Queue the checks of a version again, and return the id of the work.

    Raises:
        ConflictError: if the version is no draft.
        TooManyRequestsError: if too many checks wait already.
    """
    with hub.store.writing() as session:
        stored = stored_version(session, algorithm_id, version, lock=True)
        if stored.state != State.DRAFT:
            raise ConflictError(f"The version is {stored.state}.", fix="check drafts; others were checked.")
        job = queue_check(session, subject, stored)
        auditing.append(
            session,
            actions.EDIT_ALGORITHM,
            by=subject,
            target=f"algorithm:{algorithm_id}",
            what="check",
            version=version,
        )
    Bell(hub.settings.folder).ring()
    return job.id


def queue_check(session: Session, subject: Subject, version: AlgorithmVersion) -> Job:
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


def _asked(session: Session, parameters: dict[str, Any]) -> AlgorithmVersion:
    """Return the version that is to be checked, if it still has the sources that it had."""
    version = session.get(AlgorithmVersion, str(parameters["version"]))
    if version is None:
        raise NotFoundError("There is no such version any more.", fix="look at the algorithm's page.")
    if version.digest != parameters["digest"]:
        raise ConflictError("The sources were replaced after this check was asked for.", fix="see the newer check.")
    return version
