"""Letting somebody into a hub from its own machine: how the first operator gets an account."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError
from cloister.hub.domain.names import folded
from cloister.hub.hub import open_hub
from cloister.hub.services.accounts import enrolling, people
from cloister.hub.settings import Settings
from cloister.hub.store.models import Organisation, User

__all__ = ["Invitation", "invite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A link by which somebody sets their password, shown once."""

    account: str
    roles: tuple[str, ...]
    address: str
    expires: datetime

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": "cloister.invitation/1",
            "account": self.account,
            "roles": list(self.roles),
            "address": self.address,
            "expires": self.expires.isoformat(),
        }


def invite(settings: Settings, name: str, *, roles: Iterable[str] = (), organisation: str | None = None) -> Invitation:
    """Make an account, or take the one of that name, and return a new link for it.

    Raises:
        ConflictError: if there is an account of that name and roles or an organisation were given.
    """
    wanted = [role.strip().replace(" ", "_").replace("-", "_") for role in roles]
    hub = open_hub(settings)
    try:
        with hub.store.writing() as session:
            user = session.scalars(select(User).where(User.folded == folded(name))).one_or_none()
            if user is not None and (wanted or organisation):
                raise ConflictError(
                    "There is an account of this name.", fix="leave the roles out for a new link, or take another name."
                )
            if user is None:
                user = people.create_account(
                    session,
                    name,
                    by=None,
                    roles=wanted,
                    organisation_id=None if organisation is None else _organisation(session, organisation),
                    separate=settings.separate_duties,
                )
            link = enrolling.make_link(session, user.id, by=None)
            return Invitation(
                account=user.name,
                roles=tuple(user.roles),
                address=f"{settings.address}/enrol/{link.token}",
                expires=link.expires,
            )
    finally:
        hub.close()


def _organisation(session: Session, name: str) -> str:
    found = session.scalars(select(Organisation).where(Organisation.folded == folded(name))).one_or_none()
    return (people.create_organisation(session, name, by=None) if found is None else found).id
