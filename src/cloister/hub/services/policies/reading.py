"""A policy as its owner sees it: in words, in tables for forms, as a document, and with all its versions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import NotFoundError
from cloister.hub.domain import policy_words as words
from cloister.hub.domain.column_rules import EVERY_COLUMN, Use
from cloister.hub.domain.operations import Operation
from cloister.hub.domain.policy import Policy, PolicyRole
from cloister.hub.domain.policy_changes import changes
from cloister.hub.domain.policy_edits import is_simple
from cloister.hub.domain.policy_file import policy_from_dict, policy_to_dict
from cloister.hub.domain.purposes import VOCABULARY
from cloister.hub.domain.rules import Limits
from cloister.hub.services.datasets.schemas import newest_version
from cloister.hub.services.policies.editing import TEMPLATE_NAMES
from cloister.hub.services.policies.keeping import newest, title
from cloister.hub.services.policies.naming import Names, with_names
from cloister.hub.store.models import Dataset, PolicyVersion

__all__ = ["list_versions", "read_policy", "read_version"]


def read_policy(session: Session, dataset: Dataset) -> dict[str, Any]:
    """Return the newest policy for an owner."""
    policy = newest(session, dataset)
    names = Names(session, policy)
    version = newest_version(session, dataset.id)
    columns = [] if version is None else [str(column["name"]) for column in version.columns]
    return {
        "schema": "cloister.dataset-policy/1",
        "dataset": dataset.id,
        "title": title(dataset),
        "version": policy.version,
        "document": policy_to_dict(with_names(policy, names)),
        "discoverable": policy.discoverable,
        "two_person": policy.two_person,
        "mode": str(policy.mode),
        "purposes": list(policy.terms.purposes.names),
        "rows": None if policy.rows is None else policy.rows.text,
        "columns": [_column(policy, name) for name in columns],
        "other_columns": [str(use) for use in Use if use in policy.columns.others.uses],
        "roles": [_role(role, names) for role in policy.roles],
        "templates": list(TEMPLATE_NAMES),
        "known_purposes": [{"name": name, "meaning": text} for name, text in VOCABULARY.items()],
        "known_operations": [{"name": str(item), "meaning": words.OPERATIONS[item]} for item in words.ASKABLE],
        "known_uses": [{"name": str(use), "meaning": text} for use, text in words.USES.items()],
    }


def list_versions(
    session: Session, dataset: Dataset, *, before: int | None = None, limit: int = 20
) -> tuple[list[dict[str, Any]], int | None]:
    """Return the versions of a policy, the newest first, each with what it changed, and where to go on."""
    query = select(PolicyVersion).where(PolicyVersion.object_kind == "dataset", PolicyVersion.object_id == dataset.id)
    if before is not None:
        query = query.where(PolicyVersion.number < before)
    rows = list(session.scalars(query.order_by(PolicyVersion.number.desc()).limit(limit + 1)))
    policies = {row.number: policy_from_dict(row.document) for row in rows}
    names = Names(session, *policies.values(), users=[row.author_id for row in rows if row.author_id is not None])
    items = [
        {
            "version": row.number,
            "created": row.created.isoformat(),
            "author": "the hub" if row.author_id is None else names.user(row.author_id),
            "changes": _changes(policies, row.number, names),
        }
        for row in rows[:limit]
    ]
    return items, rows[limit - 1].number if len(rows) > limit else None


def read_version(session: Session, dataset: Dataset, number: int) -> dict[str, Any]:
    """Return one version of a policy as a document."""
    row = session.scalars(
        select(PolicyVersion).where(
            PolicyVersion.object_kind == "dataset",
            PolicyVersion.object_id == dataset.id,
            PolicyVersion.number == number,
        )
    ).one_or_none()
    if row is None:
        raise NotFoundError("The policy has no such version.", fix="look at the list of its versions.")
    policy = policy_from_dict(row.document)
    return {
        "schema": "cloister.policy-version/1",
        "version": number,
        "created": row.created.isoformat(),
        "document": policy_to_dict(with_names(policy, Names(session, policy))),
    }


def _changes(policies: dict[int, Policy], number: int, names: Names) -> list[str]:
    earlier = policies.get(number - 1)
    if earlier is None:
        return []
    return list(changes(earlier, policies[number], user=names.user, organisation=names.organisation))


def _column(policy: Policy, name: str) -> dict[str, Any]:
    rule = policy.columns.of(name)
    purposes = rule.terms.purposes
    return {
        "name": name,
        "uses": [str(use) for use in Use if use in rule.uses],
        "purposes": None if "*" in purposes.names else list(purposes.names),
    }


def _role(role: PolicyRole, names: Names) -> dict[str, Any]:
    now = datetime.now(UTC)
    rule = role.rules[0] if role.rules and is_simple(role) else None
    limits = Limits() if rule is None else rule.limits
    members = words.members_words(role.members, user=names.user, organisation=names.organisation)
    people = [words.member_words(item, user=names.user) for item in role.members.users]
    return {
        "name": role.name,
        "people": [
            {
                "id": item.user_id,
                "name": names.user(item.user_id),
                "until": None if item.until is None else item.until.isoformat(),
                "budget": None if item.budget is None else item.budget.to_dict(),
                "is_over": item.until is not None and item.until <= now,
            }
            for item in role.members.users
        ],
        "groups": [line for line in members if line not in people],
        "rules": [words.rule_words(item) for item in role.rules],
        "is_simple": is_simple(role),
        "operations": [] if rule is None else [str(item) for item in Operation if item in rule.operations],
        "limits": {name: budget.to_dict() for name, budget in limits},
        "rows": None if role.rows is None else role.rows.text,
        "narrows_columns": role.columns != EVERY_COLUMN,
    }
