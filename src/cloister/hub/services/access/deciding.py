"""What owners do with a request: ask back, approve, reject, revoke; and what the clock does: expire."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.errors import ConflictError
from cloister.hub.domain import requests
from cloister.hub.domain.actions import DECIDE_REQUEST
from cloister.hub.domain.policy_words import budget_words, moment_words
from cloister.hub.domain.requests import AccessRequest, RequestState
from cloister.hub.domain.roles import Subject
from cloister.hub.domain.rules import smaller
from cloister.hub.services.access import telling
from cloister.hub.services.access.granting import bring_into_force, let_in
from cloister.hub.services.access.stored import held, moment, put, value_of
from cloister.hub.services.policies.keeping import newest
from cloister.hub.services.policies.limiting import check_budget
from cloister.hub.store import models
from cloister.hub.store.database import Store

__all__ = ["approve", "ask_back", "expire_due", "reject", "revoke"]

_ENDS = ("requested", "info_needed", "approved")


def ask_back(session: Session, subject: Subject, request_id: str, *, note: str) -> models.AccessRequest:
    """Ask the requester something; an approval that was given before is void."""
    row = _held(session, request_id)
    owners = {subject.user_id}
    put(row, requests.ask(value_of(row), by=subject.user_id, owners=owners, at=moment(), note=telling.said(note)))
    telling.record(session, row, DECIDE_REQUEST, by=subject, what="question")
    telling.tell_requester(session, row, f"The owner of {telling.title(row)} has a question about your request.")
    return row


def approve(
    store: Store,
    session: Session,
    subject: Subject,
    request_id: str,
    *,
    role: str,
    until: datetime,
    budget: Budget | None = None,
    note: str = "",
) -> models.AccessRequest:
    """Approve a request. Once enough owners have, the requester is in the role: the policy has a new version.

    Args:
        store: the hub's database.
        session: a writing session of it.
        subject: the owner.
        request_id: the request.
        role: a role of the dataset's policy.
        until: when the access ends.
        budget: what the person may spend of the dataset in all; None leaves it to the role. Where the role allows
            less, that is what is granted, kept and told.
        note: for the requester.
    """
    row = _held(session, request_id)
    before = value_of(row)
    most = newest(session, row.dataset).role(role).most_for_one(before.operations)
    check_budget(store, session, row.dataset, budget)
    given = budget if budget is None or budget.measure != "epsilon" else smaller(budget, most)
    request = requests.approve(
        before,
        by=subject.user_id,
        owners={subject.user_id},
        at=moment(),
        role=role,
        until=until,
        budget=given,
        note=note.strip(),
    )
    put(row, request)
    telling.record(
        session, row, DECIDE_REQUEST, by=subject, what="approval", role=role, until=until.isoformat(), **_cost(given)
    )
    if request.state is not RequestState.APPROVED:
        words = f"{subject.name} has approved access to {telling.title(row)}; a second owner has to."
        telling.tell_owners(session, row, words, but=subject)
        return row
    let_in(store, session, row, request, by=subject, action=DECIDE_REQUEST)
    limit = most if given is None else given
    spend = "" if limit is None else f", with {budget_words(limit)} in all"
    telling.tell_requester(session, row, f"You have access to {telling.title(row)} until {moment_words(until)}{spend}.")
    return row


def reject(session: Session, subject: Subject, request_id: str, *, note: str = "") -> models.AccessRequest:
    """Reject a request; one owner is enough."""
    row = _held(session, request_id)
    owners = {subject.user_id}
    put(row, requests.reject(value_of(row), by=subject.user_id, owners=owners, at=moment(), note=note.strip()))
    telling.record(session, row, DECIDE_REQUEST, by=subject, what="rejection")
    telling.tell_requester(session, row, f"Your request for access to {telling.title(row)} was rejected.")
    return row


def revoke(session: Session, subject: Subject, request_id: str, *, note: str = "") -> models.AccessRequest:
    """End access that was granted, at once: work that is queued or running is denied at its next step."""
    row = _held(session, request_id)
    owners = {subject.user_id}
    request = requests.revoke(value_of(row), by=subject.user_id, owners=owners, at=moment(), note=note.strip())
    put(row, request)
    telling.record(session, row, DECIDE_REQUEST, by=subject, what="revocation")
    bring_into_force(session, row, request, by=subject, action=DECIDE_REQUEST)
    telling.tell_requester(session, row, f"Your access to {telling.title(row)} was ended.")
    return row


def expire_due(session: Session) -> int:
    """Note down what has run out, and return how much that was. The policy has denied it since its very moment."""
    now = moment()
    due = select(models.AccessRequest).where(models.AccessRequest.state.in_(_ENDS), models.AccessRequest.expires <= now)
    count = 0
    for row in session.scalars(due.with_for_update(of=models.AccessRequest, skip_locked=True)):
        before = value_of(row)
        request = requests.expire(before, at=now)
        put(row, request)
        telling.record(session, row, "access.expire", by=None)
        if before.state is RequestState.APPROVED and row.dataset.state != "deleted":
            bring_into_force(session, row, request, by=None, action=DECIDE_REQUEST)
        telling.tell_requester(session, row, _run_out(row, before))
        count += 1
    return count


def _held(session: Session, request_id: str) -> models.AccessRequest:
    row = held(session, request_id)
    if row.dataset.state == "deleted":
        raise ConflictError("The dataset was deleted.", fix="nothing is left to decide.")
    return row


def _cost(budget: Budget | None) -> dict[str, object]:
    return {} if budget is None else {"budget": budget.to_dict()}


def _run_out(row: models.AccessRequest, before: AccessRequest) -> str:
    what = "Your access" if before.state is RequestState.APPROVED else "Your request for access"
    return f"{what} to {telling.title(row)} has expired."
