"""What the hub records about itself: the audit log, hash-chained, notices for people, and where it keeps its files."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.store.models.base import Base, now


class AuditEntry(Base):
    """One decision or event; ``details`` is canonical JSON text, sealed by ``digest`` over it and the entry before."""

    __tablename__ = "audit_entries"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    time: Mapped[str]
    actor: Mapped[str] = mapped_column(index=True)
    action: Mapped[str]
    target: Mapped[str] = mapped_column(index=True)
    dataset_id: Mapped[str | None] = mapped_column(index=True)
    outcome: Mapped[str]
    details: Mapped[str]
    previous: Mapped[str]
    digest: Mapped[str] = mapped_column(unique=True)


class NoticeRecord(Base):
    """A line on somebody's start page."""

    __tablename__ = "notices"

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    text: Mapped[str]
    link: Mapped[str] = mapped_column(default="")
    is_read: Mapped[bool] = mapped_column(default=False)
    created: Mapped[datetime] = mapped_column(default=now)


class HubFolder(Base):
    """The one folder that belongs to this database, by the random text in its file ``identity``; there is one row."""

    __tablename__ = "hub_folders"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    identity: Mapped[str]

    __table_args__ = (CheckConstraint("number = 1", name="ck_hub_folders_one"),)
