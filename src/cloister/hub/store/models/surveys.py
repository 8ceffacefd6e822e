"""Surveys, and what is kept of answers to them: noisy reports, one by one, in an order that says nothing.

None of the tables about answers has a time, an address, or anything that leads from one row to another: not the reports
of one person to each other, nor to an invitation, a signature or an id. All keys are random or digests of something
random, and SQLite keeps these tables in the order of their keys (WITHOUT ROWID).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cloister.hub.store.models.accounts import Organisation, User
from cloister.hub.store.models.base import Base, now

_SORTED_BY_KEY: dict[str, Any] = {"sqlite_with_rowid": False}


class HubSurvey(Base):
    """Questions of one organisation.

    ``document`` is the survey file as JSON text, exactly as it was frozen; ``signing_key`` is wrapped and sealed, and
    gone once the survey is closed. ``submissions`` counts those that were taken; ``estimates`` is the last evaluation
    as JSON text, from ``estimated`` of them.
    """

    __tablename__ = "surveys"

    id: Mapped[str] = mapped_column(primary_key=True)
    slug: Mapped[str] = mapped_column(unique=True)
    organisation_id: Mapped[str] = mapped_column(ForeignKey("organisations.id"), index=True)
    author_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    state: Mapped[str] = mapped_column(default="draft")
    title: Mapped[str]
    document: Mapped[str]
    fingerprint: Mapped[str]
    admission: Mapped[str]
    results_are_public: Mapped[bool] = mapped_column(default=False)
    least: Mapped[int]
    code_hash: Mapped[str] = mapped_column(default="")
    wrapped_key: Mapped[bytes | None]
    signing_key: Mapped[bytes | None]
    public_key: Mapped[str | None]
    submissions: Mapped[int] = mapped_column(default=0, nullable=True)
    estimates: Mapped[str | None]
    estimated: Mapped[int] = mapped_column(default=0)
    created: Mapped[datetime] = mapped_column(default=now)
    opened: Mapped[datetime | None]
    closed: Mapped[datetime | None]

    organisation: Mapped[Organisation] = relationship(lazy="joined")
    author: Mapped[User] = relationship(lazy="joined")


class SurveyInvitation(Base):
    """A one-time token as a digest. ``asked`` is the digest of the blinded message that was signed for it."""

    __tablename__ = "survey_invitations"
    __table_args__ = _SORTED_BY_KEY

    survey_id: Mapped[str] = mapped_column(ForeignKey("surveys.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    is_used: Mapped[bool] = mapped_column(default=False)
    asked: Mapped[str | None]


class SurveySignature(Base):
    """A blind signature that was used, as a digest of its message."""

    __tablename__ = "survey_signatures"
    __table_args__ = _SORTED_BY_KEY

    survey_id: Mapped[str] = mapped_column(ForeignKey("surveys.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)


class SurveyUsedId(Base):
    """The one-time id of a submission that was counted, as a digest."""

    __tablename__ = "survey_used_ids"
    __table_args__ = _SORTED_BY_KEY

    survey_id: Mapped[str] = mapped_column(ForeignKey("surveys.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)


class SurveyReport(Base):
    """One report of one question, under a random key; ``value`` is what the device made, as JSON text."""

    __tablename__ = "survey_reports"
    __table_args__ = _SORTED_BY_KEY

    survey_id: Mapped[str] = mapped_column(ForeignKey("surveys.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    question: Mapped[str]
    level: Mapped[str]
    value: Mapped[str]
