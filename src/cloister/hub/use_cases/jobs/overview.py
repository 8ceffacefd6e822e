"""Jobs as people see them: their own, and those on their own data, without anybody else's answers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from cloister.errors import NotFoundError
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.hub import Hub
from cloister.hub.services.registry import service_registry
from cloister.hub.store.models import Dataset, Job, ResultRecord
from cloister.hub.use_cases._chores import chores
from cloister.hub.use_cases.authorization import Access, ActionTarget, load_target
from cloister.hub.use_cases.jobs._release_registry import earlier_releases, is_orphaned, warnings_about
from cloister.hub.use_cases.jobs.release_decisions import approvals_needed, has_approved, without_reasons

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
    state: JobState | None = None,
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
        items = [_describe_for(session, job, subject) for job in page[:limit]]
    return items, items[-1]["id"] if len(page) > limit and items else None


def see_job(hub: Hub, access: Access, job_id: str) -> dict[str, Any]:
    """Return a piece of work as the person may see it."""
    with hub.store.reading() as session:
        job = session.get(Job, job_id)
        if job is None:
            raise NotFoundError("There is no such job, or you may not see it.", fix="check the address.")
        return _describe_for(session, job, access.person)


def describe_job(
    job: Job, relations: frozenset[ObjectRelation], *, result: ResultRecord | None = None
) -> dict[str, Any]:
    """Return a piece of work as JSON-ready values; the kind of a failure is for owners of the data only."""
    error = None if job.error is None else {"problem": job.error["problem"], "fix": job.error["fix"]}
    if error is not None and job.error is not None and ObjectRelation.OWNER in relations:
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
        "is_final": JobState(job.state).is_final,
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
        if ObjectRelation.OWNER in relations
        else without_reasons(job.decision, is_final=job.state != JobState.WAITING),
        "may_read_result": _may_read(job, relations),
        "may_decide": job.state == JobState.WAITING and ObjectRelation.OWNER in relations,
        "approvals_needed": 0,
        "earlier_releases": [],
        "owner_warnings": [],
        "created": job.created.replace(microsecond=0).isoformat(),
        "finished": None if job.finished is None else job.finished.replace(microsecond=0).isoformat(),
    }


def _progress(job: Job) -> tuple[float, str]:
    """Return how far work is and in what stage; of private work, only what its state tells."""
    state = JobState(job.state)
    if job.service in chores or job.plan.get("owners_only"):
        return job.progress, job.stage
    return float(state in {JobState.WAITING, JobState.DONE}), WORKING if state is JobState.RUNNING else ""


def _title(service: str) -> str:
    if service in service_registry:
        return service_registry.get(service).title
    return chores.get(service).title if service in chores else service


def _may_read(job: Job, relations: frozenset[ObjectRelation]) -> bool:
    if job.plan.get("owners_only"):
        return job.state == JobState.DONE and ObjectRelation.OWNER in relations
    is_owner = ObjectRelation.OWNER in relations and bool(job.plan.get("needs_approval"))
    if job.state == JobState.DONE:
        return job.service not in chores and (is_owner or ObjectRelation.REQUESTER in relations)
    return job.state == JobState.WAITING and is_owner


def _describe_for(session: Session, job: Job, subject: AccessSubject) -> dict[str, Any]:
    target: ActionTarget | None = load_target(session, "job", job.id)
    result = session.scalars(select(ResultRecord).where(ResultRecord.job_id == job.id)).first()
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


def _theirs(subject: AccessSubject) -> Any:  # a condition of SQLAlchemy
    own = Job.requester_id == subject.user_id
    if AccountRole.DATA_OWNER not in subject.roles or subject.organisation_id is None:
        return own
    return or_(own, Dataset.organisation_id == subject.organisation_id)
