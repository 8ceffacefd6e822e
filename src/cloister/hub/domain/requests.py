"""Requests for access: states, who may bring a request to the next, when undecided ones lapse, and their JSON form.

::

    requested --ask--> info_needed --answer--> requested
    requested --approve--> approved (by two owners, where the policy wants two)
    requested, info_needed --reject, withdraw, expire--> rejected, withdrawn, expired
    approved --revoke, expire--> revoked, expired

Every transition is a pure function from a request to the next one, and is kept in its history. Nobody approves a
request of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import PlainValidator

from cloister.accounting.budget import Budget
from cloister.errors import CloisterError, ConflictError, ParameterError
from cloister.hub.domain.documents import (
    Document,
    Entries,
    Listed,
    Moment,
    Several,
    Text,
    Truth,
    WrittenAs,
    choice,
    mistake,
    require,
)
from cloister.hub.domain.members import Member
from cloister.hub.domain.operations import NAMED_ONLY, PolicyOperation
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.policy_rules import Algorithm, AlgorithmReference, write_operations
from cloister.hub.domain.terms import check_purpose

__all__ = [
    "PENDING",
    "AccessRequest",
    "Approval",
    "RequestState",
    "Transition",
    "algorithms_from",
    "answer",
    "approve",
    "ask",
    "expire",
    "grant",
    "history_to_list",
    "reject",
    "request_from_dict",
    "request_to_dict",
    "revoke",
    "submit",
    "withdraw",
]


PENDING = timedelta(days=90)
"""How long a request waits for a decision before it expires."""


class RequestState(StrEnum):
    """Where a request stands."""

    REQUESTED = "requested"
    INFO_NEEDED = "info_needed"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    REVOKED = "revoked"
    WITHDRAWN = "withdrawn"


_OPEN = frozenset({RequestState.REQUESTED, RequestState.INFO_NEEDED})
_BEFORE = {
    RequestState.INFO_NEEDED: frozenset({RequestState.REQUESTED}),
    RequestState.REQUESTED: frozenset({RequestState.INFO_NEEDED}),
    RequestState.APPROVED: frozenset({RequestState.REQUESTED}),
    RequestState.REJECTED: _OPEN,
    RequestState.WITHDRAWN: _OPEN,
    RequestState.EXPIRED: _OPEN | {RequestState.APPROVED},
    RequestState.REVOKED: frozenset({RequestState.APPROVED}),
}


def _read_budget(values: dict[str, Any]) -> Budget:
    try:
        return Budget.from_dict(values)
    except (TypeError, CloisterError):
        raise mistake("this is not a budget.", fix="write it as Budget.to_dict() does.") from None


def _check_note(value: object) -> str:
    if not isinstance(value, str):
        raise mistake("this is not a text.", fix="write a text in quotes.")
    return value


_State: TypeAlias = Annotated[RequestState, choice(RequestState)]
_Operations: TypeAlias = Annotated[
    frozenset[PolicyOperation],
    WrittenAs(Listed[Annotated[PolicyOperation, choice(PolicyOperation)]], frozenset, write_operations),
]
_Budget: TypeAlias = Annotated[Budget, WrittenAs(Entries[Any], _read_budget, Budget.to_dict)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Document):
    """One owner's yes: to which role, until when and with how much of the budget."""

    by: Text
    at: Moment
    role: Text
    until: Moment
    budget: _Budget | None = None

    def agrees(self, other: Approval) -> bool:
        """Return whether another owner said yes to the same."""
        return (self.role, self.until, self.budget) == (other.role, other.until, other.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(Document):
    """One step in the life of a request; ``by`` is None for the clock."""

    at: Moment
    by: Text | None = None
    state: _State
    note: Annotated[str, PlainValidator(_check_note)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest(Document):
    """A request for access to one object."""

    called: ClassVar = "The request"
    aliases: ClassVar = {"object_id": "object"}

    request_id: Text
    object_id: Text
    requester: Text
    purpose: Text
    operations: _Operations
    algorithms: Several[Algorithm] = ()
    budget: _Budget | None = None
    two_person: Truth = False
    state: _State = RequestState.REQUESTED
    approvals: Several[Approval] = ()
    history: Several[Transition] = ()

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields; these have to be there, or a damaged request would be approved by fewer, or for more."""
        for name in ("two_person", "algorithms", "approvals"):
            require(values, name)
        return values

    @property
    def is_open(self) -> bool:
        """Return whether a decision is still to be made."""
        return self.state in _OPEN

    @property
    def approvals_missing(self) -> int:
        """Return how many owners have yet to say yes."""
        return max(0, 1 + self.two_person - len(self.approvals)) if self.is_open else 0

    @property
    def ends(self) -> datetime:
        """Return when the request, or the access that it gave, expires by itself."""
        if self.state is RequestState.APPROVED:
            return self.approvals[-1].until
        return self.history[0].at + PENDING


def submit(
    request_id: str,
    *,
    policy: Policy,
    requester: str,
    at: datetime,
    purpose: str,
    operations: Collection[PolicyOperation],
    algorithms: Collection[AlgorithmReference] = (),
    budget: Budget | None = None,
    note: str = "",
) -> AccessRequest:
    """Return a new request; whether two owners have to approve it is taken from the policy.

    Raises:
        ParameterError: if the purpose is malformed, or no operation that can be asked for is named.
    """
    wanted = frozenset(PolicyOperation(operation) for operation in operations)
    if not wanted or wanted & (NAMED_ONLY - {PolicyOperation.EXPORT_RAW}):
        raise ParameterError(
            "A request names operations on the data, at least one.",
            fix="ask for example for query.count and query.aggregate; what governs an object is its owner's.",
        )
    request = AccessRequest(
        request_id=request_id,
        object_id=policy.object_id,
        requester=requester,
        purpose=check_purpose(purpose),
        operations=wanted,
        algorithms=tuple(algorithms),
        budget=budget,
        two_person=policy.two_person,
    )
    return _append_step(request, RequestState.REQUESTED, requester, at, note)


def ask(request: AccessRequest, *, by: str, owners: Collection[str], at: datetime, note: str) -> AccessRequest:
    """Return the request with an owner's question; approvals so far are void, since the answer may change them."""
    _check_owner(request, by, owners)
    return replace(_move(request, RequestState.INFO_NEEDED, by, at, note), approvals=())


def answer(request: AccessRequest, *, by: str, at: datetime, note: str) -> AccessRequest:
    """Return the request with the requester's answer, again waiting for a decision."""
    _check_requester(request, by)
    return _move(request, RequestState.REQUESTED, by, at, note)


def approve(
    request: AccessRequest,
    *,
    by: str,
    owners: Collection[str],
    at: datetime,
    role: str,
    until: datetime,
    budget: Budget | None = None,
    note: str = "",
) -> AccessRequest:
    """Return the request with an owner's approval; approved once enough different owners have said yes to the same.

    Raises:
        ConflictError: if the request is not waiting for a decision, the person may not approve it, or did so before.
    """
    _check_owner(request, by, owners)
    _check_state(request, RequestState.APPROVED)
    if by == request.requester:
        raise ConflictError("Nobody approves a request of their own.", fix="ask another owner.")
    if until <= at:
        raise ConflictError("The access would end before it begins.", fix="give a later end.")
    approval = Approval(by=by, at=at, role=role, until=until, budget=budget)
    if any(earlier.by == by for earlier in request.approvals):
        raise ConflictError("This owner has approved the request before.", fix="ask a second owner.")
    # Two owners who said yes to different things have agreed on nothing.
    if any(not earlier.agrees(approval) for earlier in request.approvals):
        raise ConflictError(
            "The first approval was for another role, end or budget.",
            fix="approve the same terms, or ask a question, which voids the first approval.",
        )
    approved = replace(request, approvals=(*request.approvals, approval))
    if approved.approvals_missing:
        return _append_step(approved, request.state, by, at, note or "first approval")
    return _move(approved, RequestState.APPROVED, by, at, note)


def reject(request: AccessRequest, *, by: str, owners: Collection[str], at: datetime, note: str = "") -> AccessRequest:
    """Return the request, rejected by an owner; one is enough."""
    _check_owner(request, by, owners)
    return _move(request, RequestState.REJECTED, by, at, note)


def withdraw(request: AccessRequest, *, by: str, at: datetime, note: str = "") -> AccessRequest:
    """Return the request, withdrawn by the requester before it was decided."""
    _check_requester(request, by)
    return _move(request, RequestState.WITHDRAWN, by, at, note)


def revoke(request: AccessRequest, *, by: str, owners: Collection[str], at: datetime, note: str = "") -> AccessRequest:
    """Return the request with the access revoked, by an owner or given back by the requester."""
    if by != request.requester:
        _check_owner(request, by, owners)
    return _move(request, RequestState.REVOKED, by, at, note)


def expire(request: AccessRequest, *, at: datetime) -> AccessRequest:
    """Return the request, expired.

    Raises:
        ConflictError: if its time is not over, or it has ended in another way.
    """
    _check_state(request, RequestState.EXPIRED)
    if at < request.ends:
        raise ConflictError("The request has not expired yet.", fix="revoke the access, or reject the request.")
    return _move(request, RequestState.EXPIRED, None, at, "")


def grant(policy: Policy, request: AccessRequest) -> Policy:
    """Return the next version of a policy, in which the state of a request holds.

    The requester of an approved request is put into its role, and that of a revoked one is taken out. When a request
    expires, a membership that was given anew since, with another end, stays.

    Raises:
        ConflictError: if the request is for another object, or was never approved.
        PolicyError: if the policy has no such role.
    """
    if request.object_id != policy.object_id or not request.approvals:
        raise ConflictError("The request gives no access to this object.", fix="approve it first.")
    approval = request.approvals[-1]
    if request.state is RequestState.APPROVED:
        member = Member(user_id=request.requester, until=approval.until, budget=approval.budget)
        return policy.with_member(approval.role, member)
    if request.state is RequestState.REVOKED:
        return policy.without_member(approval.role, request.requester)
    if request.state is RequestState.EXPIRED:
        entry = policy.role(approval.role).members.entry(request.requester)
        # An entry with another end was given anew after this request, and is not its to take away.
        is_same = entry is not None and entry.until == approval.until
        return policy.without_member(approval.role, request.requester) if is_same else policy
    raise ConflictError("The request is not decided.", fix="have the owners decide it first.")


def _move(request: AccessRequest, state: RequestState, by: str | None, at: datetime, note: str) -> AccessRequest:
    _check_state(request, state)
    return _append_step(request, state, by, at, note)


def _append_step(request: AccessRequest, state: RequestState, by: str | None, at: datetime, note: str) -> AccessRequest:
    if at.tzinfo is None:
        raise ParameterError("The time of a step has no offset from UTC.", fix="use datetime.now(UTC).")
    if request.history and at < request.history[-1].at:
        raise ConflictError("The step lies before the last one.", fix="use the present time.")
    step = Transition(at=at, by=by, state=state, note=note)
    return replace(request, state=state, history=(*request.history, step))


def _check_state(request: AccessRequest, state: RequestState) -> None:
    if request.state not in _BEFORE[state]:
        before = " or ".join(item for item in RequestState if item in _BEFORE[state])
        raise ConflictError(
            f"A request that is {request.state} cannot become {state}.", fix=f"only one that is {before} can."
        )


def _check_owner(request: AccessRequest, by: str, owners: Collection[str]) -> None:
    if by not in owners:
        raise ConflictError("Only an owner decides on a request.", fix=f"ask an owner of {request.object_id}.")


def _check_requester(request: AccessRequest, by: str) -> None:
    if by != request.requester:
        raise ConflictError("Only the one who made a request may do this.", fix="log in as that person.")


_COLUMNS = ("request_id", "requester", "state", "history")
"""Fields that are kept beside the document of a request, not in it."""


def request_to_dict(request: AccessRequest) -> dict[str, Any]:
    """Return what is asked for and approved, without the history."""
    return {name: value for name, value in request.to_dict().items() if name not in _COLUMNS}


def history_to_list(request: AccessRequest) -> list[dict[str, Any]]:
    """Return every step of a request."""
    return [step.to_dict() for step in request.history]


def request_from_dict(
    values: dict[str, Any], history: list[dict[str, Any]], *, request_id: str, requester: str, state: str
) -> AccessRequest:
    """Return the request that `request_to_dict` and `history_to_list` wrote."""
    kept = {"request_id": request_id, "requester": requester, "state": state, "history": history}
    return AccessRequest.from_dict(values | kept)


def algorithms_from(names: list[str]) -> tuple[AlgorithmReference, ...]:
    """Return the algorithms that a request names, each once.

    Raises:
        PolicyError: if one is not ``name@version``.
    """
    return tuple(map(AlgorithmReference.parse, dict.fromkeys(names)))
