"""Work as people see it: their own, and that on their own data, without anybody else's answers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from cloister.errors import NotFoundError
from cloister.hub.domain.actions import Relation
from cloister.hub.domain.jobs import State
from cloister.hub.domain.roles import Role, Subject
from cloister.hub.hub import Hub
from cloister.hub.services.authorizing import Access
from cloister.hub.services.chores import chores
from cloister.hub.services.registry import algorithms
from cloister.hub.services.running.release_registry import earlier_releases, is_orphaned, warnings_about
from cloister.hub.services.running.releasing import approvals_needed, has_approved, without_reasons
from cloister.hub.services.targets import Target, load_target
from cloister.hub.store.models import Dataset, Job, Result

__all__ = ["WORKING", "describe_job", "list_jobs", "see_job"]

WORKING = "working on the rows"
"""The one stage of private work: when the next one began would tell how long the rows took."""


def list_jobs(
    hub: Hub,
    access: Access,
    *,
    limit: int = 50,
    after: str | None = None,
    dataset_id: str | None = None,
    state: State | None = None,
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of work, the newest first, and the cursor of the next page.

    Args:
        hub: the hub.
        access: who asks.
        limit: how many at most.
        after: the cursor that the page before gave.
        dataset_id: only work on this dataset.
        state: only work in this state.
    """
    subject = access.person
    with hub.store.reading() as session:
        theirs = select(Job).outerjoin(Dataset, Dataset.id == Job.dataset_id).where(_theirs(subject))
        last = None if after is None else session.scalars(theirs.where(Job.id == after)).first()
        found = theirs
        if dataset_id is not None:
            found = found.where(Job.dataset_id == dataset_id)
        if state is not None:
            found = found.where(Job.state == state.value)
        if last is not None:
            found = found.where(or_(Job.created < last.created, and_(Job.created == last.created, Job.id < last.id)))
        page = list(session.scalars(found.order_by(Job.created.desc(), Job.id.desc()).limit(limit + 1)))
        items = [_described(session, job, subject) for job in page[:limit]]
    return items, items[-1]["id"] if len(page) > limit and items else None


def see_job(hub: Hub, access: Access, job_id: str) -> dict[str, Any]:
    """Return a piece of work as the person may see it."""
    with hub.store.reading() as session:
        job = session.get(Job, job_id)
        if job is None:
            raise NotFoundError("There is no such job, or you may not see it.", fix="check the address.")
        return _described(session, job, access.person)


def describe_job(job: Job, relations: frozenset[Relation], *, result: Result | None = None) -> dict[str, Any]:
    """Return a piece of work as JSON-ready values; the kind of a failure is for owners of the data only."""
    error = None if job.error is None else {"problem": job.error["problem"], "fix": job.error["fix"]}
    if error is not None and job.error is not None and Relation.OWNER in relations:
        error["kind"] = job.error.get("kind", "")
    receipt = job.receipt
    progress, stage = _progress(job)
    return {
        "schema": "cloister.job/1",
        "id": job.id,
        "service": job.service,
        "service_version": job.service_version,
        "title": _title(job.service),
        "state": job.state,
        "is_final": State(job.state).is_final,
        "dataset": None
        if job.dataset is None
        else {"id": job.dataset.id, "title": job.dataset.title or job.dataset.name},
        "requester": job.requester.name,
        "purpose": job.purpose,
        "parameters": job.parameters,
        "needs_approval": bool(job.plan.get("needs_approval")),
        "guarantee": job.plan.get("guarantee"),
        "warnings": job.plan.get("warnings", []),
        "receipt": None
        if receipt is None
        else {"number": receipt["number"], "digest": receipt["digest"], "cost": receipt["cost"]},
        "is_repeated": bool(result is not None and result.provenance.get("is_repeated")),
        "progress": progress,
        "stage": stage,
        "is_orphaned": is_orphaned(job),
        "is_cancel_requested": job.is_cancel_requested,
        "error": error,
        "decision": job.decision
        if Relation.OWNER in relations
        else without_reasons(job.decision, is_final=job.state != State.WAITING),
        "may_read_result": _may_read(job, relations),
        "may_decide": job.state == State.WAITING and Relation.OWNER in relations,
        "approvals_needed": 0,
        "earlier_releases": [],
        "owner_warnings": [],
        "created": job.created.replace(microsecond=0).isoformat(),
        "finished": None if job.finished is None else job.finished.replace(microsecond=0).isoformat(),
    }


def _progress(job: Job) -> tuple[float, str]:
    """Return how far work is and in what stage; of private work, only what its state tells."""
    state = State(job.state)
    if job.service in chores or job.plan.get("owners_only"):
        return job.progress, job.stage
    return float(state in {State.WAITING, State.DONE}), WORKING if state is State.RUNNING else ""


def _title(service: str) -> str:
    if service in algorithms:
        return algorithms.get(service).title
    return chores.get(service).title if service in chores else service


def _may_read(job: Job, relations: frozenset[Relation]) -> bool:
    if job.plan.get("owners_only"):
        return job.state == State.DONE and Relation.OWNER in relations
    is_owner = Relation.OWNER in relations and bool(job.plan.get("needs_approval"))
    if job.state == State.DONE:
        return job.service not in chores and (is_owner or Relation.REQUESTER in relations)
    return job.state == State.WAITING and is_owner


def _described(session: Session, job: Job, subject: Subject) -> dict[str, Any]:
    target: Target | None = load_target(session, "job", job.id)
    result = session.scalars(select(Result).where(Result.job_id == job.id)).first()
    relations = frozenset() if target is None else target.relations(subject)
    described = describe_job(job, relations, result=result)
    described["may_read_result"] = described["may_read_result"] and result is not None
    if not described["may_decide"]:
        return described
    earlier = earlier_releases(session, job)
    return described | {
        "may_decide": not has_approved(job, subject),
        "approvals_needed": approvals_needed(session, job),
        "earlier_releases": earlier,
        "owner_warnings": warnings_about(job, earlier),
    }


def _theirs(subject: Subject) -> Any:  # a condition of SQLAlchemy
    own = Job.requester_id == subject.user_id
    if Role.DATA_OWNER not in subject.roles or subject.organisation_id is None:
        return own
    return or_(own, Dataset.organisation_id == subject.organisation_id)
