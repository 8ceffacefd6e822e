"""What a decision is made from, besides policy and subject, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cloister.accounting.budget import Budget
from cloister.errors import ForbiddenError, ParameterError
from cloister.hub.domain.column_rules import ColumnRules
from cloister.hub.domain.operations import Operation
from cloister.hub.domain.policy import Algorithm, Effect, Mode, RowPredicate
from cloister.hub.domain.purposes import check_purpose
from cloister.hub.domain.rules import Limits

__all__ = ["Constraints", "Context", "Decision", "Step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The circumstances of a request.

    Attributes:
        now: when; with its offset.
        owners: who owns the object.
        owner_organisation: the organisation that the object belongs to.
        role: the role of the policy in which the subject wants to act; None: the first that allows it.
        purpose: what the request is for.
        algorithm: what it runs.
        cost: what it would spend.
        network: the hub's label of the network that it comes from.
        risk: the risk score of the session.
        region: where it would run.
        combined_with: other objects that it uses together with this one.
    """

    now: datetime
    owners: frozenset[str] = frozenset()
    owner_organisation: str | None = None
    role: str | None = None
    purpose: str | None = None
    algorithm: Algorithm | None = None
    cost: Budget | None = None
    network: str | None = None
    risk: float | None = None
    region: str | None = None
    combined_with: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.now.tzinfo is None:
            raise ParameterError("now has no offset from UTC.", fix="use datetime.now(UTC).")
        if self.purpose is not None:
            check_purpose(self.purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rule that was looked at, and why it did or did not apply."""

    role: str
    rule: int
    effect: Effect
    applies: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What has to be kept to when the operation runs.

    Attributes:
        mode: how answers are protected.
        limits: how much may be spent, to be compared with the ledger.
        columns: what each column may be used for.
        rows: conditions that the rows have to fulfill, all of them.
        attributes: the attributes of the subject that the conditions need.
        purpose: what was declared; columns whose purposes exclude it do not exist.
        expires: when the permission ends, unless something changes before.
        two_person: whether two owners have to approve.
    """

    mode: Mode
    limits: Limits = field(default_factory=Limits)
    columns: ColumnRules = field(default_factory=ColumnRules)
    rows: tuple[RowPredicate, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    purpose: str | None = None
    expires: datetime | None = None
    two_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Yes or no, and why.

    Attributes:
        allowed: whether the operation may be performed.
        operation: which one.
        reason: one sentence for the owner.
        public_reason: one sentence for the person who asked, that names no members, roles or hidden columns.
        role: the role of the policy that decided.
        constraints: what has to be kept to; None unless allowed.
        trace: the rules that were looked at.
        hides_existence: whether the answer has to be the same as if the object did not exist.
        policy_version: the version that was asked.
    """

    allowed: bool
    operation: Operation
    reason: str
    public_reason: str
    role: str | None
    constraints: Constraints | None
    trace: tuple[Step, ...]
    hides_existence: bool
    policy_version: int

    def require(self) -> None:
        """Return nothing if the operation is allowed, else raise what the person who asked may know.

        Raises:
            ForbiddenError: if it is not allowed.
        """
        if not self.allowed:
            raise ForbiddenError(self.public_reason, fix="ask the owner for access, or for other terms.")

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values for the owner and the audit log, not for the person who asked."""
        return {
            "schema": "cloister.decision/1",
            "allowed": self.allowed,
            "operation": str(self.operation),
            "reason": self.reason,
            "role": self.role,
            "policy_version": self.policy_version,
            "trace": [
                {
                    "role": step.role,
                    "rule": step.rule,
                    "effect": str(step.effect),
                    "applies": step.applies,
                    "why": step.why,
                }
                for step in self.trace
            ],
        }
