"""The text of a CSV file before an engine reads it: delimiter, encoding, whether line one is a header, and errors.

The header line gives the names and the delimiter, and it is checked whether it is one. Errors are in our own words:
DuckDB's and Python's messages may quote cells.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Literal, Protocol, cast

from cloister.errors import DataError, DataWarning

__all__ = [
    "ENCODINGS",
    "InputFile",
    "check_header",
    "check_is_text",
    "explain_failure",
    "listing",
    "open_bytes",
    "read_header",
]


_CHUNK = 2**20
_NOT_TEXT = {
    b"PK\x03\x04": ("a zip archive or an Excel workbook", "unpack it, or save the sheet as CSV (UTF-8)."),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", "save the sheet as CSV (UTF-8)."),
    b"\x1f\x8b": ("compressed with gzip", 'let its name end in ".csv.gz".'),
    b"PAR1": ("a Parquet file", 'let its name end in ".parquet".'),
}
_OTHER_ENCODINGS = {
    "utf-8": 'encoding="latin-1", or encoding="cp1252" for a file from Windows',
    "latin-1": 'encoding="cp1252"',
}
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BIG_ENDIAN, _LITTLE_ENDIAN = b"\xfe\xff", b"\xff\xfe"


class InputFile(Protocol):
    """What is needed of a file: a path, or a file that only this process can read."""

    @property
    def name(self) -> str:
        """Return what it is called in errors."""
        ...

    @property
    def suffix(self) -> str:
        """Return the ending of its name."""
        ...

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        """Open it for reading."""
        ...

    def absolute(self) -> object:
        """Return what, written as text, DuckDB finds it by."""
        ...


def open_bytes(path: InputFile) -> IO[bytes]:
    """Open a file, unpacked if its name says that it is compressed."""
    if isinstance(path, Path) and path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def check_is_text(path: InputFile, encoding: str) -> None:
    """Refuse a file whose first bytes say that it is something else than text in an encoding.

    Raises:
        DataError: with what it is and how to open it.
    """
    with open_bytes(path) as stream:
        first = stream.read(4)
    for start, (what, fix) in _NOT_TEXT.items():
        if first.startswith(start):
            raise DataError(f'"{path.name}" is {what}, not CSV text.', fix=fix)
    if first.startswith(_BIG_ENDIAN):
        raise DataError(f'"{path.name}" is UTF-16 text with the larger byte first.', fix="save it as UTF-8.")
    if first.startswith(_LITTLE_ENDIAN) and encoding != "utf-16":
        raise DataError(f'"{path.name}" is UTF-16 text.', fix='give its encoding, encoding="utf-16".')


def explain_failure(paths: Sequence[InputFile], message: str, encoding: str) -> DataError:
    """Return our own error for DuckDB's or Python's."""
    where = re.search(r"CSV Error on Line: (\d+)", message)
    place = f"{listing(paths)}, line {where[1]}," if where else listing(paths)
    folded = message.lower()
    if "unicode" in folded or "encoded" in folded:
        other = _OTHER_ENCODINGS.get(encoding, 'encoding="utf-8"')
        return DataError(
            f"{place} is not {encoding.upper()} text.",
            fix=f"give its encoding, for example {other}.",
        )
    if "gzip" in folded or "compressed" in folded or "crc" in folded:
        return DataError(
            f"{place} is not a complete gzip file.", fix="copy it again, or unpack it with gunzip to check."
        )
    if "maximum line size" in folded:
        return DataError(
            f"{place} is longer than two million characters.",
            fix="shorten the long cell or leave its column out; if a quote before it is never closed, close it.",
        )
    if "number of columns" in folded:
        return DataError(
            f"{place} has more or fewer cells than the header.",
            fix="give every row one cell per column; put cells that contain the delimiter in double quotes.",
        )
    return _explain_by_scan(paths, place)


def listing(paths: Sequence[InputFile]) -> str:
    """Return the name of a file, and how many others are beside it."""
    others = f" (or one of the {len(paths) - 1} files beside it)" if len(paths) > 1 else ""
    return f'"{paths[0].name}"{others}'


def _explain_by_scan(paths: Sequence[InputFile], place: str) -> DataError:
    """Return an error for files of which the reader says only that they are wrong, or blames a quote."""
    seen = [_scan(path) for path in paths]
    if any(quotes % 2 for quotes, _ in seen):
        return DataError(
            f"{place} has a quote that is never closed.", fix='close it, or write a quote inside text as "".'
        )
    if any(len(ends) > 1 for _, ends in seen):
        return DataError(
            f"{place} ends some lines in one way and some in another (LF, CR LF or CR).",
            fix="make all line ends alike, for example with dos2unix.",
        )
    if any(quotes for quotes, _ in seen):
        return DataError(
            f"{place} has a quote in the wrong place.",
            fix='put the whole cell in double quotes, and write a quote inside it as "".',
        )
    return DataError(
        f"{place} could not be read as CSV.", fix="save it again as comma-separated UTF-8 text with a header."
    )


def _chunks(path: InputFile) -> Iterator[bytes]:
    try:
        with open_bytes(path) as stream:
            while chunk := stream.read(_CHUNK):
                # CR LF must not be cut in two, or one line end would look like two.
                yield chunk + stream.read(1) if chunk.endswith(b"\r") else chunk
    except (OSError, EOFError):
        return


def _scan(path: InputFile) -> tuple[int, set[bytes]]:
    """Return the number of quotes and the kinds of line ends outside quotes."""
    quotes, ends = 0, set[bytes]()
    for chunk in _chunks(path):
        pieces = chunk.split(b'"')
        # Pieces alternate between outside and inside of quotes, also across chunks.
        outside = pieces[quotes % 2 :: 2]
        ends.update(end for piece in outside for end in _LINE_END.findall(piece))
        quotes += len(pieces) - 1
    return quotes, ends


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
        raise explain_failure([path], "unicode" if isinstance(error, UnicodeError) else str(error), encoding) from None
    if not line.strip():
        raise DataError(f'"{path.name}" is empty.', fix="give a file with a header line and rows below it.")
    # Delimiters inside of quoted names do not count.
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
        # A quoted name may go on in the next line.
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
