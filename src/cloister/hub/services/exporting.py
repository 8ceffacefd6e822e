"""Files that results bring along. A cell that a spreadsheet would run as a formula is written so that it does not."""

from __future__ import annotations

import io
import re

import pyarrow as pa
from pyarrow import compute, csv

from cloister.hub.services.registry import File

_FORMULA = "^[=+\\-@\t\r\n＝＋－＠]"  # noqa: RUF001  # spreadsheets take the wide signs for the others


def csv_file(name: str, table: pa.Table) -> File:
    """Return a table as a CSV file that is safe to open in a spreadsheet."""
    columns = [_harmless(column) for column in table.columns]
    names = [f"'{title}" if re.match(_FORMULA, title) else title for title in table.column_names]
    written = io.BytesIO()
    csv.write_csv(pa.table(columns, names=names), written)
    return File(name=name, media_type="text/csv; charset=utf-8", content=written.getvalue())


def _harmless(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string_view(kind):
        column, kind = column.cast(pa.string()), pa.string()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    return compute.replace_substring_regex(column, pattern=_FORMULA, replacement=r"'\0")
