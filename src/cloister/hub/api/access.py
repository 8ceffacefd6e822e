"""Requests for access over HTTP: asked, answered, approved, rejected, revoked, withdrawn and given back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from cloister.hub.api._terms import BudgetBody, End, moment_of
from cloister.hub.domain import actions
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.store.models import AccessRequestRecord
from cloister.hub.use_cases.access import decisions, overview, records, requests
from cloister.hub.use_cases.access.overview import Which

router = GuardedRouter(tags=["access"])

Words = Annotated[str, Field(max_length=records.LONGEST_NOTE)]


class NewRequest(RequestBody):
    """What somebody wants to do with a dataset."""

    purpose: str = Field(max_length=200, examples=["research.health"])
    operations: list[str] = Field(min_length=1, max_length=30, examples=[["query.count", "query.aggregate"]])
    algorithms: list[str] = Field(default=[], max_length=30, examples=[["kmeans@1.0.0"]])
    budget: BudgetBody | None = None
    note: Words = ""


class Note(RequestBody):
    """A sentence for the other side."""

    note: Words = ""


class NewApproval(RequestBody):
    """An owner's yes."""

    role: str = Field(min_length=1, max_length=200)
    until: End
    budget: BudgetBody | None = Field(default=None, description="What the person may spend in all, ever.")
    note: Words = ""


@router.guarded("POST", "/datasets/{dataset_id}/requests", actions.REQUEST_ACCESS, status_code=201)
def ask_for_access(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: NewRequest) -> dict[str, Any]:  # noqa: ARG001
    """Ask the owner of a dataset for access."""
    with hub.store.writing() as session:
        row = requests.ask_for_access(
            session,
            access.person,
            access.object,
            purpose=body.purpose,
            operations=body.operations,
            algorithms=body.algorithms,
            budget=None if body.budget is None else body.budget.to_budget(),
            note=body.note,
        )
        return overview.see_request(session, access.person, row)


@router.guarded("GET", "/requests", actions.LIST_REQUESTS)
def list_requests(
    *,
    hub: CurrentHub,
    access: CurrentAccess,
    which: Which = Which.ALL,
    dataset: Annotated[str | None, Query(max_length=100)] = None,
    after: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = overview.PAGE,
) -> dict[str, Any]:
    """List your own requests, and those for data of yours, the newest first."""
    with hub.store.reading() as session:
        items, following = overview.list_requests(
            session, access.person, which=which, dataset_id=dataset, after=after, limit=limit
        )
    return {"schema": "cloister.access-requests/1", "items": items, "next": following}


@router.guarded("GET", "/requests/{request_id}", actions.SEE_REQUEST)
def see_request(hub: CurrentHub, access: CurrentAccess, request_id: str) -> dict[str, Any]:
    """Show a request with everything that happened to it."""
    with hub.store.reading() as session:
        return overview.see_request(session, access.person, session.get_one(AccessRequestRecord, request_id))


@router.guarded("POST", "/requests/{request_id}/question", actions.DECIDE_REQUEST)
def ask_back(hub: CurrentHub, access: CurrentAccess, request_id: str, body: Note) -> dict[str, Any]:
    """Ask the requester for more; an approval that was given before is void."""
    with hub.store.writing() as session:
        return overview.see_request(
            session, access.person, decisions.ask_back(session, access.person, request_id, note=body.note)
        )


@router.guarded("POST", "/requests/{request_id}/approval", actions.DECIDE_REQUEST)
def approve(hub: CurrentHub, access: CurrentAccess, request_id: str, body: NewApproval) -> dict[str, Any]:
    """Let the requester into a role, until a day and with a budget; where two owners are needed, be one of them."""
    with hub.store.writing() as session:
        row = decisions.approve(
            hub.store,
            session,
            access.person,
            request_id,
            role=body.role,
            until=moment_of(body.until),
            budget=None if body.budget is None else body.budget.to_budget(),
            note=body.note,
        )
        return overview.see_request(session, access.person, row)


@router.guarded("POST", "/requests/{request_id}/rejection", actions.DECIDE_REQUEST)
def reject(hub: CurrentHub, access: CurrentAccess, request_id: str, body: Note) -> dict[str, Any]:
    """Reject a request."""
    with hub.store.writing() as session:
        return overview.see_request(
            session, access.person, decisions.reject(session, access.person, request_id, note=body.note)
        )


@router.guarded("POST", "/requests/{request_id}/revocation", actions.DECIDE_REQUEST)
def revoke(hub: CurrentHub, access: CurrentAccess, request_id: str, body: Note) -> dict[str, Any]:
    """End access that was granted; queued and running work is denied at its next step."""
    with hub.store.writing() as session:
        return overview.see_request(
            session, access.person, decisions.revoke(session, access.person, request_id, note=body.note)
        )


@router.guarded("POST", "/requests/{request_id}/answer", actions.ANSWER_REQUEST)
def answer(hub: CurrentHub, access: CurrentAccess, request_id: str, body: Note) -> dict[str, Any]:
    """Answer the owner's question."""
    with hub.store.writing() as session:
        return overview.see_request(
            session, access.person, requests.answer(session, access.person, request_id, note=body.note)
        )


@router.guarded("POST", "/requests/{request_id}/withdrawal", actions.ANSWER_REQUEST)
def withdraw(hub: CurrentHub, access: CurrentAccess, request_id: str, body: Note) -> dict[str, Any]:
    """Withdraw your request before it is decided."""
    with hub.store.writing() as session:
        return overview.see_request(
            session, access.person, requests.withdraw(session, access.person, request_id, note=body.note)
        )


@router.guarded("POST", "/requests/{request_id}/return", actions.ANSWER_REQUEST)
def give_back(hub: CurrentHub, access: CurrentAccess, request_id: str, body: Note) -> dict[str, Any]:
    """Give back access that you were granted."""
    with hub.store.writing() as session:
        return overview.see_request(
            session, access.person, requests.give_back(session, access.person, request_id, note=body.note)
        )
