"""From a decided request to the policy: approval, revocation and expiry give the next version."""

from __future__ import annotations

from sqlalchemy.orm import Session

from cloister.errors import PolicyError
from cloister.hub.domain.actions import Action
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.requests import AccessRequest, RequestState, grant
from cloister.hub.domain.roles import Subject
from cloister.hub.services.policies.checking import check_fits
from cloister.hub.services.policies.keeping import keep, newest
from cloister.hub.services.policies.limiting import check_budget, limit_person
from cloister.hub.store import models
from cloister.hub.store.database import Store

__all__ = ["bring_into_force", "let_in"]


def let_in(
    store: Store, session: Session, row: models.AccessRequest, request: AccessRequest, *, by: Subject, action: Action
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
    limit_person(store, session, dataset, row.requester_id, approval.budget)
    return after


def bring_into_force(
    session: Session, row: models.AccessRequest, request: AccessRequest, *, by: Subject | None, action: Action
) -> None:
    """Take the requester of a revoked or expired request out of its role, if they are still in it."""
    before = newest(session, row.dataset)
    try:
        after = grant(before, request)
    except PolicyError:
        return
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
