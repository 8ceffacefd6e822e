"""The tables that a query may name: private ones on one engine, and public ones without protected rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from cloister.data.table import Table

__all__ = ["Catalog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Tables by the name that SQL uses.

    Attributes:
        private: tables with protected rows; `data` is the first.
        person: the column that names the unit of privacy in every private table; None when rows are the unit.
        public: tables that everybody may see.
    """

    private: Mapping[str, Table]
    person: str | None = None
    public: Mapping[str, pa.Table] = field(default_factory=dict)
