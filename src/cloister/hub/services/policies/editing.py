"""Changing a policy: whole, in parts, from a template, or by one person in or out. Each gives the next version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from cloister.data.schema_file import load_yaml
from cloister.errors import CloisterError, ConflictError, ParameterError, PolicyError
from cloister.hub.domain.members import Member
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.policy_edits import edited
from cloister.hub.domain.policy_file import SCHEMA, policy_from_dict, policy_from_json
from cloister.hub.domain.policy_templates import TEMPLATES, from_template, open_to_organisation
from cloister.hub.domain.roles import Subject
from cloister.hub.domain.rules import Limits
from cloister.hub.hub import Hub
from cloister.hub.services.datasets.modes import adopt_mode
from cloister.hub.services.datasets.schemas import newest_version
from cloister.hub.services.policies.checking import check_fits
from cloister.hub.services.policies.keeping import keep, newest
from cloister.hub.services.policies.limiting import limit_person
from cloister.hub.services.policies.naming import user_id, with_identifiers
from cloister.hub.services.running.reserving import account_of
from cloister.hub.services.sessions import subject_of
from cloister.hub.store.database import Store
from cloister.hub.store.models import Dataset, User
from cloister.hub.store.sealed_schemas import working_schema

__all__ = [
    "OPEN_TO_ORGANISATION",
    "TEMPLATE_NAMES",
    "add_member",
    "change_policy",
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
    subject: Subject,
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
    return _checked(store, session, subject, dataset, after, before=before, what="save")


def change_policy(
    store: Store, session: Session, subject: Subject, dataset: Dataset, *, based_on: int, **changes: Any
) -> Policy:
    """Change some parts of a policy; see `cloister.hub.domain.policy_edits.edited` for which."""
    before = newest(session, dataset, based_on=based_on)
    return _checked(store, session, subject, dataset, edited(before, **changes), before=before, what="change")


def start_from_template(
    hub: Hub,
    session: Session,
    subject: Subject,
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
    return _checked(hub.store, session, subject, dataset, after, before=before, what="template", template=template)


def add_member(
    store: Store, session: Session, subject: Subject, dataset: Dataset, *, role: str, member: Member
) -> Policy:
    """Let a person into a role, without a request; an entry for the same person is replaced.

    A budget is what the person may spend in all, past spends included; it becomes a limit of the ledger as well.
    """
    before = newest(session, dataset)
    found = replace(member, user_id=user_id(session, member.user_id))
    after = before.with_member(role, found)
    kept = _checked(store, session, subject, dataset, after, before=before, what="member", role=role)
    limit_person(store, session, dataset, found.user_id, found.budget)
    return kept


def remove_person(session: Session, subject: Subject, dataset: Dataset, person: str) -> tuple[Policy, tuple[str, ...]]:
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
    after = keep(session, dataset, before.changed(roles=roles), by=subject, before=before, what="revoke", person=found)
    user = session.get_one(User, found)
    left = [role.name for role in after.roles if role.members.include(subject_of(user), now=datetime.now(UTC))]
    return after, tuple(left)


def _checked(
    store: Store, session: Session, subject: Subject, dataset: Dataset, after: Policy, *, before: Policy, **what: Any
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
        replace(role, rules=tuple(replace(rule, limits=Limits()) for rule in role.rules)) for role in policy.roles
    )
    return replace(policy, roles=roles)
