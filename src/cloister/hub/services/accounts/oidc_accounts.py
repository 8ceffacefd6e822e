"""Accounts of people who come from another sign-in service for the first time: refused, or made without any role."""

from __future__ import annotations

import re

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import ForbiddenError, ParameterError
from cloister.hub.domain import actions
from cloister.hub.domain.names import check_title, folded
from cloister.hub.services import auditing
from cloister.hub.services.accounts.oidc_provider import Claims, Provider
from cloister.hub.store.models import Identity, User, new_id
from cloister.hub.store.models.base import random_text

_ODD = re.compile(r"[^a-z0-9._-]+")


def create_for(session: Session, provider: Provider, claims: Claims) -> User:
    """Make an account without roles for a new person, or raise where the hub does not take new ones by itself."""
    if not provider.creates_accounts:
        raise ForbiddenError(
            "Nobody here has an account that is linked to this sign-in.",
            fix="ask the hub's operator for an account, sign in to it, and link it on your account page.",
        )
    user = User(id=new_id("usr"), name=_free_name(session, provider, claims), display_name=_shown(claims))
    session.add(user)
    session.flush()
    session.add(Identity(issuer=claims.issuer, subject=claims.subject, user_id=user.id))
    auditing.append(
        session, actions.SIGN_IN, by=user.id, target=f"account:{user.id}", change="created", method=provider.name
    )
    return user


def _free_name(session: Session, provider: Provider, claims: Claims) -> str:
    """Return a name that no operator can give, so that nobody comes to a name that a policy was written for."""
    base = _ODD.sub("-", claims.preferred_name.partition("@")[0].lower()).strip("-._")[:40] or "person"
    for name in (f"{base}@{provider.name}", f"{base}-{random_text(5)}@{provider.name}"):
        if session.scalar(select(User.id).where(User.folded == folded(name))) is None:
            return name
    return f"{new_id('person')}@{provider.name}"


def _shown(claims: Claims) -> str:
    try:
        return check_title(claims.display_name, what="shown name")
    except ParameterError:
        return ""
