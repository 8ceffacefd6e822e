"""What a person may run on a dataset, and what for, so that pages offer only what the policy allows.

It is decided by the policy alone, as a run would be: nothing here depends on rows.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.hub.domain import rules
from cloister.hub.domain.actions import Relation
from cloister.hub.domain.decisions import Decision
from cloister.hub.domain.purposes import VOCABULARY
from cloister.hub.domain.roles import Subject
from cloister.hub.services import datasets
from cloister.hub.services.authorizing import decide_operation
from cloister.hub.services.offered import algorithms
from cloister.hub.services.registry import Algorithm, BringsMaterial
from cloister.hub.services.targets import Target

__all__ = ["describe_offers", "offer"]


def describe_offers(session: Session, subject: Subject, target: Target) -> dict[str, Any]:
    """Return a dataset as the person may know it, with the services for it and whether they may run each."""
    described = datasets.describe(session, subject, target, None)
    is_owner = bool(described["is_owner"])
    found = [item for _, item in sorted(algorithms.items()) if described["mode"] in item.modes]
    shown = [item for item in found if is_owner or not item.owners_only]
    is_ready = described["state"] == "ready"
    return {**described, "services": [offer(item, subject, target) for item in shown] if is_ready else []}


def offer(algorithm: Algorithm, subject: Subject, target: Target) -> dict[str, Any]:
    """Return whether the person may run a service on a dataset, for which purposes, and otherwise why not."""
    decisions = {
        purpose: _decide(algorithm, subject, target, purpose)
        for purpose in (None, *sorted({*VOCABULARY, *_own_purposes(target)}))
    }
    allowed = [purpose for purpose, decision in decisions.items() if decision.allowed]
    is_theirs = not algorithm.owners_only or Relation.OWNER in target.relations(subject)
    return {
        "name": algorithm.name,
        "title": algorithm.title,
        "summary": algorithm.summary,
        "may_run": bool(allowed) and is_theirs,
        "reason": "" if allowed else decisions[None].public_reason,
        "purposes": [
            {"name": purpose, "meaning": VOCABULARY.get(purpose, purpose)} for purpose in allowed if purpose is not None
        ],
        "needs_purpose": None not in allowed,
    }


def _decide(algorithm: Algorithm, subject: Subject, target: Target, purpose: str | None) -> Decision:
    """Return what the policy says; where a service brings algorithms along, about the one that is allowed, if any."""
    decisions = [
        decide_operation(target, subject, algorithm.operation, purpose=purpose, algorithm=used)
        for used in _used(algorithm, target)
    ]
    return next((decision for decision in decisions if decision.allowed), decisions[0])


def _used(algorithm: Algorithm, target: Target) -> list[rules.Algorithm]:
    itself = rules.Algorithm(algorithm.name, algorithm.version)
    if not isinstance(algorithm, BringsMaterial) or target.policy is None:
        return [itself]
    named = {used for role in target.policy.roles for rule in role.rules for used in rule.algorithms or ()}
    return [itself, *sorted(named, key=str)]


def _own_purposes(target: Target) -> set[str]:
    """Return purposes that a policy names and the vocabulary may not know."""
    policy = target.policy
    if policy is None:
        return set()
    given = [rule.purposes for role in policy.roles for rule in role.rules if rule.purposes is not None]
    return {name for purposes in (policy.terms.purposes, *given) for name in purposes.names if name != "*"}
