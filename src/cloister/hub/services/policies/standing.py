"""What one person may do with a dataset, until when and for how much; and why, in words that they may read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from cloister.errors import ConflictError, NotFoundError
from cloister.hub.domain.actions import Relation
from cloister.hub.domain.decisions import Decision
from cloister.hub.domain.operations import Operation
from cloister.hub.domain.places import Place
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.policy_parts import read_algorithm
from cloister.hub.domain.policy_words import ASKABLE, OPERATIONS
from cloister.hub.domain.purposes import VOCABULARY
from cloister.hub.domain.roles import Subject
from cloister.hub.domain.rules import Algorithm, Effect, Rule
from cloister.hub.services import datasets
from cloister.hub.services.authorizing import decide_operation
from cloister.hub.services.policies.naming import user_id
from cloister.hub.services.running.limits import left_for
from cloister.hub.services.running.reserving import account_of
from cloister.hub.services.sessions import subject_of
from cloister.hub.services.targets import Target
from cloister.hub.store.database import Store
from cloister.hub.store.models import User

__all__ = ["explain_to_owner", "may_i", "standing"]

_DECIDABLE = (*ASKABLE, Operation.DESCRIBE)


def may_i(
    target: Target, subject: Subject, operation: str, *, purpose: str | None = None, algorithm: str | None = None
) -> dict[str, Any]:
    """Return whether a person may do something now, with the reason that they may read."""
    decision = _decided(target, subject, operation, purpose, algorithm)
    return {
        "schema": "cloister.answer/1",
        "operation": str(decision.operation),
        "meaning": OPERATIONS[decision.operation],
        "allowed": decision.allowed,
        "reason": decision.public_reason,
        "until": _until(decision),
        "policy_version": decision.policy_version,
    }


def explain_to_owner(
    session: Session,
    target: Target,
    person: str,
    operation: str,
    *,
    purpose: str | None = None,
    algorithm: str | None = None,
) -> dict[str, Any]:
    """Return whether somebody else may do something now, with everything that was looked at, for an owner."""
    user = session.get_one(User, user_id(session, person))
    decision = _decided(target, subject_of(user), operation, purpose, algorithm)
    return decision.to_dict() | {
        "person": user.name,
        "public_reason": decision.public_reason,
        "until": _until(decision),
    }


def standing(store: Store, session: Session, target: Target, subject: Subject) -> dict[str, Any]:
    """Return what a person may do with a dataset; roles, other members and hidden columns are not told."""
    described = datasets.describe(session, subject, target, None)
    permissions = _permissions(target, subject)
    return {
        "schema": "cloister.standing/1",
        "dataset": {name: described[name] for name in ("id", "title", "organisation", "state", "mode")},
        "is_owner": described["is_owner"],
        "may": [_told(operation, found) for operation, found in permissions.items()],
        "columns": [{"name": item["name"], "uses": item["uses"]} for item in described["columns"]],
        "has_row_condition": any(
            item.decision.constraints is not None and item.decision.constraints.rows
            for found in permissions.values()
            for item in found
        ),
        "left": _left(store, session, target, permissions),
    }


def _decided(target: Target, subject: Subject, operation: str, purpose: str | None, algorithm: str | None) -> Decision:
    if operation not in set(Operation):
        raise NotFoundError("There is no such operation.", fix=f"use one of {', '.join(_DECIDABLE)}.")
    used = None if not algorithm else read_algorithm(Place(algorithm, "algorithm"))
    return decide_operation(target, subject, Operation(operation), purpose=purpose or None, algorithm=used)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Permission:
    """A purpose and an algorithm with which an operation is allowed."""

    purpose: str
    algorithm: Algorithm | None
    decision: Decision
    subject: Subject


def _permissions(target: Target, subject: Subject) -> dict[Operation, list[_Permission]]:
    """Return what is allowed, by asking for everything that the person's rules could allow."""
    policy = target.policy or Policy(object_id=target.id)
    now = datetime.now(UTC)
    found: dict[Operation, list[_Permission]] = {}
    if Relation.OWNER in target.relations(subject):
        candidates: list[tuple[Operation, str, Algorithm | None]] = [(item, "", None) for item in ASKABLE]
    else:
        rules = [
            rule
            for role in policy.roles
            if role.members.include(subject, now=now)
            for rule in role.rules
            if rule.effect is Effect.ALLOW
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


def _purposes(policy: Policy, rule: Rule) -> tuple[str, ...]:
    """Return the widest purposes that a rule and the terms of the data have in common."""
    shared = policy.terms.purposes if rule.purposes is None else policy.terms.purposes & rule.purposes
    if "*" in shared.names:
        return tuple(name for name in VOCABULARY if "." not in name)
    return shared.names


def _told(operation: Operation, found: list[_Permission]) -> dict[str, Any]:
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


def _left(
    store: Store, session: Session, target: Target, permissions: dict[Operation, list[_Permission]]
) -> dict[str, Any] | None:
    """Return how much a person can still spend, by the first permission; None where limits do not fit the budget."""
    first = next((item for found in permissions.values() for item in found), None)
    ledger = store.ledger(session)
    account = account_of(ledger, target.id)
    if first is None or account is None:
        return None
    try:
        return left_for(session, ledger, account, first).to_dict()
    except ConflictError:
        return None


def _until(decision: Decision) -> str | None:
    constraints = decision.constraints
    return None if constraints is None or constraints.expires is None else constraints.expires.isoformat()
