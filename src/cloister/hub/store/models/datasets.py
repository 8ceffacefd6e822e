"""Datasets, their versions, their policies, and requests for access."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cloister.hub.store.models.accounts import Organisation
from cloister.hub.store.models.base import Base, JsonValue, now


class Dataset(Base):
    """Rows of one institution; its id is also its account in the ledger.

    ``facts`` holds what the owner states and everybody who may describe the dataset can read: unit, adjacency, limits,
    purposes, region, retention. ``state`` is draft, ready or deleted.
    """

    __tablename__ = "datasets"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    title: Mapped[str] = mapped_column(default="")
    description: Mapped[str] = mapped_column(default="")
    organisation_id: Mapped[str] = mapped_column(ForeignKey("organisations.id"), index=True)
    creator_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    state: Mapped[str] = mapped_column(default="draft")
    mode: Mapped[str] = mapped_column(default="dp")
    facts: Mapped[dict[str, JsonValue]] = mapped_column(default=dict)
    created: Mapped[datetime] = mapped_column(default=now)

    organisation: Mapped[Organisation] = relationship(lazy="joined")
    versions: Mapped[list[DatasetVersion]] = relationship(
        back_populates="dataset", order_by="DatasetVersion.number", cascade="all, delete-orphan"
    )

    __table_args__ = (UniqueConstraint("organisation_id", "name"),)


class DatasetVersion(Base):
    """One upload: a sealed file, its wrapped key, and its schema. ``state`` is uploaded, ready, failed or deleted.

    ``schema_text`` is what a person has confirmed. As long as some of it is a guess from the rows, it is in
    ``sealed_schema`` instead, under the key of the file.
    """

    __tablename__ = "dataset_versions"

    id: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), index=True)
    number: Mapped[int]
    state: Mapped[str] = mapped_column(default="uploaded")
    blob_id: Mapped[str | None]
    wrapped_key: Mapped[bytes | None]
    size: Mapped[int | None]
    source_digest: Mapped[str | None]
    columns: Mapped[list[dict[str, JsonValue]]] = mapped_column(default=list)
    schema_text: Mapped[str] = mapped_column(default="")
    sealed_schema: Mapped[bytes | None]
    created: Mapped[datetime] = mapped_column(default=now)

    dataset: Mapped[Dataset] = relationship(back_populates="versions")

    __table_args__ = (UniqueConstraint("dataset_id", "number"),)


class PolicyVersion(Base):
    """One version of the policy of one object; the newest one counts, none is ever changed."""

    __tablename__ = "policy_versions"

    id: Mapped[str] = mapped_column(primary_key=True)
    object_kind: Mapped[str]
    object_id: Mapped[str]
    number: Mapped[int]
    document: Mapped[dict[str, JsonValue]]
    author_id: Mapped[str | None] = mapped_column(ForeignKey("users.id"))
    created: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (UniqueConstraint("object_kind", "object_id", "number"),)


class AccessRequestRecord(Base):
    """A request for access, with everything that happened to it."""

    __tablename__ = "access_requests"

    id: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), index=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    state: Mapped[str]
    document: Mapped[dict[str, JsonValue]] = mapped_column(default=dict)
    history: Mapped[list[dict[str, JsonValue]]] = mapped_column(default=list)
    expires: Mapped[datetime | None]
    created: Mapped[datetime] = mapped_column(default=now)

    dataset: Mapped[Dataset] = relationship(lazy="joined")
