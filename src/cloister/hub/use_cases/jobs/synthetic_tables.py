"""Synthetic tables that were released: who may have them, the card of each, and more rows for nothing.

Drawing rows from a model that was paid for reads no protected row and takes nothing from any budget.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.core.guarantees import guarantee_from_dict
from cloister.errors import ForbiddenError
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.terms import VOCABULARY
from cloister.hub.hub import Hub
from cloister.hub.services.protected_tables import csv_file
from cloister.hub.services.registry import ResultFile
from cloister.hub.services.synthesis import MODEL, NAME
from cloister.hub.store.models import Job, ResultRecord
from cloister.hub.use_cases.authorization import Access, ActionTarget, decide_operation, load_target
from cloister.hub.use_cases.jobs._release_registry import is_orphaned
from cloister.hub.use_cases.jobs.decide import check_may_have
from cloister.hub.use_cases.jobs.keep import SeenResult, see_result

__all__ = ["draw_rows", "list_synthetics", "read_synthetic", "see_card"]

_READERS = frozenset({ObjectRelation.OWNER, ObjectRelation.REQUESTER})


def list_synthetics(session: Session, subject: AccessSubject, dataset_id: str) -> list[dict[str, Any]]:
    """Return the cards of a dataset's released synthetic tables that a person may have, the newest first."""
    found = (
        select(Job)
        .where(Job.dataset_id == dataset_id, Job.service == NAME, Job.state == JobState.DONE.value)
        .order_by(Job.created.desc(), Job.id.desc())
    )
    cards = []
    for job in session.scalars(found):
        target = load_target(session, "synthetic", job.id)
        if target is None:
            continue
        purposes = _purposes(target, subject)
        if purposes is None or purposes:
            cards.append(_card(session, job) | {"named_purpose": purposes[0] if purposes else ""})
    return cards


def see_card(hub: Hub, access: Access, *, purpose: str = "") -> dict[str, Any]:
    """Return what everybody should know who uses a synthetic table."""
    with hub.store.reading() as session:
        return _card(session, _require_readable(session, access, purpose))


def read_synthetic(hub: Hub, access: Access, *, purpose: str = "") -> SeenResult:
    """Return a released synthetic table with its files, without what only owners see."""
    with hub.store.reading() as session:
        return see_result(hub, session, _require_readable(session, access, purpose), is_owner=False)


def draw_rows(
    hub: Hub, access: Access, *, count: int, where: list[str], seed: int | None = None, purpose: str = ""
) -> ResultFile:
    """Return new made-up rows as a CSV file; this costs nothing.

    Args:
        hub: the hub.
        access: who asks.
        count: how many.
        where: conditions, such as ``"sex=F"`` or ``"age=30..40"``.
        seed: gives the same rows again.
        purpose: what it is for, where the person did not ask for the table but may read it.
    """
    from cloister.synth.conditions import read_conditions
    from cloister.synth.documents import synthesizer_of

    seen = read_synthetic(hub, access, purpose=purpose)
    model = synthesizer_of(json.loads(seen.file(MODEL).content))
    conditions = read_conditions(where, model.fitted_facts.domain)
    return csv_file("rows.csv", model.sample(count, conditions=conditions, random_state=seed).to_arrow())


def _require_readable(session: Session, access: Access, purpose: str) -> Job:
    """Return the job of a synthetic table that the person may have now."""
    target = access.object
    job = session.get_one(Job, target.id)
    relations = target.relations(access.person)
    if ObjectRelation.OWNER in relations or is_orphaned(job):
        return job
    if ObjectRelation.REQUESTER in relations:
        check_may_have(session, access.person, job)
        return job
    decision = decide_operation(target, access.person, PolicyOperation.SYNTH_READ, purpose=purpose or None)
    if not decision.allowed:
        raise ForbiddenError(decision.public_reason, fix="ask the owner for access on the dataset's page.")
    return job


def _purposes(target: ActionTarget, subject: AccessSubject) -> list[str] | None:
    """Return for what a person may read a table: None where no purpose has to be named, empty where they may not."""
    if target.relations(subject) & _READERS:
        return None
    if decide_operation(target, subject, PolicyOperation.SYNTH_READ).allowed:
        return None
    return [
        name
        for name in sorted(VOCABULARY)
        if decide_operation(target, subject, PolicyOperation.SYNTH_READ, purpose=name).allowed
    ]


def _card(session: Session, job: Job) -> dict[str, Any]:
    stored = session.scalars(select(ResultRecord).where(ResultRecord.job_id == job.id)).one()
    provenance, preview = stored.provenance, job.plan.get("preview", {})
    decision = job.decision or {}
    address = f"/api/v1/synthetics/{job.id}"
    return {
        "schema": "cloister.synthetic_card/1",
        "id": job.id,
        "dataset": job.dataset_id,
        "title": "" if job.dataset is None or is_orphaned(job) else job.dataset.title or job.dataset.name,
        "dataset_version": provenance["dataset_version"],
        "source_digest": provenance["source_digest"],
        "is_orphaned": is_orphaned(job),
        "method": job.parameters["method"],
        "columns": preview.get("columns", []),
        "expected": preview.get("expected", []),
        "guarantee": stored.guarantee,
        "promise": guarantee_from_dict(stored.guarantee).explain(),
        "cost": None if provenance["receipt"] is None else provenance["receipt"]["cost"],
        "requester": job.requester.name,
        "purpose": job.purpose,
        "terms": provenance["terms"],
        "approved": decision.get("time"),
        "expires": _expiry(decision.get("time"), provenance["terms"].get("retention_days")),
        "digest": stored.digest,
        "rows": f"{address}/rows",
        "files": f"{address}/files/",
    }


def _expiry(approved: str | None, days: int | None) -> str | None:
    """Return the day after which the terms of the data want the table deleted."""
    if approved is None or days is None:
        return None
    return (datetime.fromisoformat(approved).astimezone(UTC) + timedelta(days=days)).date().isoformat()
