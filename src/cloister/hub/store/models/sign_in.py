"""What signing in needs to remember: tries, browsers that were here before, links, codes and other sign-in services."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.store.models.base import Base, now


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
