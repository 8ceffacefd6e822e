"""The header line of a CSV file: its names and its delimiter, and whether it is one."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Sequence

from cloister.data.engines.csv_errors import InputFile, check_is_text, explained, open_bytes
from cloister.errors import DataError, DataWarning

__all__ = ["ENCODINGS", "check_header", "read_header"]

ENCODINGS = {"utf-8": "utf-8-sig", "latin-1": "latin-1", "cp1252": "cp1252", "utf-16": "utf-16"}
"""The encodings of text files, and what Python calls them."""

_DELIMITERS = ",;\t|"
_LONGEST = 2**20
_VALUE = re.compile(
    r"[+-]?[0-9]+([.,][0-9]+)?"  # a number
    r"|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9:.]+Z?)?"  # a date
    r"|[^@\s]+@[^@\s]+\.[^@\s]+"  # an e-mail address
)
_YEAR = re.compile("(1[89]|20)[0-9]{2}")
_HEADER_FIX = "put a line with the names of the columns at its top; if these are the names, put a letter before each."


def read_header(path: InputFile, encoding: str) -> tuple[list[str], str]:
    """Return the names of the columns and the delimiter."""
    try:
        check_is_text(path, encoding)
        line = _first_line(path, ENCODINGS[encoding])
    except (UnicodeError, OSError, EOFError) as error:
        raise explained([path], "unicode" if isinstance(error, UnicodeError) else str(error), encoding) from None
    if not line.strip():
        raise DataError(f'"{path.name}" is empty.', fix="give a file with a header line and rows below it.")
    bare = re.sub(r'"[^"]*"', "", line)
    delimiter = max(_DELIMITERS, key=bare.count)
    try:
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter)), delimiter
    except csv.Error:
        raise _too_long(path) from None


def check_header(path: InputFile, names: Sequence[str]) -> None:
    """Refuse a header whose names are mostly values, and warn if many are; names that may be cells are not quoted.

    Years and counted columns (0, 1, 2, ...) are taken for names.

    Raises:
        DataError: if the file seems to have no header line.
    """
    values = sum(_looks_like_value(name.strip(), position) for position, name in enumerate(names))
    if 2 * values > len(names):
        raise DataError(
            f'The first line of "{path.name}" holds numbers, dates or e-mail addresses, so it seems to be no header.',
            fix=_HEADER_FIX,
        )
    if 3 * values > len(names):
        warnings.warn(
            f'Several column names of "{path.name}" look like values. If its first line is no header, {_HEADER_FIX}',
            DataWarning,
            stacklevel=2,
        )


def _looks_like_value(name: str, position: int) -> bool:
    counted = name in (str(position), str(position + 1))
    return not counted and _YEAR.fullmatch(name) is None and _VALUE.fullmatch(name) is not None


def _first_line(path: InputFile, encoding: str) -> str:
    """Return the first line, and those after it while a quote is open, whatever ends the lines."""
    with open_bytes(path) as raw, io.TextIOWrapper(raw, encoding=encoding, newline="") as stream:
        line = stream.readline(_LONGEST)
        while line.count('"') % 2 and len(line) < _LONGEST and (more := stream.readline(_LONGEST)):
            line += more
    if len(line) >= _LONGEST:
        raise _too_long(path)
    return line


def _too_long(path: InputFile) -> DataError:
    return DataError(
        f'The header of "{path.name}" is far too long, or has a quote that is never closed.',
        fix="check that the file is CSV text with a header line.",
    )
