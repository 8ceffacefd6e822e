from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from cloister.accounting.budget import Budget
from cloister.errors import ConflictError, ParameterError, PolicyError
from cloister.hub.domain import requests
from cloister.hub.domain.decisions import RequestContext, decide
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import Member
from cloister.hub.domain.policy_edits import research_by_request
from cloister.hub.domain.requests import AccessRequest, RequestState
from cloister.hub.domain.roles import AccessSubject

POLICY = research_by_request("D1")
OWNERS = frozenset({"o1", "o2"})
T0 = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = T0 + timedelta(days=365)
HALF = Budget(epsilon=Fraction(1, 2))


def at(days: int) -> datetime:
    return T0 + timedelta(days=days)


def submitted(*, two_person: bool = False) -> AccessRequest:
    return requests.submit(
        "r1",
        policy=replace(POLICY, two_person=two_person),
        requester="u1",
        at=T0,
        purpose="research.health",
        operations=[PolicyOperation.QUERY_COUNT],
        budget=HALF,
    )


def approved(request: AccessRequest | None = None, *, by: str = "o1", day: int = 1) -> AccessRequest:
    return requests.approve(
        request or submitted(), by=by, owners=OWNERS, at=at(day), role="researchers", until=UNTIL, budget=HALF
    )


STEPS: dict[RequestState, Callable[[AccessRequest], AccessRequest]] = {
    RequestState.INFO_NEEDED: lambda request: requests.ask(request, by="o1", owners=OWNERS, at=at(400), note="why?"),
    RequestState.REQUESTED: lambda request: requests.answer(request, by="u1", at=at(400), note="because"),
    RequestState.APPROVED: lambda request: requests.approve(
        request, by="o1", owners=OWNERS, at=at(400), role="researchers", until=at(500)
    ),
    RequestState.REJECTED: lambda request: requests.reject(request, by="o1", owners=OWNERS, at=at(400)),
    RequestState.EXPIRED: lambda request: requests.expire(request, at=at(400)),
    RequestState.REVOKED: lambda request: requests.revoke(request, by="o1", owners=OWNERS, at=at(400)),
    RequestState.WITHDRAWN: lambda request: requests.withdraw(request, by="u1", at=at(400)),
}
LEGAL = {
    RequestState.REQUESTED: {"info_needed", "approved", "rejected", "expired", "withdrawn"},
    RequestState.INFO_NEEDED: {"requested", "rejected", "expired", "withdrawn"},
    RequestState.APPROVED: {"expired", "revoked"},
}


@pytest.mark.parametrize("state", list(RequestState))
def test_only_the_legal_transitions_exist(state: RequestState) -> None:
    request = replace(approved(), state=state)
    if state is not RequestState.APPROVED:
        request = replace(request, approvals=())
    for target, step in STEPS.items():
        if target in LEGAL.get(state, set()):
            moved = step(request)
            assert (moved.state, moved.history[-1].state, moved.history[-1].at) == (target, target, at(400))
            assert moved.history[:-1] == request.history
        else:
            with pytest.raises(ConflictError, match=f"is {state} cannot become {target}"):
                step(request)


def test_the_usual_way() -> None:
    request = submitted()
    assert (request.is_open, request.approvals_missing) == (True, 1)
    asked = requests.ask(request, by="o1", owners=OWNERS, at=at(1), note="Which disease?")
    answered = requests.answer(asked, by="u1", at=at(2), note="Cancer.")
    done = approved(answered, day=3)
    assert [(step.by, step.state) for step in done.history] == [
        ("u1", "requested"),
        ("o1", "info_needed"),
        ("u1", "requested"),
        ("o1", "approved"),
    ]
    assert (done.is_open, done.approvals_missing, done.ends) == (False, 0, UNTIL)


def test_access_begins_and_ends_with_the_request() -> None:
    def may(policy: object, day: int) -> bool:
        context = RequestContext(now=at(day), purpose="research.health")
        return decide(policy, AccessSubject(user_id="u1", name="U1"), PolicyOperation.QUERY_COUNT, context).allowed  # type: ignore[arg-type]

    granted = requests.grant(POLICY, approved())
    assert not may(POLICY, 2)
    assert may(granted, 2)
    assert not may(granted, 365)
    assert granted.role("researchers").members.entry("u1") == Member(user_id="u1", until=UNTIL, budget=HALF)
    revoked = requests.revoke(approved(), by="o2", owners=OWNERS, at=at(5))
    assert not may(requests.grant(granted, revoked), 5)
    expired = requests.expire(approved(), at=UNTIL)
    assert requests.grant(granted, expired).role("researchers").members.users == ()
    renewed = granted.with_member("researchers", Member(user_id="u1", until=at(900)))
    assert requests.grant(renewed, expired) is renewed
    assert requests.grant(renewed, revoked).role("researchers").members.users == ()


def test_only_an_approved_request_grants() -> None:
    with pytest.raises(ConflictError, match="approve it first"):
        requests.grant(POLICY, submitted())
    with pytest.raises(ConflictError, match="approve it first"):
        requests.grant(research_by_request("D2"), approved())
    with pytest.raises(ConflictError, match="have the owners decide"):
        requests.grant(POLICY, approved(submitted(two_person=True)))
    with pytest.raises(PolicyError, match="add a role"):
        requests.grant(replace(POLICY, roles=()), approved())


def test_two_different_owners_approve_the_same() -> None:
    first = approved(submitted(two_person=True))
    assert (first.state, first.approvals_missing) == (RequestState.REQUESTED, 1)
    with pytest.raises(ConflictError, match="ask a second owner"):
        approved(first, day=2)
    with pytest.raises(ConflictError, match="approve the same terms"):
        requests.approve(first, by="o2", owners=OWNERS, at=at(2), role="researchers", until=at(30))
    second = approved(first, by="o2", day=2)
    assert (second.state, [approval.by for approval in second.approvals]) == (RequestState.APPROVED, ["o1", "o2"])


def test_a_question_voids_the_first_approval() -> None:
    first = approved(submitted(two_person=True))
    asked = requests.ask(first, by="o2", owners=OWNERS, at=at(2), note="why?")
    answered = requests.answer(asked, by="u1", at=at(3), note="because")
    assert answered.approvals_missing == 2
    assert approved(answered, by="o2", day=4).state is RequestState.REQUESTED


def test_nobody_approves_their_own_request_or_decides_without_owning() -> None:
    owners = OWNERS | {"u1"}
    with pytest.raises(ConflictError, match="ask another owner"):
        requests.approve(submitted(), by="u1", owners=owners, at=at(1), role="researchers", until=UNTIL)
    for step in (requests.reject, requests.ask):
        with pytest.raises(ConflictError, match="ask an owner of D1"):
            step(submitted(), by="u2", owners=OWNERS, at=at(1), note="")
    with pytest.raises(ConflictError, match="ask an owner of D1"):
        requests.approve(submitted(), by="u2", owners=OWNERS, at=at(1), role="researchers", until=UNTIL)
    with pytest.raises(ConflictError, match="ask an owner of D1"):
        requests.revoke(approved(), by="u2", owners=OWNERS, at=at(2))
    with pytest.raises(ConflictError, match="log in as that person"):
        requests.withdraw(submitted(), by="o1", at=at(1))


def test_the_requester_may_give_access_back() -> None:
    assert requests.revoke(approved(), by="u1", owners=OWNERS, at=at(2)).state is RequestState.REVOKED


def test_time_moves_forward() -> None:
    with pytest.raises(ConflictError, match="present time"):
        requests.withdraw(submitted(), by="u1", at=at(-1))
    with pytest.raises(ConflictError, match="a later end"):
        requests.approve(submitted(), by="o1", owners=OWNERS, at=at(1), role="researchers", until=at(1))
    with pytest.raises(ConflictError, match="revoke the access"):
        requests.expire(approved(), at=at(300))
    with pytest.raises(ConflictError, match="reject the request"):
        requests.expire(submitted(), at=at(89))
    assert requests.expire(submitted(), at=T0 + requests.PENDING).state is RequestState.EXPIRED
    with pytest.raises(ParameterError, match="datetime.now"):
        requests.withdraw(submitted(), by="u1", at=datetime(2027, 1, 1))


@pytest.mark.parametrize(
    "operations", [[], [PolicyOperation.POLICY_EDIT], [PolicyOperation.QUERY_COUNT, PolicyOperation.DELETE]]
)
def test_a_request_is_for_operations_on_data(operations: list[PolicyOperation]) -> None:
    with pytest.raises(ParameterError, match="query.count"):
        requests.submit("r", policy=POLICY, requester="u", at=T0, purpose="teaching", operations=operations)


def test_a_request_needs_a_purpose() -> None:
    with pytest.raises(ParameterError, match="joined by dots"):
        requests.submit("r", policy=POLICY, requester="u", at=T0, purpose="", operations=[PolicyOperation.QUERY_COUNT])
