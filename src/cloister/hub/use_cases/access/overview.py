"""Requests as people see them: their own, and those for data that they own, with what is known to decide on."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.decisions import RequestContext, decide
from cloister.hub.domain.policy import Member, Policy, stricter_budget
from cloister.hub.domain.policy_words import OPERATIONS
from cloister.hub.domain.requests import AccessRequest, Approval, RequestState
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.store import models
from cloister.hub.store.models import Dataset, User
from cloister.hub.use_cases.access.records import value_of
from cloister.hub.use_cases.authorization import load_target
from cloister.hub.use_cases.policies._names import Names
from cloister.hub.use_cases.policies.policy_versions import newest
from cloister.hub.use_cases.sessions import subject_of

__all__ = ["Which", "list_requests", "see_request"]

PAGE = 50


class Which(StrEnum):
    """Which requests a list shows."""

    ALL = "all"
    WAITING = "waiting"
    OWN = "own"
    DECIDED = "decided"


def list_requests(
    session: Session,
    subject: AccessSubject,
    *,
    which: Which = Which.ALL,
    dataset_id: str | None = None,
    after: str | None = None,
    limit: int = PAGE,
) -> tuple[list[dict[str, Any]], str | None]:
    """Return requests that concern a person, the newest first, and the cursor of the next page.

    Args:
        session: a transaction.
        subject: who asks.
        which: all, those that wait for the person's decision, those that they made, or others for their data.
        dataset_id: only those for one dataset.
        after: the cursor that the page before gave.
        limit: how many at most.
    """
    table = models.AccessRequestRecord
    found = select(table).join(Dataset, Dataset.id == table.dataset_id).where(_filter_requests(subject, which))
    if dataset_id is not None:
        found = found.where(table.dataset_id == dataset_id)
    last = None if after is None else session.get(table, after)
    if last is not None:
        found = found.where(or_(table.created < last.created, and_(table.created == last.created, table.id < last.id)))
    page = list(session.scalars(found.order_by(table.created.desc(), table.id.desc()).limit(limit + 1)))
    items = [_describe_request(session, row, subject) for row in page[:limit]]
    return items, items[-1]["id"] if len(page) > limit else None


def see_request(session: Session, subject: AccessSubject, row: models.AccessRequestRecord) -> dict[str, Any]:
    """Return a request with its history; owners also get what each role would allow the requester."""
    found = _describe_request(session, row, subject)
    request = value_of(row)
    names = Names(session, users=[step.by for step in request.history if step.by is not None])
    found["history"] = [
        {
            "at": step.at.isoformat(timespec="seconds"),
            "by": "the hub" if step.by is None else _name_actor(step.by, row, names, is_owner=found["is_owner"]),
            "state": str(step.state),
            "note": step.note,
        }
        for step in request.history
    ]
    if found["is_owner"] and row.dataset.state != "deleted":
        found["outlook"] = _outlook(session, row, request)
        found["policy_version"] = newest(session, row.dataset).version
    return found


def _name_actor(user_id: str, row: models.AccessRequestRecord, names: Names, *, is_owner: bool) -> str:
    """Return who took a step; owners stand together before the requester, who need not know which of them it was."""
    return names.user(user_id) if is_owner or user_id == row.requester_id else "the owner"


def _filter_requests(subject: AccessSubject, which: Which) -> ColumnElement[bool]:
    table = models.AccessRequestRecord
    own = table.requester_id == subject.user_id
    owns = subject.organisation_id if AccountRole.DATA_OWNER in subject.roles else None
    theirs = Dataset.organisation_id == (owns or "")
    waits = and_(theirs, table.state == str(RequestState.REQUESTED), table.requester_id != subject.user_id)
    match which:
        case Which.OWN:
            return own
        case Which.WAITING:
            return waits
        case Which.DECIDED:
            return and_(theirs, table.state != str(RequestState.REQUESTED))
    return or_(own, theirs)


def _describe_request(session: Session, row: models.AccessRequestRecord, subject: AccessSubject) -> dict[str, Any]:
    request = value_of(row)
    target = load_target(session, "request", row.id)
    is_owner = target is not None and ObjectRelation.OWNER in target.relations(subject)
    approval = request.approvals[-1] if request.approvals else None
    requester = session.get(User, row.requester_id)
    return {
        "schema": "cloister.access-request/1",
        "id": row.id,
        "dataset": {"id": row.dataset_id, "title": row.dataset.title or row.dataset.name},
        "requester": _person(requester),
        "state": str(request.state),
        "purpose": request.purpose,
        "operations": [
            {"name": str(item), "meaning": OPERATIONS[item]} for item in OPERATIONS if item in request.operations
        ],
        "algorithms": [str(item) for item in request.algorithms],
        "budget": None if request.budget is None else request.budget.to_dict(),
        "needs_two": request.two_person,
        "approvals_missing": request.approvals_missing,
        "granted": None
        if approval is None
        else {
            **({"role": approval.role} if is_owner else {}),
            "until": approval.until.isoformat(),
            "budget": None if approval.budget is None else approval.budget.to_dict(),
            "gives": _limit(session, row, approval, request),
            "is_in_force": request.state is RequestState.APPROVED and approval.until > datetime.now(UTC),
        },
        "ends": request.ends.isoformat(),
        "created": row.created.isoformat(),
        "message": request.history[0].note if request.history else "",
        "is_own": row.requester_id == subject.user_id,
        "is_owner": is_owner,
        "may_decide": is_owner
        and request.state is RequestState.REQUESTED
        and subject.user_id != row.requester_id
        and subject.user_id not in {item.by for item in request.approvals},
    }


def _limit(
    session: Session, row: models.AccessRequestRecord, approval: Approval, request: AccessRequest
) -> dict[str, Any] | None:
    """Return what a person may really spend: what was granted, or less where the role now allows less."""
    role = next((item for item in newest(session, row.dataset).roles if item.name == approval.role), None)
    most = None if role is None else role.most_for_one(request.operations)
    other = approval.budget is not None and approval.budget.measure != "epsilon"
    limit = approval.budget if other else stricter_budget(approval.budget, most)
    return None if limit is None else limit.to_dict()


def _person(user: User | None) -> dict[str, Any]:
    if user is None:
        return {"name": "", "display_name": "", "organisation": None}
    organisation = None if user.organisation is None else user.organisation.name
    return {"name": user.name, "display_name": user.display_name, "organisation": organisation}


def _outlook(session: Session, row: models.AccessRequestRecord, request: AccessRequest) -> list[dict[str, Any]]:
    """Return for each role of the policy whether it would allow what was asked for, and why not."""
    user = session.get_one(User, row.requester_id)
    policy = newest(session, row.dataset)
    return [
        {
            "role": role.name,
            "operations": _in_role(policy, role.name, subject_of(user), row, request),
            "most": None if (most := role.most_for_one(request.operations)) is None else most.to_dict(),
        }
        for role in policy.roles
    ]


def _in_role(
    policy: Policy, role: str, subject: AccessSubject, row: models.AccessRequestRecord, request: AccessRequest
) -> list[dict[str, Any]]:
    granted = policy.with_member(role, Member(user_id=subject.user_id))
    answers = []
    for operation in (item for item in OPERATIONS if item in request.operations):
        decisions = [
            decide(
                granted,
                subject,
                operation,
                RequestContext(
                    now=datetime.now(UTC),
                    owner_organisation=row.dataset.organisation_id,
                    role=role,
                    purpose=request.purpose,
                    algorithm=algorithm,
                ),
            )
            for algorithm in request.algorithms or (None,)
        ]
        refused = next((item for item in decisions if not item.allowed), None)
        answers.append(
            {
                "name": str(operation),
                "meaning": OPERATIONS[operation],
                "allowed": refused is None,
                "reason": decisions[0].reason if refused is None else refused.reason,
            }
        )
    return answers
