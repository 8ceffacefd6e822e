"""What services share that learn from rows or hand them out: the table, whom it protects, and which columns leave."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from cloister.data.columns import Column, Role
from cloister.data.table import Table
from cloister.errors import ForbiddenError, UnknownColumnError
from cloister.hub.domain.column_rules import ALL_USES
from cloister.hub.services.registry import File, Work

__all__ = ["free_columns", "parquet_file", "person_table", "protected", "with_unit"]


def with_unit(work: Work) -> Table:
    """Return the table of a run in which the column that names persons is an identifier, also if it is hidden."""
    table, unit = work.table, str(work.facts.get("unit", "row"))
    if table.schema is None or unit not in table.columns or unit in table.schema:
        return table
    return table.with_schema(table.schema.with_column(Column(name=unit, role=Role.IDENTIFIER, subject=True)))


def person_table(work: Work) -> Table:
    """Return the rows, in which a person is named only if the owner says that persons are protected."""
    table = with_unit(work)
    named = None if table.schema is None else table.schema.subject
    if named is None or work.facts.get("unit", "row") != "row":
        return table
    return table.with_schema(table.schema.without(named))


def protected(work: Work) -> dict[str, Any]:
    """Return whom the owner protects, as estimators and synthesizers take it."""
    unit = str(work.facts.get("unit", "row"))
    limit = int(work.facts.get("max_rows_per_unit") or 1) if unit != "row" else 1
    return {"unit": unit, "max_rows_per_unit": limit, "adjacency": work.facts.get("adjacency", "add_remove")}


def free_columns(work: Work, asked: Iterable[str] = ()) -> list[str]:
    """Return the columns that may be handed out, and refuse others that are asked for.

    A column that the policy lets the person use in some ways only is not handed out.
    """
    free = [name for name, uses in work.rights.uses if uses >= ALL_USES]
    for name in asked:
        if name not in work.rights.names:
            raise UnknownColumnError(name, work.rights.names)
        if name not in free:
            raise ForbiddenError(
                f'The policy does not let "{name}" be handed out.', fix="leave it out, or ask the owner for more."
            )
    return free


def parquet_file(name: str, rows: pa.Table) -> File:
    """Return a table as a Parquet file."""
    written = io.BytesIO()
    parquet.write_table(rows.replace_schema_metadata(None), written)
    return File(name=name, media_type="application/vnd.apache.parquet", content=written.getvalue())
