"""Jobs on datasets, their results, and what each person and organisation has spent.

Also what organisations were answered under inference control.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cloister.hub.store.models.accounts import User
from cloister.hub.store.models.base import Base, JsonValue, exact_now, now
from cloister.hub.store.models.datasets import Dataset


class Job(Base):
    """One run of a service. It is paid for (``receipt``) in the transaction that adds it.

    ``state`` is one of `cloister.hub.domain.lifecycles.JobState`. ``attempt`` counts claims: only the worker with the
    last claim can end the job. ``losses`` counts the workers that were lost with it. ``error`` holds, beside a
    sentence for the person, the kind of a failure, which only the owner of the data may see. ``decision`` is what the
    owner decided about a release.
    """

    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(primary_key=True)
    service: Mapped[str]
    service_version: Mapped[str] = mapped_column(default="")
    state: Mapped[str] = mapped_column(default="queued")
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id"), index=True)
    version_id: Mapped[str | None]
    requester_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    organisation_id: Mapped[str | None]
    purpose: Mapped[str] = mapped_column(default="")
    parameters: Mapped[dict[str, JsonValue]] = mapped_column(default=dict)
    plan: Mapped[dict[str, JsonValue]] = mapped_column(default=dict)
    receipt: Mapped[dict[str, JsonValue] | None]
    idempotency_key: Mapped[str | None]
    attempt: Mapped[int] = mapped_column(default=0)
    losses: Mapped[int] = mapped_column(default=0)
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    progress: Mapped[float] = mapped_column(default=0.0)
    stage: Mapped[str] = mapped_column(default="")
    is_cancel_requested: Mapped[bool] = mapped_column(default=False)
    error: Mapped[dict[str, JsonValue] | None]
    decision: Mapped[dict[str, JsonValue] | None]
    created: Mapped[datetime] = mapped_column(default=exact_now)
    finished: Mapped[datetime | None]

    dataset: Mapped[Dataset | None] = relationship(lazy="joined")
    requester: Mapped[User] = relationship(lazy="joined")

    __table_args__ = (
        UniqueConstraint("requester_id", "idempotency_key"),
        Index("ix_jobs_claim", "state", "created", "lease_until"),
    )


class ResultRecord(Base):
    """What a job gave, sealed under a key of its own, which the hub's key wraps; at most one for each job."""

    __tablename__ = "results"

    id: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), unique=True)
    sealed: Mapped[bytes]
    wrapped_key: Mapped[bytes]
    guarantee: Mapped[dict[str, JsonValue]] = mapped_column(default=dict)
    provenance: Mapped[dict[str, JsonValue]] = mapped_column(default=dict)
    digest: Mapped[str] = mapped_column(unique=True)
    created: Mapped[datetime] = mapped_column(default=now)


class Spending(Base):
    """What one person, organisation or purpose has spent of one dataset: exact numbers as text.

    ``scope`` is user, organisation or purpose; ``name`` is the id of the person or organisation, or the first word of
    the purpose.
    """

    __tablename__ = "spending"

    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    scope: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    amount: Mapped[str]
    delta: Mapped[str]


class AnswerHistory(Base):
    """What one organisation was answered about one dataset, sealed, because it tells which rows are alike.

    ``asker`` is the id of the organisation, or of a person without one. ``revision`` counts the answers: whoever
    decided on an older one has to decide again.
    """

    __tablename__ = "answer_histories"

    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    asker: Mapped[str] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(default=0)
    sealed: Mapped[bytes | None]
    wrapped_key: Mapped[bytes | None]
