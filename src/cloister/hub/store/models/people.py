"""Accounts, organisations, sign-ins and tokens. Secrets are kept as digests or sealed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cloister.hub.domain.names import folded
from cloister.hub.store.models.base import Base, JsonValue, new_id, now


def _folded_name(context: Any) -> str:  # the context of an insert
    return folded(context.get_current_parameters()["name"])


class Organisation(Base):
    """An institution; no two have names that differ only by capitals, width or spaces."""

    __tablename__ = "organisations"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    folded: Mapped[str] = mapped_column(unique=True, default=_folded_name)
    created: Mapped[datetime] = mapped_column(default=now)


class User(Base):
    """An account. ``proposed`` is a change that somebody of the institution must confirm first."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    folded: Mapped[str] = mapped_column(unique=True, default=_folded_name)
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
