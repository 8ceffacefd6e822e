"""Algorithms of outside providers, their versions, and which version which dataset's owner has allowed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cloister.hub.store.models.accounts import Organisation, User
from cloister.hub.store.models.base import Base, JsonValue, now


class HubAlgorithm(Base):
    """An algorithm; its name is the ``id`` of its manifests, and belongs to whoever registered it first."""

    __tablename__ = "algorithms"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    provider_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    organisation_id: Mapped[str | None] = mapped_column(ForeignKey("organisations.id"), index=True)
    created: Mapped[datetime] = mapped_column(default=now)

    provider: Mapped[User] = relationship(lazy="joined")
    organisation: Mapped[Organisation | None] = relationship(lazy="joined")
    versions: Mapped[list[AlgorithmVersion]] = relationship(back_populates="algorithm")


class AlgorithmVersion(Base):
    """One version: its manifest, its sources as a sealed file, and what the checks found.

    ``digest`` is of the sources, ``sealed_digest`` of the sealed file. ``state`` is one of
    `cloister.hub.domain.algorithms.VersionState`; from ``published`` on nothing but the state changes.
    """

    __tablename__ = "algorithm_versions"

    id: Mapped[str] = mapped_column(primary_key=True)
    algorithm_id: Mapped[str] = mapped_column(ForeignKey("algorithms.id"), index=True)
    version: Mapped[str]
    state: Mapped[str] = mapped_column(default="draft")
    manifest: Mapped[dict[str, JsonValue]]
    digest: Mapped[str]
    blob_id: Mapped[str]
    wrapped_key: Mapped[bytes]
    size: Mapped[int]
    sealed_digest: Mapped[str]
    report: Mapped[dict[str, JsonValue] | None]
    created: Mapped[datetime] = mapped_column(default=now)
    published: Mapped[datetime | None]

    algorithm: Mapped[HubAlgorithm] = relationship(back_populates="versions", lazy="joined")

    __table_args__ = (UniqueConstraint("algorithm_id", "version"),)


class AlgorithmAllowance(Base):
    """An owner's permission to run exactly these sources on one dataset, perhaps until some moment."""

    __tablename__ = "algorithm_allowances"

    id: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), index=True)
    version_id: Mapped[str] = mapped_column(ForeignKey("algorithm_versions.id"), index=True)
    digest: Mapped[str]
    owner_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    until: Mapped[datetime | None]
    created: Mapped[datetime] = mapped_column(default=now)

    version: Mapped[AlgorithmVersion] = relationship(lazy="joined")
    owner: Mapped[User] = relationship(lazy="joined")

    __table_args__ = (UniqueConstraint("dataset_id", "version_id"),)
