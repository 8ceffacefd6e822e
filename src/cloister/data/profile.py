"""What an engine tells about one column, so that a schema can be proposed. Profiles are private: never print them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class StorageType(StrEnum):
    """The types that every engine's types are mapped to."""

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """Facts about one column, computed inside the engine. ``common`` holds its most frequent values, not all."""

    name: str
    type: StorageType
    rows: int
    missing: int
    distinct: int
    minimum: Any = field(default=None, repr=False)
    maximum: Any = field(default=None, repr=False)
    common: tuple[Any, ...] = field(default=(), repr=False)
