"""Where a hub keeps its files."""

from __future__ import annotations

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.store.models.base import Base


class HubFolder(Base):
    """The one folder that belongs to this database, by the random text in its file ``identity``; there is one row."""

    __tablename__ = "hub_folders"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    identity: Mapped[str]

    __table_args__ = (CheckConstraint("number = 1", name="ck_hub_folders_one"),)
