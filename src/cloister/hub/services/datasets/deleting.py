"""Deletion that deletes: the keys go first, so that no copy or backup of the sealed rows can be opened again.

Tables that have not left the hub and measurements of the rows themselves go too. The ledger and the audit log stay:
what was spent on people who were in the data stays spent. Results that were handed out before stay with those who have
them.
"""

from __future__ import annotations

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cloister.errors import NotFoundError
from cloister.hub.domain.actions import DELETE_DATASET
from cloister.hub.domain.jobs import State
from cloister.hub.domain.roles import Subject
from cloister.hub.hub import Hub
from cloister.hub.jobs import queue
from cloister.hub.services import auditing
from cloister.hub.services.notices import notify
from cloister.hub.store.models import (
    AccessRequest,
    AlgorithmAllowance,
    AnswerHistory,
    Dataset,
    DatasetVersion,
    Job,
    Result,
)

_WITH_RESULTS = (State.WAITING.value, State.DONE.value)


def delete_dataset(hub: Hub, subject: Subject, dataset_id: str) -> None:
    """Delete a dataset's rows, keys, schema and description for good."""
    with hub.store.writing() as session:
        dataset = session.get(Dataset, dataset_id)
        if dataset is None or dataset.state == "deleted":
            raise NotFoundError("There is no such dataset, or you may not see it.", fix="check the address.")
        versions = session.scalars(select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)).all()
        files = [version.blob_id for version in versions if version.blob_id is not None]
        for version in versions:
            version.wrapped_key = version.blob_id = version.size = version.source_digest = version.sealed_schema = None
            version.columns, version.schema_text, version.state = [], "", "deleted"
        dataset.state, dataset.title, dataset.description = "deleted", "", ""
        dataset.name = f"deleted {dataset.id}"
        dataset.facts = {}
        session.execute(
            update(Job)
            .where(Job.dataset_id == dataset_id, Job.state.in_(("queued", "running")))
            .values(is_cancel_requested=True)
        )
        _delete_unprotected(session, dataset_id)
        session.execute(delete(AnswerHistory).where(AnswerHistory.dataset_id == dataset_id))
        session.execute(update(AccessRequest).where(AccessRequest.dataset_id == dataset_id).values(state="revoked"))
        session.execute(delete(AlgorithmAllowance).where(AlgorithmAllowance.dataset_id == dataset_id))
        auditing.append(session, DELETE_DATASET, by=subject, target=f"dataset:{dataset_id}", dataset_id=dataset_id)
    for name in files:
        hub.blobs.path(name).unlink(missing_ok=True)


def _delete_unprotected(session: Session, dataset_id: str) -> None:
    """Deny releases that wait for a decision, and delete them and what was for the eyes of owners only."""
    found = select(Job).where(Job.dataset_id == dataset_id, Job.state.in_(_WITH_RESULTS))
    jobs = list(session.scalars(found.with_for_update(of=Job)))
    for job in jobs:
        if job.state == State.WAITING:
            queue.end(job, State.DENIED, error={"problem": "The dataset was deleted.", "fix": "ask its owner."})
            notify(session, job.requester_id, f"{job.service}: the dataset was deleted.", link=f"/jobs/{job.id}")
    gone = [job.id for job in jobs if job.state == State.DENIED or job.plan.get("owners_only")]
    session.execute(delete(Result).where(Result.job_id.in_(gone)))
