"""What organisations were answered under inference control."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.store.models.base import Base


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
