"""Tables as services read them and hand them out: whom they protect, which columns leave, and as which files.

In a CSV file, a cell that a spreadsheet would run as a formula is written so that it does not. What the hub has made is
attacked before its owner is asked to let it out.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyarrow import compute, csv, parquet

from cloister.attacks import GatePolicy, GateResult, gate
from cloister.data.columns import Column, Role
from cloister.data.table import Table
from cloister.errors import ForbiddenError, UnknownColumnError
from cloister.hub.domain.policy import ALL_USES
from cloister.hub.services.registry import ResultFile, ServiceWork
from cloister.queries import PrivateTable
from cloister.report import Report

__all__ = [
    "GATE",
    "describe_protection",
    "free_columns",
    "gate_of",
    "parquet_file",
    "person_table",
    "private_table",
    "run_gate",
    "with_unit",
]


def with_unit(work: ServiceWork) -> Table:
    """Return the table of a run in which the column that names persons is an identifier, also if it is hidden."""
    table, unit = work.table, str(work.facts.get("unit", "row"))
    if table.schema is None or unit not in table.columns or unit in table.schema:
        return table
    return table.with_schema(table.schema.with_column(Column(name=unit, role=Role.IDENTIFIER, subject=True)))


def private_table(work: ServiceWork) -> PrivateTable:
    """Return the rows as they can be asked, charged to the ledger of the run, for whom the owner protects."""
    return PrivateTable(
        work.table,
        dataset=work.account,
        ledger=work.ledger,
        unit=work.facts["unit"],
        adjacency=work.facts["adjacency"],
        max_rows_per_unit=work.facts.get("max_rows_per_unit"),
        version=work.version,
    )


def person_table(work: ServiceWork) -> Table:
    """Return the rows, in which a person is named only if the owner says that persons are protected."""
    table = with_unit(work)
    named = None if table.schema is None else table.schema.subject
    if named is None or work.facts.get("unit", "row") != "row":
        return table
    return table.with_schema(table.schema.without(named))


def describe_protection(work: ServiceWork) -> dict[str, Any]:
    """Return whom the owner protects, as estimators and synthesizers take it."""
    unit = str(work.facts.get("unit", "row"))
    limit = int(work.facts.get("max_rows_per_unit") or 1) if unit != "row" else 1
    return {"unit": unit, "max_rows_per_unit": limit, "adjacency": work.facts.get("adjacency", "add_remove")}


def free_columns(work: ServiceWork, asked: Iterable[str] = ()) -> list[str]:
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


def parquet_file(name: str, rows: pa.Table) -> ResultFile:
    """Return a table as a Parquet file."""
    written = io.BytesIO()
    # Metadata could carry along what was not released.
    parquet.write_table(rows.replace_schema_metadata(None), written)
    return ResultFile(name=name, media_type="application/vnd.apache.parquet", content=written.getvalue())


_FORMULA = "^[=+\\-@\t\r\n＝＋－＠]"  # noqa: RUF001  # spreadsheets take the wide signs for the others


def csv_file(name: str, table: pa.Table) -> ResultFile:
    """Return a table as a CSV file that is safe to open in a spreadsheet."""
    columns = [_harmless(column) for column in table.columns]
    names = [f"'{title}" if re.match(_FORMULA, title) else title for title in table.column_names]
    written = io.BytesIO()
    csv.write_csv(pa.table(columns, names=names), written)
    return ResultFile(name=name, media_type="text/csv; charset=utf-8", content=written.getvalue())


def _harmless(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string_view(kind):
        column, kind = column.cast(pa.string()), pa.string()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    return compute.replace_substring_regex(column, pattern=_FORMULA, replacement=r"'\0")


GATE = "gate"
"""Where owners find what the gate said."""

_SECONDS = 120
_FAILED = "The attacks could not be run, so nobody knows what they would find."


def run_gate(
    work: ServiceWork, release: Any, *, report: Report | None, begin: float, end: float, **known: Any
) -> GateResult:
    """Return what the gate says about a release, telling how far it is between two shares of the work."""
    return gate(
        release,
        report=report,
        policy=GatePolicy(time_limit=_SECONDS),
        progress=lambda share, attack: work.progress(begin + (end - begin) * share, f"attacking: {attack}"),
        **known,
    )


def gate_of(found: GateResult | None) -> dict[str, Any]:
    """Return what owners are told; without a result, that nothing was tried."""
    return {GATE: {"publish": False, "verdict": _FAILED, "findings": []} if found is None else found.to_dict()}
