"""What all tables share: identifiers that tell nothing, moments in UTC, JSON."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, LargeBinary, MetaData, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase

from cloister.core.random import SystemRandomSource

JsonValue = Any
"""Whatever JSON can hold."""

JSON_COLUMN = JSON().with_variant(JSONB(), "postgresql")
"""How JSON is kept."""


class Moment(TypeDecorator[datetime]):
    """A moment in UTC, on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return the moment as it is stored."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return the moment with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """The base of every table."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text,
        int: BigInteger,
        bytes: LargeBinary,
        datetime: Moment,
        dict[str, JsonValue]: JSON_COLUMN,
        list[str]: JSON_COLUMN,
        list[dict[str, JsonValue]]: JSON_COLUMN,
    }


def now() -> datetime:
    """Return this moment, to the second."""
    return exact_now().replace(microsecond=0)


def exact_now() -> datetime:
    """Return this moment, to the microsecond, so that what happens in one second keeps its order."""
    return datetime.now(UTC)


def new_id(kind: str) -> str:
    """Return a new identifier, such as "job_k3v…", that nobody can guess or count."""
    return f"{kind}_{random_text(15)}"


def random_text(size: int) -> str:
    """Return that many random bytes as lower-case letters and digits."""
    return base64.b32encode(SystemRandomSource().random_bytes(size)).decode().rstrip("=").lower()
