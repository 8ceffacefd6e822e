"""Telling people, and the audit, that work has ended."""

from __future__ import annotations

from sqlalchemy.orm import Session

from cloister.hub.domain import audit
from cloister.hub.domain.jobs import State
from cloister.hub.services import auditing
from cloister.hub.services.notices import notify, notify_owners
from cloister.hub.services.registry import algorithms
from cloister.hub.store.models import Job

__all__ = ["tell_end"]


def tell_end(session: Session, job: Job, *, waits: bool = False) -> None:
    """Note the end of work, for the audit, the requester, and the owners where they have to decide or it failed."""
    auditing.append(
        session,
        "job.end",
        by=auditing.HUB,
        target=f"job:{job.id}",
        dataset_id=job.dataset_id,
        outcome=audit.Outcome.REFUSED if job.state == State.DENIED else audit.Outcome.DONE,
        service=job.service,
        state=job.state,
    )
    name = "" if job.dataset is None else f" on {job.dataset.title or job.dataset.name}"
    title = algorithms.get(job.service).title if job.service in algorithms else job.service
    notify(session, job.requester_id, f"{title}{name}: {_WORDS[State(job.state)]}", link=f"/jobs/{job.id}")
    if job.dataset is not None and (waits or job.state == State.FAILED):
        words = "a release waits for your decision." if waits else "a run failed."
        owner = job.dataset.organisation_id
        notify_owners(session, owner, f"{title}{name}: {words}", link=f"/jobs/{job.id}", but=job.requester_id)


_WORDS = {
    State.DONE: "the result is there.",
    State.WAITING: "the result is made, and waits for the owner's decision.",
    State.FAILED: "the work failed.",
    State.DENIED: "the work was denied.",
    State.CANCELED: "the work was canceled.",
}
