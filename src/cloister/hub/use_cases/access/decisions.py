"""What owners do with a request: ask back, approve, reject, revoke; and what the clock does: end what has expired.

A decided request changes the policy: approval, revocation and expiry give its next version.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.errors import ConflictError, PolicyError
from cloister.hub.domain import requests
from cloister.hub.domain.actions import DECIDE_REQUEST, Action
from cloister.hub.domain.policy import Policy, stricter_budget
from cloister.hub.domain.policy_words import budget_words, moment_words
from cloister.hub.domain.requests import AccessRequest, RequestState, grant
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.store import models
from cloister.hub.store.database import Store
from cloister.hub.store.models import exact_now
from cloister.hub.use_cases._spending_limits import check_budget, limit_person
from cloister.hub.use_cases.access import records
from cloister.hub.use_cases.access.records import lock_request, store_request, value_of
from cloister.hub.use_cases.policies.policy_versions import check_fits, keep, newest

__all__ = ["approve", "ask_back", "bring_into_force", "expire_due", "let_in", "reject", "revoke"]


def let_in(
    store: Store,
    session: Session,
    row: models.AccessRequestRecord,
    request: AccessRequest,
    *,
    by: AccessSubject,
    action: Action,
) -> Policy:
    """Put the requester of an approved request into its role, and limit them in the ledger."""
    dataset, approval = row.dataset, request.approvals[-1]
    check_budget(store, session, dataset, approval.budget)
    before = newest(session, dataset)
    after = grant(before, request)
    check_fits(store, session, dataset, after, before=before)
    keep(
        session,
        dataset,
        after,
        by=by,
        before=before,
        what="grant",
        action=action,
        told=(row.requester_id,),
        role=approval.role,
        person=row.requester_id,
    )
    # In the ledger as well as in the policy: the ledger's limit holds although a later policy may forget it.
    limit_person(store, session, dataset, row.requester_id, approval.budget)
    return after


def bring_into_force(
    session: Session,
    row: models.AccessRequestRecord,
    request: AccessRequest,
    *,
    by: AccessSubject | None,
    action: Action,
) -> None:
    """Take the requester of a revoked or expired request out of its role, if they are still in it."""
    before = newest(session, row.dataset)
    try:
        after = grant(before, request)
    except PolicyError:
        return
    # Somebody may have taken the person out already, and a version that changes nothing would only confuse.
    if after.roles == before.roles:
        return
    what = "expire" if request.state is RequestState.EXPIRED else "revoke"
    keep(
        session,
        row.dataset,
        after,
        by=by,
        before=before,
        what=what,
        action=action,
        told=(row.requester_id,),
        person=row.requester_id,
    )


_ENDS = ("requested", "info_needed", "approved")


def ask_back(session: Session, subject: AccessSubject, request_id: str, *, note: str) -> models.AccessRequestRecord:
    """Ask the requester something; an approval that was given before is void."""
    row = _lock_open_request(session, request_id)
    owners = {subject.user_id}
    store_request(
        row,
        requests.ask(value_of(row), by=subject.user_id, owners=owners, at=exact_now(), note=records.require_note(note)),
    )
    records.record(session, row, DECIDE_REQUEST, by=subject, what="question")
    records.tell_requester(session, row, f"The owner of {records.title(row)} has a question about your request.")
    return row


def approve(
    store: Store,
    session: Session,
    subject: AccessSubject,
    request_id: str,
    *,
    role: str,
    until: datetime,
    budget: Budget | None = None,
    note: str = "",
) -> models.AccessRequestRecord:
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
    row = _lock_open_request(session, request_id)
    before = value_of(row)
    most = newest(session, row.dataset).role(role).most_for_one(before.operations)
    check_budget(store, session, row.dataset, budget)
    # An owner can give less than the role's own limit, and never more.
    given = budget if budget is None or budget.measure != "epsilon" else stricter_budget(budget, most)
    request = requests.approve(
        before,
        by=subject.user_id,
        owners={subject.user_id},
        at=exact_now(),
        role=role,
        until=until,
        budget=given,
        note=note.strip(),
    )
    store_request(row, request)
    records.record(
        session, row, DECIDE_REQUEST, by=subject, what="approval", role=role, until=until.isoformat(), **_cost(given)
    )
    if request.state is not RequestState.APPROVED:
        words = f"{subject.name} has approved access to {records.title(row)}; a second owner has to."
        records.tell_owners(session, row, words, but=subject)
        return row
    let_in(store, session, row, request, by=subject, action=DECIDE_REQUEST)
    limit = most if given is None else given
    spend = "" if limit is None else f", with {budget_words(limit)} in all"
    records.tell_requester(session, row, f"You have access to {records.title(row)} until {moment_words(until)}{spend}.")
    return row


def reject(session: Session, subject: AccessSubject, request_id: str, *, note: str = "") -> models.AccessRequestRecord:
    """Reject a request; one owner is enough."""
    row = _lock_open_request(session, request_id)
    owners = {subject.user_id}
    store_request(
        row, requests.reject(value_of(row), by=subject.user_id, owners=owners, at=exact_now(), note=note.strip())
    )
    records.record(session, row, DECIDE_REQUEST, by=subject, what="rejection")
    records.tell_requester(session, row, f"Your request for access to {records.title(row)} was rejected.")
    return row


def revoke(session: Session, subject: AccessSubject, request_id: str, *, note: str = "") -> models.AccessRequestRecord:
    """End access that was granted, at once: work that is queued or running is denied at its next step."""
    row = _lock_open_request(session, request_id)
    owners = {subject.user_id}
    request = requests.revoke(value_of(row), by=subject.user_id, owners=owners, at=exact_now(), note=note.strip())
    store_request(row, request)
    records.record(session, row, DECIDE_REQUEST, by=subject, what="revocation")
    bring_into_force(session, row, request, by=subject, action=DECIDE_REQUEST)
    records.tell_requester(session, row, f"Your access to {records.title(row)} was ended.")
    return row


def expire_due(session: Session) -> int:
    """Note down what has run out, and return how much that was. The policy has denied it since its very moment."""
    now = exact_now()
    due = select(models.AccessRequestRecord).where(
        models.AccessRequestRecord.state.in_(_ENDS), models.AccessRequestRecord.expires <= now
    )
    count = 0
    # Locked rows are being decided by somebody else, and are looked at the next time.
    for row in session.scalars(due.with_for_update(of=models.AccessRequestRecord, skip_locked=True)):
        before = value_of(row)
        request = requests.expire(before, at=now)
        store_request(row, request)
        records.record(session, row, "access.expire", by=None)
        if before.state is RequestState.APPROVED and row.dataset.state != "deleted":
            bring_into_force(session, row, request, by=None, action=DECIDE_REQUEST)
        records.tell_requester(session, row, _run_out(row, before))
        count += 1
    return count


def _lock_open_request(session: Session, request_id: str) -> models.AccessRequestRecord:
    row = lock_request(session, request_id)
    if row.dataset.state == "deleted":
        raise ConflictError("The dataset was deleted.", fix="nothing is left to decide.")
    return row


def _cost(budget: Budget | None) -> dict[str, object]:
    return {} if budget is None else {"budget": budget.to_dict()}


def _run_out(row: models.AccessRequestRecord, before: AccessRequest) -> str:
    what = "Your access" if before.state is RequestState.APPROVED else "Your request for access"
    return f"{what} to {records.title(row)} has expired."
