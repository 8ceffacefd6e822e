"""Work that is about no dataset and costs nothing: it waits in the queue beside the services, and workers do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from sqlalchemy.orm import Session

from cloister.core.registry import Registry
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.store.models import Job, new_id

__all__ = ["Chore", "add_chore", "chores"]


class Chore(Protocol):
    """One kind of such work.

    Attributes:
        name: such as "algorithm.check".
        title: for the list of work.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    def work(self, hub: Hub, parameters: dict[str, Any], progress: Callable[[float, str], None]) -> Any:
        """Do it, outside of any transaction; errors are told in full, for no data is looked at."""
        ...

    def keep(self, session: Session, parameters: dict[str, Any], found: Any) -> None:
        """Keep what `work` gave, in the transaction that ends the work."""
        ...


chores: Registry[Chore] = Registry("chore")
"""Everything that the hub does in its queue besides services on data."""


def add_chore(session: Session, chore: Chore, subject: AccessSubject, **parameters: Any) -> Job:
    """Add such work to the queue, in the caller's transaction; ring the bell when it is committed."""
    job = Job(
        id=new_id("job"),
        service=chore.name,
        state=JobState.QUEUED.value,
        requester_id=subject.user_id,
        organisation_id=subject.organisation_id,
        parameters=parameters,
        attempt=0,
        losses=0,
    )
    session.add(job)
    session.flush()
    return job
