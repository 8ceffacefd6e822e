"""What a data user does with a request: make it, answer a question about it, withdraw it, give access back."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.errors import ConflictError, ParameterError
from cloister.hub.domain import requests
from cloister.hub.domain.actions import ANSWER_REQUEST, REQUEST_ACCESS, Relation
from cloister.hub.domain.operations import Operation
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.request_file import algorithms_from
from cloister.hub.domain.requests import AccessRequest
from cloister.hub.domain.roles import Subject
from cloister.hub.services.access import telling
from cloister.hub.services.access.granting import bring_into_force
from cloister.hub.services.access.stored import held, moment, put, value_of
from cloister.hub.services.targets import Target
from cloister.hub.store import models
from cloister.hub.store.models import Dataset, new_id

__all__ = ["answer", "ask_for_access", "give_back", "withdraw"]

_OPEN = ("requested", "info_needed")


def ask_for_access(
    session: Session,
    subject: Subject,
    target: Target,
    *,
    purpose: str,
    operations: Collection[str],
    algorithms: Collection[str] = (),
    budget: Budget | None = None,
    note: str = "",
) -> models.AccessRequest:
    """Make a request for access to a dataset that the person may discover.

    Raises:
        ConflictError: if the person owns it, it is not open yet, or a request of theirs waits already.
    """
    dataset: Dataset = target.item
    if Relation.OWNER in target.relations(subject):
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
        at=moment(),
        purpose=purpose,
        operations=_operations(operations),
        algorithms=algorithms_from(list(algorithms)),
        budget=budget,
        note=note.strip(),
    )
    row = models.AccessRequest(id=request.request_id, dataset_id=dataset.id, requester_id=subject.user_id)
    put(row, request)
    session.add(row)
    session.flush()
    telling.record(session, row, REQUEST_ACCESS, by=subject, purpose=request.purpose)
    telling.tell_owners(session, row, f"{subject.name} asks for access to {telling.title(row)}.", but=subject)
    return row


def answer(session: Session, subject: Subject, request_id: str, *, note: str) -> models.AccessRequest:
    """Answer a question of an owner."""
    row = held(session, request_id)
    return _moved(
        session,
        row,
        requests.answer(value_of(row), by=subject.user_id, at=moment(), note=telling.said(note)),
        subject,
        f"{subject.name} has answered about access to {telling.title(row)}.",
    )


def withdraw(session: Session, subject: Subject, request_id: str, *, note: str = "") -> models.AccessRequest:
    """Take back a request that was not decided yet."""
    row = held(session, request_id)
    return _moved(
        session,
        row,
        requests.withdraw(value_of(row), by=subject.user_id, at=moment(), note=note.strip()),
        subject,
        f"{subject.name} has withdrawn a request for access to {telling.title(row)}.",
    )


def give_back(session: Session, subject: Subject, request_id: str, *, note: str = "") -> models.AccessRequest:
    """Give back access that was granted; the policy no longer names the person in that role."""
    row = held(session, request_id)
    request = requests.revoke(value_of(row), by=subject.user_id, owners=(), at=moment(), note=note.strip())
    _moved(session, row, request, subject, f"{subject.name} has given back the access to {telling.title(row)}.")
    bring_into_force(session, row, request, by=subject, action=ANSWER_REQUEST)
    return row


def _moved(
    session: Session, row: models.AccessRequest, request: AccessRequest, subject: Subject, words: str
) -> models.AccessRequest:
    put(row, request)
    telling.record(session, row, ANSWER_REQUEST, by=subject)
    telling.tell_owners(session, row, words, but=subject)
    return row


def _waits_already(session: Session, subject: Subject, dataset: Dataset) -> bool:
    found = select(models.AccessRequest.id).where(
        models.AccessRequest.dataset_id == dataset.id,
        models.AccessRequest.requester_id == subject.user_id,
        models.AccessRequest.state.in_(_OPEN),
    )
    return session.scalars(found.limit(1)).first() is not None


def _operations(names: Collection[str]) -> frozenset[Operation]:
    unknown = sorted(set(names) - set(Operation))
    if unknown:
        raise ParameterError("One of the operations is not known.", fix=f"use some of {', '.join(Operation)}.")
    return frozenset(Operation(name) for name in names)
