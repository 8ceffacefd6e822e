"""A policy as its owner sees and changes it.

It is shown in words, in tables for forms, as a document, and with all its versions. It is changed whole, in parts, from
a template, or by one person in or out. Each change gives the next version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.data.schema_file import load_yaml
from cloister.errors import CloisterError, ConflictError, NotFoundError, ParameterError, PolicyError
from cloister.hub.domain import policy_words as words
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import EVERY_COLUMN, BudgetLimits, Member, Policy, PolicyRole, Use
from cloister.hub.domain.policy_edits import TEMPLATES, edit_policy, from_template, is_simple, open_to_organisation
from cloister.hub.domain.policy_file import SCHEMA, policy_from_dict, policy_from_json, policy_to_dict
from cloister.hub.domain.policy_words import describe_changes
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.terms import VOCABULARY
from cloister.hub.hub import Hub
from cloister.hub.store.database import Store
from cloister.hub.store.models import Dataset, PolicyVersion, User
from cloister.hub.store.sealed_schemas import working_schema
from cloister.hub.use_cases._spending_limits import account_of, limit_person
from cloister.hub.use_cases.datasets.modes import adopt_mode
from cloister.hub.use_cases.datasets.versions import newest_version
from cloister.hub.use_cases.policies._names import Names, user_id, with_identifiers, with_names
from cloister.hub.use_cases.policies.policy_versions import check_fits, keep, newest, title
from cloister.hub.use_cases.sessions import subject_of

__all__ = [
    "OPEN_TO_ORGANISATION",
    "TEMPLATE_NAMES",
    "add_member",
    "change_policy",
    "list_versions",
    "read_policy",
    "read_version",
    "remove_person",
    "save_policy",
    "start_from_template",
]


OPEN_TO_ORGANISATION = "open to one's organisation"
TEMPLATE_NAMES = (*TEMPLATES, OPEN_TO_ORGANISATION)
"""Templates that an owner can start from."""


def save_policy(
    store: Store,
    session: Session,
    subject: AccessSubject,
    dataset: Dataset,
    document: Mapping[str, Any] | str,
    *,
    based_on: int,
) -> Policy:
    """Keep a whole policy as the next version.

    Args:
        store: the hub's database.
        session: a writing session of it.
        subject: the owner.
        dataset: what it is for.
        document: the policy as plain values, or as JSON or YAML text, with names of accounts and organisations.
        based_on: the version that was edited.

    Raises:
        ConflictError: if that is not the newest version any more.
        PolicyError: if it is malformed, or does not fit the dataset.
    """
    before = newest(session, dataset, based_on=based_on)
    given = _read(document, dataset)
    if given.version not in (1, before.version):
        raise ConflictError(
            f"The document says version {given.version}, but version {based_on} was edited.",
            fix="leave the version out: the hub counts it.",
        )
    after = replace(with_identifiers(session, given), version=before.version + 1)
    return _check_and_keep(store, session, subject, dataset, after, before=before, what="save")


def change_policy(
    store: Store, session: Session, subject: AccessSubject, dataset: Dataset, *, based_on: int, **changes: Any
) -> Policy:
    """Change some parts of a policy; see `cloister.hub.domain.policy_edits.edit_policy` for which."""
    before = newest(session, dataset, based_on=based_on)
    return _check_and_keep(
        store, session, subject, dataset, edit_policy(before, **changes), before=before, what="change"
    )


def start_from_template(
    hub: Hub,
    session: Session,
    subject: AccessSubject,
    dataset: Dataset,
    *,
    template: str,
    based_on: int,
    hidden: tuple[str, ...] | None = None,
) -> Policy:
    """Replace a policy by a template; identifiers of the schema are hidden unless the owner says which columns are."""
    before = newest(session, dataset, based_on=based_on)
    shown = _identifiers(hub, session, dataset) if hidden is None else hidden
    if template == OPEN_TO_ORGANISATION:
        made = open_to_organisation(dataset.id, organisation=dataset.organisation_id, hidden=shown)
    elif template in TEMPLATES:
        made = from_template(template, dataset.id, hidden=shown)
    else:
        raise ParameterError("There is no such template.", fix=f"use one of {', '.join(TEMPLATE_NAMES)}.")
    after = replace(
        _without_foreign_limits(hub.store, session, dataset, made),
        version=before.version + 1,
        mode=before.mode,
        acknowledgement=before.acknowledgement,
        terms=replace(made.terms, policies=before.terms.policies),
    )
    return _check_and_keep(
        hub.store, session, subject, dataset, after, before=before, what="template", template=template
    )


def add_member(
    store: Store, session: Session, subject: AccessSubject, dataset: Dataset, *, role: str, member: Member
) -> Policy:
    """Let a person into a role, without a request; an entry for the same person is replaced.

    A budget is what the person may spend in all, past spends included; it becomes a limit of the ledger as well.
    """
    before = newest(session, dataset)
    found = replace(member, user_id=user_id(session, member.user_id))
    after = before.with_member(role, found)
    kept = _check_and_keep(store, session, subject, dataset, after, before=before, what="member", role=role)
    limit_person(store, session, dataset, found.user_id, found.budget)
    return kept


def remove_person(
    session: Session, subject: AccessSubject, dataset: Dataset, person: str
) -> tuple[Policy, tuple[str, ...]]:
    """Take a person out of every role, at once; return the policy and the roles that still include them otherwise.

    Work of theirs that is queued or running is denied at its next step. Nothing can keep this from being done: a policy
    that does not fit its dataset any more is kept all the same.
    """
    before = newest(session, dataset)
    found = user_id(session, person)
    roles = tuple(
        replace(
            role,
            members=replace(role.members, users=tuple(item for item in role.members.users if item.user_id != found)),
        )
        for role in before.roles
    )
    if roles == before.roles:
        raise ConflictError(
            "The policy does not name this person.", fix="look at the members of each role: they may be in a group."
        )
    after = keep(
        session, dataset, before.next_version(roles=roles), by=subject, before=before, what="revoke", person=found
    )
    user = session.get_one(User, found)
    left = [role.name for role in after.roles if role.members.include(subject_of(user), now=datetime.now(UTC))]
    return after, tuple(left)


def _check_and_keep(
    store: Store,
    session: Session,
    subject: AccessSubject,
    dataset: Dataset,
    after: Policy,
    *,
    before: Policy,
    **what: Any,
) -> Policy:
    if replace(after, version=before.version) == before:
        return before
    check_fits(store, session, dataset, after, before=before)
    adopt_mode(dataset, after)
    return keep(session, dataset, after, by=subject, before=before, **what)


def _read(document: Mapping[str, Any] | str, dataset: Dataset) -> Policy:
    if isinstance(document, str) and document.lstrip().startswith("{"):
        return policy_from_json(document)
    if isinstance(document, str):
        try:
            values: Any = load_yaml(document)
        except CloisterError as error:
            raise PolicyError("The policy is neither JSON nor YAML.", fix=error.fix) from None
    else:
        values = document
    if not isinstance(values, Mapping):
        return policy_from_dict(values)
    return policy_from_dict({"schema": SCHEMA, "object": dataset.id, **values})


def _identifiers(hub: Hub, session: Session, dataset: Dataset) -> tuple[str, ...]:
    version = newest_version(session, dataset.id)
    schema = None if version is None else working_schema(hub.blobs, version)
    if schema is None:
        return ()
    columns = schema.to_dict()["columns"]
    return tuple(name for name, facts in columns.items() if facts.get("role") == "identifier" or facts.get("subject"))


def _without_foreign_limits(store: Store, session: Session, dataset: Dataset, policy: Policy) -> Policy:
    """Return a template without its limits where the dataset's budget is counted in another measure."""
    account = account_of(store.ledger(session), dataset.id)
    if account is None or account.budget.measure == "epsilon":
        return policy
    roles = tuple(
        replace(role, rules=tuple(replace(rule, limits=BudgetLimits()) for rule in role.rules)) for role in policy.roles
    )
    return replace(policy, roles=roles)


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
    return list(describe_changes(earlier, policies[number], user=names.user, organisation=names.organisation))


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
    limits = BudgetLimits() if rule is None else rule.limits
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
        "operations": [] if rule is None else [str(item) for item in PolicyOperation if item in rule.operations],
        "limits": {name: budget.to_dict() for name, budget in limits},
        "rows": None if role.rows is None else role.rows.text,
        "narrows_columns": role.columns != EVERY_COLUMN,
    }
