"""Small text files of the custodian: read with one clear error, and the rows of hierarchies in them.

A hierarchy has the text form that ARX uses: semicolon-separated, one row per raw value, from the value to ``*``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from cloister.core.atomic_files import write_text
from cloister.errors import HierarchyError, SchemaError, SourceNotFoundError


def read_text(path: str | Path, *, what: str) -> str:
    """Return the text of a UTF-8 file, with or without a byte-order mark.

    Raises:
        SourceNotFoundError: if there is no such file.
        SchemaError: if it cannot be read as text.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SourceNotFoundError(f'There is no {what} file "{path}".', fix="check the path.") from None
    except UnicodeDecodeError:
        raise SchemaError(f'The {what} file "{path}" is not UTF-8 text.', fix="save it as UTF-8.") from None
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise SchemaError(
            f'The {what} file "{path}" cannot be read: {reason}.', fix="give the path of a readable file."
        ) from None


_FORM = 'write one row per value with semicolons between the cells, such as "39;30-39;*".'


def read_rows(path: str | Path) -> list[list[str]]:
    """Return the rows of a hierarchy file."""
    return parse_rows(read_text(path, what="hierarchy"), where=f'The hierarchy file "{path}"')


def parse_rows(text: str, *, where: str) -> list[list[str]]:
    """Return the rows of a text; blank lines and empty cells at the end of a row are passed over."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        rows = [_trim_row(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=";", strict=True) if row]
    except csv.Error:
        raise HierarchyError(f"{where} is not semicolon-separated text.", fix=_FORM) from None
    if 2 * sum("," in line for line in lines) > len(lines) and ";" not in text:
        raise HierarchyError(f"{where} has commas between its cells, or only one cell in a row.", fix=_FORM)
    if not any(rows):
        raise HierarchyError(f"{where} is empty.", fix=_FORM)
    for number, row in enumerate(rows, start=1):
        if "" in row[1:]:
            raise HierarchyError(
                f"Row {number} of {where[0].lower()}{where[1:]} has an empty cell between two names.",
                fix="fill the cell in, or repeat the name before it.",
            )
    return rows


def format_rows(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as semicolon-separated text; a carriage return in a name needs quotes that csv does not add."""
    listed = list(rows)
    returns = any("\r" in name for row in listed for name in row)
    target = io.StringIO(newline="")
    writer = csv.writer(
        target, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
    )
    writer.writerows(listed)
    return target.getvalue()


def write_rows(path: str | Path, rows: Iterable[Sequence[str]], *, overwrite: bool) -> None:
    """Write rows to a file, whole or not at all."""
    write_text(path, format_rows(rows), overwrite=overwrite)


def _trim_row(row: list[str]) -> list[str]:
    while len(row) > 1 and row[-1] == "":
        row = row[:-1]
    return row
