"""Accounts, organisations, tokens, and what signing in needs to remember. Secrets are kept as digests or sealed.

Signing in needs tries, browsers that were here before, links, codes and other sign-in services.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cloister.hub.domain.untrusted_input import fold_name
from cloister.hub.store.models.base import Base, JsonValue, new_id, now


def _fold_name(context: Any) -> str:  # the context of an insert
    return fold_name(context.get_current_parameters()["name"])


class Organisation(Base):
    """An institution; no two have names that differ only by capitals, width or spaces."""

    __tablename__ = "organisations"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    folded: Mapped[str] = mapped_column(unique=True, default=_fold_name)
    created: Mapped[datetime] = mapped_column(default=now)


class User(Base):
    """An account. ``proposed`` is a change that somebody of the institution must confirm first."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    folded: Mapped[str] = mapped_column(unique=True, default=_fold_name)
    display_name: Mapped[str] = mapped_column(default="")
    email: Mapped[str | None] = mapped_column(unique=True)
    password_hash: Mapped[str | None]
    totp_sealed: Mapped[bytes | None]
    totp_proposed: Mapped[bytes | None]
    totp_last_step: Mapped[int | None]
    factor_reset_by: Mapped[str | None]
    factor_reset_asked_by: Mapped[str | None]
    roles: Mapped[list[str]] = mapped_column(default=list)
    attributes: Mapped[dict[str, JsonValue]] = mapped_column(default=dict)
    organisation_id: Mapped[str | None] = mapped_column(ForeignKey("organisations.id"), index=True)
    proposed: Mapped[dict[str, JsonValue] | None]
    is_disabled: Mapped[bool] = mapped_column(default=False)
    created: Mapped[datetime] = mapped_column(default=now)

    organisation: Mapped[Organisation | None] = relationship(lazy="joined")


class LoginSession(Base):
    """A sign-in from a browser; the cookie is kept as a digest. No address and no kind of browser is kept."""

    __tablename__ = "login_sessions"

    digest: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(unique=True, default=lambda: new_id("sgn"))
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    csrf_digest: Mapped[str]
    method: Mapped[str] = mapped_column(default="password")
    created: Mapped[datetime] = mapped_column(default=now)
    seen: Mapped[datetime] = mapped_column(default=now)
    expires: Mapped[datetime]

    user: Mapped[User] = relationship(lazy="joined")


class ApiToken(Base):
    """A token for programs, for some actions; kept as a digest."""

    __tablename__ = "api_tokens"

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    digest: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]] = mapped_column(default=list)
    created: Mapped[datetime] = mapped_column(default=now)
    expires: Mapped[datetime | None]
    revoked: Mapped[datetime | None]

    user: Mapped[User] = relationship(lazy="joined")


class SignInTries(Base):
    """Failed tries since the last success, for a name (known or not) or for a browser; the key is a digest."""

    __tablename__ = "sign_in_tries"

    key: Mapped[str] = mapped_column(primary_key=True)
    failures: Mapped[int]
    locked_until: Mapped[datetime | None]
    updated: Mapped[datetime] = mapped_column(default=now, index=True)


class KnownBrowser(Base):
    """A browser in which somebody has signed in before; its cookie is kept as a digest."""

    __tablename__ = "known_browsers"

    digest: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    expires: Mapped[datetime]


class Enrolment(Base):
    """A one-time link by which somebody sets their own password; kept as a digest.

    ``confirmed_by`` is the second person whom a link for a data owner, operator or auditor needs.
    """

    __tablename__ = "enrolments"

    digest: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    made_by: Mapped[str | None]
    confirmed_by: Mapped[str | None]
    created: Mapped[datetime] = mapped_column(default=now)
    expires: Mapped[datetime]
    used: Mapped[datetime | None]


class RecoveryCode(Base):
    """A code that stands in for a lost second factor, once; kept as a digest."""

    __tablename__ = "recovery_codes"

    digest: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)


class Identity(Base):
    """A person at another sign-in service (OpenID Connect), by its issuer and subject."""

    __tablename__ = "identities"

    issuer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    created: Mapped[datetime] = mapped_column(default=now)


class UsedState(Base):
    """A state of an OpenID Connect sign-in that has come back once."""

    __tablename__ = "used_states"

    digest: Mapped[str] = mapped_column(primary_key=True)
    expires: Mapped[datetime]
