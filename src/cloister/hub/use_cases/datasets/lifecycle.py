"""The life of a dataset: made, found as it is stored, changed in what its owner says about it, and deleted.

Deletion deletes: the keys go first, so that no copy or backup of the sealed rows can be opened again. Tables that have
not left the hub and measurements of the rows themselves go too. The ledger and the audit log stay: what was spent on
people who were in the data stays spent. Results that were handed out before stay with those who have them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cloister.accounting.ledger.checks import check_name
from cloister.errors import ConflictError, ForbiddenError, NotFoundError
from cloister.hub import queue
from cloister.hub.domain.actions import CREATE_DATASET, DELETE_DATASET, EDIT_DATASET
from cloister.hub.domain.lifecycles import JobState
from cloister.hub.domain.policy_edits import private_by_default
from cloister.hub.domain.policy_file import policy_to_dict
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.store.models import (
    AccessRequestRecord,
    AlgorithmAllowance,
    AnswerHistory,
    Dataset,
    DatasetVersion,
    Job,
    PolicyVersion,
    ResultRecord,
    new_id,
)
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.datasets.versions import newest_version
from cloister.hub.use_cases.notices import notify


def get_dataset(session: Session, dataset_id: str) -> Dataset:
    """Return a dataset that was not deleted."""
    dataset = session.get(Dataset, dataset_id)
    if dataset is None or dataset.state == "deleted":
        raise NotFoundError("There is no such dataset, or you may not see it.", fix="check the address.")
    return dataset


def get_newest_version(session: Session, dataset_id: str) -> DatasetVersion:
    """Return the newest version of a dataset."""
    version = newest_version(session, dataset_id)
    if version is None:
        raise ConflictError("This dataset has no rows yet.", fix="upload a CSV or Parquet file first.")
    return version


def describe_version(version: DatasetVersion) -> dict[str, Any]:
    """Return what an owner sees of a version."""
    return {
        "schema": "cloister.dataset_version/1",
        "id": version.id,
        "dataset": version.dataset_id,
        "number": version.number,
        "state": version.state,
        "size": version.size,
        "columns": version.columns,
        "digest": version.source_digest,
    }


def create_dataset(
    session: Session, subject: AccessSubject, *, name: str, title: str = "", description: str = ""
) -> Dataset:
    """Make a dataset of the person's institution, without rows, seen by nobody else."""
    if subject.organisation_id is None:
        raise ForbiddenError(
            "Your account belongs to no institution, so nobody would own the data.", fix="ask the hub's operator."
        )
    dataset = Dataset(
        id=new_id("ds"),
        name=check_name(name, name="name"),
        title=title.strip(),
        description=description.strip(),
        organisation_id=subject.organisation_id,
        creator_id=subject.user_id,
        facts={},
    )
    session.add(dataset)
    session.flush()
    policy = private_by_default(dataset.id)
    session.add(
        PolicyVersion(
            id=new_id("pol"),
            object_kind="dataset",
            object_id=dataset.id,
            number=policy.version,
            document=policy_to_dict(policy),
            author_id=subject.user_id,
        )
    )
    audit_log.append(session, CREATE_DATASET, by=subject, target=f"dataset:{dataset.id}", dataset_id=dataset.id)
    return dataset


def change_dataset(session: Session, subject: AccessSubject, dataset: Dataset, **changes: Any) -> Dataset:
    """Change title or description; both are public to whoever may discover the dataset."""
    for field in ("title", "description"):
        if changes.get(field) is not None:
            setattr(dataset, field, str(changes[field]).strip())
    audit_log.append(session, EDIT_DATASET, by=subject, target=f"dataset:{dataset.id}", dataset_id=dataset.id)
    return dataset


_WITH_RESULTS = (JobState.WAITING.value, JobState.DONE.value)


def delete_dataset(hub: Hub, subject: AccessSubject, dataset_id: str) -> None:
    """Delete a dataset's rows, keys, schema and description for good."""
    with hub.store.writing() as session:
        dataset = session.get(Dataset, dataset_id)
        if dataset is None or dataset.state == "deleted":
            raise NotFoundError("There is no such dataset, or you may not see it.", fix="check the address.")
        versions = session.scalars(select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)).all()
        files = [version.blob_id for version in versions if version.blob_id is not None]
        for version in versions:
            # With the key everything that was sealed by it is gone, in all copies and backups.
            version.wrapped_key = version.blob_id = version.size = version.source_digest = version.sealed_schema = None
            version.columns, version.schema_text, version.state = [], "", "deleted"
        dataset.state, dataset.title, dataset.description = "deleted", "", ""
        dataset.name = f"deleted {dataset.id}"
        dataset.facts = {}
        # Work that runs hears of it at its next step, and its result would no longer be kept anyway.
        session.execute(
            update(Job)
            .where(Job.dataset_id == dataset_id, Job.state.in_(("queued", "running")))
            .values(is_cancel_requested=True)
        )
        _delete_unprotected(session, dataset_id)
        session.execute(delete(AnswerHistory).where(AnswerHistory.dataset_id == dataset_id))
        session.execute(
            update(AccessRequestRecord).where(AccessRequestRecord.dataset_id == dataset_id).values(state="revoked")
        )
        session.execute(delete(AlgorithmAllowance).where(AlgorithmAllowance.dataset_id == dataset_id))
        audit_log.append(session, DELETE_DATASET, by=subject, target=f"dataset:{dataset_id}", dataset_id=dataset_id)
    # Files go after the transaction: if it failed, the rows must still be there.
    for name in files:
        hub.blobs.path(name).unlink(missing_ok=True)


def _delete_unprotected(session: Session, dataset_id: str) -> None:
    """Deny releases that wait for a decision, and delete them and what was for the eyes of owners only."""
    found = select(Job).where(Job.dataset_id == dataset_id, Job.state.in_(_WITH_RESULTS))
    jobs = list(session.scalars(found.with_for_update(of=Job)))
    for job in jobs:
        if job.state == JobState.WAITING:
            queue.end(job, JobState.DENIED, error={"problem": "The dataset was deleted.", "fix": "ask its owner."})
            notify(session, job.requester_id, f"{job.service}: the dataset was deleted.", link=f"/jobs/{job.id}")
    gone = [job.id for job in jobs if job.state == JobState.DENIED or job.plan.get("owners_only")]
    session.execute(delete(ResultRecord).where(ResultRecord.job_id.in_(gone)))
