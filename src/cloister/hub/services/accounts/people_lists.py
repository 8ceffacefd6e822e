"""Lists of accounts and institutions, as operators see them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.hub.domain.roles import Role, Subject
from cloister.hub.services.accounts.people import owners_of
from cloister.hub.services.accounts.second_factor import is_on
from cloister.hub.store.models import Organisation, User

PAGE = 100
LONGEST_PAGE = 500


def describe(user: User) -> dict[str, Any]:
    """Return an account as operators see it: no secrets, no sign-ins."""
    return {
        "id": user.id,
        "name": user.name,
        "display_name": user.display_name,
        "organisation_id": user.organisation_id,
        "organisation": None if user.organisation is None else user.organisation.name,
        "roles": sorted(user.roles),
        "attributes": dict(user.attributes),
        "is_disabled": user.is_disabled,
        "has_password": user.password_hash is not None,
        "has_second_factor": is_on(user),
        "proposed": user.proposed,
    }


def list_accounts(session: Session, *, after: str = "", limit: int = PAGE) -> tuple[list[dict[str, Any]], str | None]:
    """Return accounts in the order of their names, and the name to go on after, or None at the end."""
    size = min(limit, LONGEST_PAGE)
    found = list(session.scalars(select(User).where(User.name > after).order_by(User.name).limit(size + 1)))
    page = found[:size]
    return [describe(user) for user in page], page[-1].name if len(found) > size else None


def list_organisations(session: Session) -> list[dict[str, Any]]:
    """Return the institutions in the order of their names."""
    found = session.scalars(select(Organisation).order_by(Organisation.folded))
    return [{"id": item.id, "name": item.name, "since": item.created.isoformat()} for item in found]


def list_proposed(session: Session, subject: Subject) -> list[dict[str, Any]]:
    """Return the people whom somebody may confirm as data owners."""
    waiting = [user for user in session.scalars(select(User).order_by(User.name)) if user.proposed is not None]
    return [
        {"id": user.id, "name": user.name, "display_name": user.display_name, "roles": (user.proposed or {})["roles"]}
        for user in waiting
        if _may_confirm(session, subject, (user.proposed or {})["organisation_id"])
    ]


def _may_confirm(session: Session, subject: Subject, organisation_id: str) -> bool:
    owners = owners_of(session, organisation_id)
    if any(owner.id == subject.user_id for owner in owners):
        return True
    return not owners and Role.AUDITOR in subject.roles
