"""What one person may do with a dataset, until when and for how much; and why, in words that they may read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from cloister.errors import ConflictError, NotFoundError
from cloister.hub.domain.actions import ObjectRelation
from cloister.hub.domain.decisions import Decision
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import AlgorithmReference, Policy, PolicyRule, RuleEffect
from cloister.hub.domain.policy_words import ASKABLE, OPERATIONS
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.terms import VOCABULARY
from cloister.hub.store.database import Store
from cloister.hub.store.models import User
from cloister.hub.use_cases import datasets
from cloister.hub.use_cases._spending_limits import account_of, find_remaining
from cloister.hub.use_cases.authorization import ActionTarget, decide_operation
from cloister.hub.use_cases.policies._names import user_id
from cloister.hub.use_cases.sessions import subject_of

__all__ = ["explain_to_owner", "may_i", "standing"]

_DECIDABLE = (*ASKABLE, PolicyOperation.DESCRIBE)


def may_i(
    target: ActionTarget,
    subject: AccessSubject,
    operation: str,
    *,
    purpose: str | None = None,
    algorithm: str | None = None,
) -> dict[str, Any]:
    """Return whether a person may do something now, with the reason that they may read."""
    decision = _decide_named(target, subject, operation, purpose, algorithm)
    return {
        "schema": "cloister.policy_answer/1",
        "operation": str(decision.operation),
        "meaning": OPERATIONS[decision.operation],
        "allowed": decision.allowed,
        "reason": decision.public_reason,
        "until": _until(decision),
        "policy_version": decision.policy_version,
    }


def explain_to_owner(
    session: Session,
    target: ActionTarget,
    person: str,
    operation: str,
    *,
    purpose: str | None = None,
    algorithm: str | None = None,
) -> dict[str, Any]:
    """Return whether somebody else may do something now, with everything that was looked at, for an owner."""
    user = session.get_one(User, user_id(session, person))
    decision = _decide_named(target, subject_of(user), operation, purpose, algorithm)
    return decision.to_dict() | {
        "person": user.name,
        "public_reason": decision.public_reason,
        "until": _until(decision),
    }


def standing(store: Store, session: Session, target: ActionTarget, subject: AccessSubject) -> dict[str, Any]:
    """Return what a person may do with a dataset; roles, other members and hidden columns are not told."""
    described = datasets.describe(session, subject, target, None)
    permissions = _permissions(target, subject)
    return {
        "schema": "cloister.standing/1",
        "dataset": {name: described[name] for name in ("id", "title", "organisation", "state", "mode")},
        "is_owner": described["is_owner"],
        "may": [_describe_permission(operation, found) for operation, found in permissions.items()],
        "columns": [{"name": item["name"], "uses": item["uses"]} for item in described["columns"]],
        "has_row_condition": any(
            item.decision.constraints is not None and item.decision.constraints.rows
            for found in permissions.values()
            for item in found
        ),
        "left": _describe_remaining(store, session, target, permissions),
    }


def _decide_named(
    target: ActionTarget, subject: AccessSubject, operation: str, purpose: str | None, algorithm: str | None
) -> Decision:
    if operation not in set(PolicyOperation):
        raise NotFoundError("There is no such operation.", fix=f"use one of {', '.join(_DECIDABLE)}.")
    used = None if not algorithm else AlgorithmReference.parse(algorithm)
    return decide_operation(target, subject, PolicyOperation(operation), purpose=purpose or None, algorithm=used)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Permission:
    """A purpose and an algorithm with which an operation is allowed."""

    purpose: str
    algorithm: AlgorithmReference | None
    decision: Decision
    subject: AccessSubject


def _permissions(target: ActionTarget, subject: AccessSubject) -> dict[PolicyOperation, list[_Permission]]:
    """Return what is allowed, by asking for everything that the person's rules could allow."""
    policy = target.policy or Policy(object_id=target.id)
    now = datetime.now(UTC)
    found: dict[PolicyOperation, list[_Permission]] = {}
    if ObjectRelation.OWNER in target.relations(subject):
        candidates: list[tuple[PolicyOperation, str, AlgorithmReference | None]] = [
            (item, "", None) for item in ASKABLE
        ]
    else:
        rules = [
            rule
            for role in policy.roles
            if role.members.include(subject, now=now)
            for rule in role.rules
            if rule.effect is RuleEffect.ALLOW
        ]
        candidates = [
            (operation, purpose, algorithm)
            for rule in rules
            for operation in ASKABLE
            if operation in rule.operations
            for purpose in _purposes(policy, rule)
            for algorithm in rule.algorithms or (None,)
        ]
    for operation, purpose, algorithm in dict.fromkeys(candidates):
        decision = decide_operation(target, subject, operation, purpose=purpose or None, algorithm=algorithm)
        if decision.allowed:
            permission = _Permission(purpose=purpose, algorithm=algorithm, decision=decision, subject=subject)
            found.setdefault(operation, []).append(permission)
    return found


def _purposes(policy: Policy, rule: PolicyRule) -> tuple[str, ...]:
    """Return the widest purposes that a rule and the terms of the data have in common."""
    shared = policy.terms.purposes if rule.purposes is None else policy.terms.purposes & rule.purposes
    if "*" in shared.names:
        return tuple(name for name in VOCABULARY if "." not in name)
    return shared.names


def _describe_permission(operation: PolicyOperation, found: list[_Permission]) -> dict[str, Any]:
    ends = [end for end in (_until(item.decision) for item in found) if end is not None]
    algorithms = sorted({str(item.algorithm) for item in found if item.algorithm is not None})
    constraints = found[0].decision.constraints
    return {
        "operation": str(operation),
        "meaning": OPERATIONS[operation],
        "purposes": sorted({item.purpose for item in found if item.purpose}),
        "algorithms": algorithms if all(item.algorithm is not None for item in found) else None,
        "until": min(ends, default=None),
        "limits": {} if constraints is None else {name: budget.to_dict() for name, budget in constraints.limits},
    }


def _describe_remaining(
    store: Store, session: Session, target: ActionTarget, permissions: dict[PolicyOperation, list[_Permission]]
) -> dict[str, Any] | None:
    """Return how much a person can still spend, by the first permission; None where limits do not fit the budget."""
    first = next((item for found in permissions.values() for item in found), None)
    ledger = store.ledger(session)
    account = account_of(ledger, target.id)
    if first is None or account is None:
        return None
    try:
        return find_remaining(session, ledger, account, first).to_dict()
    except ConflictError:
        return None


def _until(decision: Decision) -> str | None:
    constraints = decision.constraints
    return None if constraints is None or constraints.expires is None else constraints.expires.isoformat()
