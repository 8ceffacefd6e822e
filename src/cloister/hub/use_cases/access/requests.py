"""What a data user does with a request: make it, answer a question about it, withdraw it, give access back."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.errors import ConflictError, ParameterError
from cloister.hub.domain import requests
from cloister.hub.domain.actions import ANSWER_REQUEST, REQUEST_ACCESS, ObjectRelation
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.requests import AccessRequest, algorithms_from
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.store import models
from cloister.hub.store.models import Dataset, exact_now, new_id
from cloister.hub.use_cases.access import records
from cloister.hub.use_cases.access.decisions import bring_into_force
from cloister.hub.use_cases.access.records import lock_request, store_request, value_of
from cloister.hub.use_cases.authorization import ActionTarget

__all__ = ["answer", "ask_for_access", "give_back", "withdraw"]

_OPEN = ("requested", "info_needed")


def ask_for_access(
    session: Session,
    subject: AccessSubject,
    target: ActionTarget,
    *,
    purpose: str,
    operations: Collection[str],
    algorithms: Collection[str] = (),
    budget: Budget | None = None,
    note: str = "",
) -> models.AccessRequestRecord:
    """Make a request for access to a dataset that the person may discover.

    Raises:
        ConflictError: if the person owns it, it is not open yet, or a request of theirs waits already.
    """
    dataset: Dataset = target.item
    if ObjectRelation.OWNER in target.relations(subject):
        raise ConflictError("You own this dataset.", fix="put yourself into one of its roles, if that is meant.")
    if dataset.state != "ready":
        raise ConflictError("This dataset is not open for questions yet.", fix="come back later.")
    if _waits_already(session, subject, dataset):
        raise ConflictError(
            "A request of yours for this dataset is open already.", fix="answer or withdraw it on the page Access."
        )
    request = requests.submit(
        new_id("req"),
        policy=target.policy or Policy(object_id=dataset.id),
        requester=subject.user_id,
        at=exact_now(),
        purpose=purpose,
        operations=_operations(operations),
        algorithms=algorithms_from(list(algorithms)),
        budget=budget,
        note=note.strip(),
    )
    row = models.AccessRequestRecord(id=request.request_id, dataset_id=dataset.id, requester_id=subject.user_id)
    store_request(row, request)
    session.add(row)
    session.flush()
    records.record(session, row, REQUEST_ACCESS, by=subject, purpose=request.purpose)
    records.tell_owners(session, row, f"{subject.name} asks for access to {records.title(row)}.", but=subject)
    return row


def answer(session: Session, subject: AccessSubject, request_id: str, *, note: str) -> models.AccessRequestRecord:
    """Answer a question of an owner."""
    row = lock_request(session, request_id)
    return _keep_step(
        session,
        row,
        requests.answer(value_of(row), by=subject.user_id, at=exact_now(), note=records.require_note(note)),
        subject,
        f"{subject.name} has answered about access to {records.title(row)}.",
    )


def withdraw(
    session: Session, subject: AccessSubject, request_id: str, *, note: str = ""
) -> models.AccessRequestRecord:
    """Take back a request that was not decided yet."""
    row = lock_request(session, request_id)
    return _keep_step(
        session,
        row,
        requests.withdraw(value_of(row), by=subject.user_id, at=exact_now(), note=note.strip()),
        subject,
        f"{subject.name} has withdrawn a request for access to {records.title(row)}.",
    )


def give_back(
    session: Session, subject: AccessSubject, request_id: str, *, note: str = ""
) -> models.AccessRequestRecord:
    """Give back access that was granted; the policy no longer names the person in that role."""
    row = lock_request(session, request_id)
    request = requests.revoke(value_of(row), by=subject.user_id, owners=(), at=exact_now(), note=note.strip())
    _keep_step(session, row, request, subject, f"{subject.name} has given back the access to {records.title(row)}.")
    bring_into_force(session, row, request, by=subject, action=ANSWER_REQUEST)
    return row


def _keep_step(
    session: Session, row: models.AccessRequestRecord, request: AccessRequest, subject: AccessSubject, words: str
) -> models.AccessRequestRecord:
    store_request(row, request)
    records.record(session, row, ANSWER_REQUEST, by=subject)
    records.tell_owners(session, row, words, but=subject)
    return row


def _waits_already(session: Session, subject: AccessSubject, dataset: Dataset) -> bool:
    found = select(models.AccessRequestRecord.id).where(
        models.AccessRequestRecord.dataset_id == dataset.id,
        models.AccessRequestRecord.requester_id == subject.user_id,
        models.AccessRequestRecord.state.in_(_OPEN),
    )
    return session.scalars(found.limit(1)).first() is not None


def _operations(names: Collection[str]) -> frozenset[PolicyOperation]:
    unknown = sorted(set(names) - set(PolicyOperation))
    if unknown:
        raise ParameterError("One of the operations is not known.", fix=f"use some of {', '.join(PolicyOperation)}.")
    return frozenset(PolicyOperation(name) for name in names)
