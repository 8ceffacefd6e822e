"""Names in policies: owners write names of accounts and institutions, the hub keeps identifiers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import PolicyError
from cloister.hub.domain.policy import Members, Policy
from cloister.hub.store.models import Organisation, User

__all__ = ["Names", "with_identifiers", "with_names"]


class Names:
    """Names of accounts and institutions by their identifiers; what is not known is called by its identifier."""

    def __init__(self, session: Session, *policies: Policy, users: Iterable[str] = ()) -> None:
        members = [role.members for policy in policies for role in policy.roles]
        people = {user.user_id for found in members for user in found.users} | set(users)
        places = {item for found in members for item in found.organisations}
        self._users: dict[str, str] = {
            row.id: row.name for row in session.execute(select(User.id, User.name).where(User.id.in_(people)))
        }
        found = session.execute(select(Organisation.id, Organisation.name).where(Organisation.id.in_(places)))
        self._organisations: dict[str, str] = {row.id: row.name for row in found}

    def user(self, identifier: str) -> str:
        """Return the name of an account."""
        return self._users.get(identifier, identifier)

    def organisation(self, identifier: str) -> str:
        """Return the name of an institution."""
        return self._organisations.get(identifier, identifier)


def with_names(policy: Policy, names: Names) -> Policy:
    """Return a policy as its owner reads and writes it, with names in place of identifiers."""
    roles = tuple(
        replace(
            role,
            members=replace(
                role.members,
                users=tuple(replace(item, user_id=names.user(item.user_id)) for item in role.members.users),
                organisations=frozenset(map(names.organisation, role.members.organisations)),
            ),
        )
        for role in policy.roles
    )
    return replace(policy, roles=roles)


def with_identifiers(session: Session, policy: Policy) -> Policy:
    """Return a policy with the identifiers of the accounts and institutions that it names, by name or identifier.

    Raises:
        PolicyError: if there is no such account or institution, or one is named twice in a role.
    """
    roles = tuple(
        replace(role, members=_members(session, f"roles[{place}].members", role.members))
        for place, role in enumerate(policy.roles)
    )
    return replace(policy, roles=roles)


def _members(session: Session, path: str, members: Members) -> Members:
    users = tuple(
        replace(item, user_id=user_id(session, item.user_id, path=f"{path}.users[{place}]"))
        for place, item in enumerate(members.users)
    )
    known = [item.user_id for item in users]
    if len(set(known)) != len(known):
        raise PolicyError(f"{path}.users: somebody is there twice.", fix="name each person once in a role.")
    return replace(
        members,
        users=users,
        organisations=frozenset(
            _organisation_id(session, item, path=f"{path}.organisations") for item in sorted(members.organisations)
        ),
    )


def user_id(session: Session, text: str, *, path: str = "") -> str:
    """Return the identifier of an account from its identifier or name."""
    found = session.scalar(select(User.id).where(User.id == text))
    found = found or session.scalar(select(User.id).where(User.name == text))
    if found is None:
        where = f"{path}: there" if path else "There"
        raise PolicyError(
            f'{where} is no account "{text}".', fix="write the name of the account as the person signs in with it."
        )
    return found


def _organisation_id(session: Session, text: str, *, path: str) -> str:
    found = session.scalar(select(Organisation.id).where(Organisation.id == text))
    found = found or session.scalar(select(Organisation.id).where(Organisation.name == text))
    if found is None:
        raise PolicyError(f'{path}: there is no organisation "{text}".', fix="write its name as the hub shows it.")
    return found
