"""Making a dataset and changing what its owner says about it."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.accounting.ledger.checks import check_name
from cloister.errors import ForbiddenError
from cloister.hub.domain.actions import CREATE_DATASET, EDIT_DATASET
from cloister.hub.domain.policy_file import policy_to_dict
from cloister.hub.domain.policy_templates import private_by_default
from cloister.hub.domain.roles import Subject
from cloister.hub.services import auditing
from cloister.hub.store.models import Dataset, PolicyVersion, new_id


def create_dataset(session: Session, subject: Subject, *, name: str, title: str = "", description: str = "") -> Dataset:
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
    auditing.append(session, CREATE_DATASET, by=subject, target=f"dataset:{dataset.id}", dataset_id=dataset.id)
    return dataset


def change_dataset(session: Session, subject: Subject, dataset: Dataset, **changes: Any) -> Dataset:
    """Change title or description; both are public to whoever may discover the dataset."""
    for field in ("title", "description"):
        if changes.get(field) is not None:
            setattr(dataset, field, str(changes[field]).strip())
    auditing.append(session, EDIT_DATASET, by=subject, target=f"dataset:{dataset.id}", dataset_id=dataset.id)
    return dataset
