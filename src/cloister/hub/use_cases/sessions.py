"""Sign-ins and tokens as the gateway sees them: a secret comes in, a person or nobody comes out.

Secrets are 256 random bits, kept as SHA-256; looking them up by their digest needs no comparison in constant time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.store.models import ApiToken, LoginSession, User, now
from cloister.hub.store.models.base import random_text

SECRET_BYTES = 32
SEEN_EVERY = timedelta(minutes=5)
"""How exactly the last use of a sign-in is kept."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Who asks.

    Attributes:
        subject: the person.
        csrf_digest: the digest that the proof against cross-site requests must have; None for tokens.
        login_id: which sign-in it is; None for tokens.
        lacks_factor: whether a password alone opens the account; one without a password is opened by another service.
        seen: when it was last used, to some minutes.
    """

    subject: AccessSubject
    csrf_digest: str | None
    login_id: str | None = None
    seen: datetime | None = None
    lacks_factor: bool = False

    @property
    def is_due(self) -> bool:
        """Return whether the last use should be written down again."""
        return self.seen is not None and self.seen + SEEN_EVERY <= now()


def digest_secret(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def open_login(session: Session, user: User, *, hours: int, method: str = "password") -> tuple[str, str]:
    """Begin a sign-in and return the secrets for its cookie and against cross-site requests; both are always new."""
    cookie, csrf = random_text(SECRET_BYTES), random_text(SECRET_BYTES)
    session.execute(delete(LoginSession).where(LoginSession.expires < now()))
    session.add(
        LoginSession(
            digest=digest_secret(cookie),
            user_id=user.id,
            csrf_digest=digest_secret(csrf),
            method=method,
            expires=now() + timedelta(hours=hours),
        )
    )
    return cookie, csrf


def close_login(session: Session, cookie: str) -> None:
    """End a sign-in."""
    session.execute(delete(LoginSession).where(LoginSession.digest == digest_secret(cookie)))


def close_logins(session: Session, user_id: str, *, but: str | None = None, only: str | None = None) -> int:
    """End somebody's sign-ins, all but one, or only one, by id; return how many ended."""
    ending = delete(LoginSession).where(LoginSession.user_id == user_id)
    if but is not None:
        ending = ending.where(LoginSession.id != but)
    if only is not None:
        ending = ending.where(LoginSession.id == only)
    ended: int = session.connection().execute(ending).rowcount
    return ended


def find_login(session: Session, cookie: str, *, idle_minutes: int = 60) -> SignedIn | None:
    """Return who holds a cookie, or None where the sign-in has ended or was not used for too long."""
    found = session.get(LoginSession, digest_secret(cookie))
    if found is None or found.expires <= now() or found.user.is_disabled:
        return None
    if found.seen + timedelta(minutes=idle_minutes) <= now():
        return None
    return SignedIn(subject_of(found.user), found.csrf_digest, found.id, found.seen, _lacks_factor(found.user))


def touch_login(session: Session, login_id: str) -> None:
    """Write down that a sign-in is in use."""
    session.execute(update(LoginSession).where(LoginSession.id == login_id).values(seen=now()))


def find_token(session: Session, secret: str) -> SignedIn | None:
    """Return who holds a token, or None."""
    found = session.query(ApiToken).filter_by(digest=digest_secret(secret)).one_or_none()
    if found is None or found.revoked is not None or found.user.is_disabled:
        return None
    if found.expires is not None and found.expires <= now():
        return None
    subject = subject_of(found.user, scopes=frozenset(found.scopes))
    return SignedIn(subject, None, lacks_factor=_lacks_factor(found.user))


def subject_of(user: User, *, scopes: frozenset[str] | None = None) -> AccessSubject:
    """Return an account as somebody who asks."""
    return AccessSubject(
        user_id=user.id,
        name=user.name,
        organisation_id=user.organisation_id,
        roles=frozenset(AccountRole(role) for role in user.roles),
        attributes=MappingProxyType({name: str(value) for name, value in user.attributes.items()}),
        scopes=scopes,
    )


def _lacks_factor(user: User) -> bool:
    return user.password_hash is not None and user.totp_sealed is None
