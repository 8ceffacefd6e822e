"""The tables that a query may name: private ones on one engine, and public ones without protected rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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

    def canonical(self) -> str:
        """Return a text that is the same for the same tables: names, columns in order, types and public domains."""
        return json.dumps([self.person, *(_described(name, table) for name, table in self.private.items())])


def _described(name: str, table: Table) -> list[Any]:
    columns = [[column, str(storage)] for column, storage in table.types.items()]
    schema = None if table.schema is None else table.schema.to_dict()
    return [name, columns, list(table.engine.missing), schema]
