"""Files through DuckDB: CSV (also gzipped) and Parquet, one or many, and of which type each column of a CSV file is.

A CSV file has a header line; its delimiter (comma, semicolon, tab or bar) is the one most frequent in that line.
An empty cell is missing, quoted or not. A column whose storage the schema states is read in exactly that type: a cell
that does not fit is missing, so that no row can change what type a column has.

- integer: a whole number of 64 bits, also written ``+7``, ``007`` or ``7.0``;
- real: a number, ``inf`` or ``nan`` (which is missing); beyond the largest double it is infinite;
- boolean: ``true`` or ``false``, in any case; date and timestamp: ISO, as below; text: the cell.

The type of any other column is decided from all its cells, by fixed rules and not from a sample: integers, real
numbers, true/false, ISO dates, ISO dates with times, else text. Numbers with leading zeros (postal codes, account
numbers) are text then. Files up to a gigabyte are read into memory once; larger ones stay on disk.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from cloister.data.engines.base import ARROW_TYPES, SQL_TYPES, repair_names
from cloister.data.engines.csv_input import (
    ENCODINGS,
    InputFile,
    check_header,
    explain_failure,
    listing,
    open_bytes,
    read_header,
)
from cloister.data.engines.duckdb import DuckDBEngine, connect, engine_over_connection
from cloister.data.engines.openers import SourceOptions, opens_files
from cloister.data.values import StorageType
from cloister.errors import DataError, ParameterError

__all__ = [
    "ENCODINGS",
    "engine_over_input",
    "in_stated_type",
    "open_csv",
    "open_parquet",
    "view_parquet",
]

_IN_MEMORY = 2**30
_GZIP_RATIO = 8
_PLAIN_FOLDERS: dict[str, exp.Expression] = {"hive_partitioning": exp.false()}
"""A folder called age=99 must not add or replace a column."""
_PARQUET = _PLAIN_FOLDERS | {"can_have_nan": exp.true()}
"""The statistics of Parquet files leave NaN out: DuckDB would take them for a proof that there is none."""
_CELLS, _DATA = "cloister_cells", "cloister_data"
_REAL = r"(?i)[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?|nan"
_PATTERNS = {
    StorageType.REAL: _REAL,
    StorageType.BOOLEAN: "(?i)true|false",
    StorageType.DATE: "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    StorageType.TIMESTAMP: r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?Z?",
}


_STATED_PATTERNS = _PATTERNS | {
    StorageType.INTEGER: r"[+-]?[0-9]+(\.0*)?",
    StorageType.REAL: _REAL.replace("(0|[1-9][0-9]*)", "[0-9]+"),
}
"""A number that is stated to be one may have leading zeros."""
_NUMBERS = (StorageType.INTEGER, StorageType.REAL)
_CANDIDATES = (StorageType.INTEGER, *_PATTERNS)
_FIRST_ROWS = 10_000
_COPIED = 2**20


@opens_files(".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
def open_csv(paths: Sequence[Path], options: SourceOptions) -> DuckDBEngine:
    """Return an engine over CSV files of one layout."""
    return _engine_over_text(
        paths,
        connect(),
        kind="TABLE" if _fits(paths) else "VIEW",
        missing=options.missing,
        encoding=options.encoding,
        storage=options.storage,
    )


@opens_files(".parquet", ".pq")
def open_parquet(paths: Sequence[Path], options: SourceOptions) -> DuckDBEngine:
    """Return an engine over Parquet files of one layout, left on disk."""
    connection = connect()
    try:
        view_parquet(connection, _DATA, list(map(_not_a_pattern, paths)))
        return engine_over_connection(connection, exp.to_table(_DATA), missing=options.missing)
    except duckdb.Error:
        raise DataError(
            f"{listing(paths)} is damaged or not a Parquet file.",
            fix="check that it was copied completely, and that all files have the same columns.",
        ) from None


def view_parquet(connection: duckdb.DuckDBPyConnection, name: str, locations: Sequence[str]) -> None:
    """Create a view of Parquet files."""
    reader = exp.func("read_parquet", _texts(locations), *_options(_PARQUET))
    _create(connection, name, exp.select("*").from_(reader), kind="VIEW")


def engine_over_input(
    file: InputFile,
    connection: duckdb.DuckDBPyConnection,
    *,
    missing: tuple[str, ...] = (),
    storage: Mapping[str, StorageType] | None = None,
) -> DuckDBEngine:
    """Return an engine over one UTF-8 text that the connection can read; its cells are read anew for each query."""
    return _engine_over_text([file], connection, kind="VIEW", missing=missing, encoding=None, storage=storage)


def _engine_over_text(
    paths: Sequence[InputFile],
    connection: duckdb.DuckDBPyConnection,
    *,
    kind: str,
    missing: tuple[str, ...],
    encoding: str | None,
    storage: Mapping[str, StorageType] | None,
) -> DuckDBEngine:
    encoding = _check_encoding(encoding)
    names, delimiter = read_header(paths[0], encoding)
    for path in paths[1:]:
        if read_header(path, encoding) != (names, delimiter):
            raise DataError(
                f'"{path.name}" has another header than "{paths[0].name}".',
                fix="open files of one layout together, and others on their own.",
            )
    check_header(paths[0], names)
    repaired = repair_names(names)
    known = storage or {}
    stated = {position: known[name] for position, name in enumerate(repaired) if name in known}
    try:
        with _readable(paths, encoding, kind) as (read, code):
            # Every cell is read as text first, so that no type is guessed from a sample.
            cells = _cells(read, width=len(names), delimiter=delimiter, encoding=code, missing=missing)
            _load(connection, cells, width=len(names), stated=stated, kind=kind)
    except duckdb.Error as error:
        raise explain_failure(paths, str(error), encoding) from None
    except UnicodeError:
        raise explain_failure(paths, "unicode", encoding) from None
    sniffed = frozenset(repaired) - known.keys()
    return engine_over_connection(connection, exp.to_table(_DATA), names=repaired, missing=missing, sniffed=sniffed)


@contextmanager
def _readable(paths: Sequence[InputFile], encoding: str, kind: str) -> Iterator[tuple[Sequence[InputFile], str]]:
    """Give files that DuckDB reads, and their encoding: cp1252 is copied to UTF-8, gone when the cells are loaded."""
    if encoding != "cp1252":
        yield paths, encoding
        return
    if kind != "TABLE":
        raise DataError(f"{listing(paths)} is too large to be read as CP1252.", fix="save it as UTF-8.")
    with tempfile.TemporaryDirectory(prefix="cloister-") as folder:
        copies = [Path(folder, f"{number}.csv") for number in range(len(paths))]
        for path, copy in zip(paths, copies, strict=True):
            with (
                open_bytes(path) as raw,
                io.TextIOWrapper(raw, encoding=encoding, newline="") as source,
                copy.open("w", encoding="utf-8", newline="") as target,
            ):
                shutil.copyfileobj(source, target, _COPIED)
        yield copies, "utf-8"


def _load(
    connection: duckdb.DuckDBPyConnection,
    cells: exp.Select,
    *,
    width: int,
    stated: Mapping[int, StorageType],
    kind: str,
) -> None:
    """Create the typed table or view, its types stated or else decided from all cells."""
    _create(connection, _CELLS, cells, kind=kind)
    # With all types stated nothing else would read the cells before the first question.
    if stated and kind == "VIEW":
        _read_through(connection, width)
    # A stated type never fails: what is not spelled like it is missing.
    converted = {position: _if_it_fits(position, storage) for position, storage in stated.items()}
    open_ = [position for position in range(width) if position not in stated]
    for position, storage in _decide_types(connection, open_).items():
        converted[position] = _convert_cell(position, storage)
    columns = [exp.alias_(converted[position], f"c{position}") for position in range(width)]
    _create(connection, _DATA, exp.select(*columns).from_(_CELLS), kind=kind)
    if kind == "TABLE":
        connection.execute("DROP TABLE cloister_cells")
        # Everything is in memory now, so that no query needs a file any more.
        connection.execute("SET enable_external_access = false")


def _create(connection: duckdb.DuckDBPyConnection, name: str, query: exp.Select, *, kind: str) -> None:
    statement = exp.Create(this=exp.to_table(name), kind=kind, expression=query)
    connection.execute(statement.sql(dialect="duckdb", identify=True))


def _cells(
    paths: Sequence[InputFile], *, width: int, delimiter: str, encoding: str, missing: tuple[str, ...]
) -> exp.Select:
    """Return a query for all cells as text."""
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"c{position}", quoted=True), expression=exp.Literal.string("VARCHAR"))
        for position in range(width)
    ]
    options: dict[str, exp.Expression] = {
        **_PLAIN_FOLDERS,
        "auto_detect": exp.false(),
        "header": exp.true(),
        "delim": exp.Literal.string(delimiter),
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "nullstr": _texts(("", *missing)),
        "encoding": exp.Literal.string(encoding),
        "compression": exp.Literal.string(_compression(paths)),
        "columns": exp.Struct(expressions=fields),
    }
    return exp.select("*").from_(exp.func("read_csv", _texts(map(_not_a_pattern, paths)), *_options(options)))


def _options(options: Mapping[str, exp.Expression]) -> list[exp.Expression]:
    return [exp.EQ(this=exp.column(name), expression=option.copy()) for name, option in options.items()]


def _read_through(connection: duckdb.DuckDBPyConnection, width: int) -> None:
    """Read every cell once, so that a damaged file is found when it is opened and not when it is asked."""
    query = exp.select(*(exp.func("count", _cell(position)) for position in range(width))).from_(_CELLS)
    connection.execute(query.sql(dialect="duckdb", identify=True))


def _decide_types(connection: duckdb.DuckDBPyConnection, positions: Sequence[int]) -> dict[int, StorageType]:
    """Return the narrowest type that all cells of each of some columns have; text if a column is empty.

    The first rows rule most types out; then each column's first candidate is tried on all cells, rarely a second.
    """
    if not positions:
        return {}
    # Types from narrow to wide: the first that all cells have is taken.
    every = {position: list(_CANDIDATES) for position in positions}
    first_rows = exp.select("*").from_(_CELLS).limit(_FIRST_ROWS).subquery("first_rows")
    # An empty column in the first rows says nothing yet, so that all its candidates stay.
    left = _surviving(connection, every, first_rows, empty=True)
    types = dict.fromkeys(positions, StorageType.TEXT)
    while left := {position: candidates for position, candidates in left.items() if candidates}:
        tried = {position: candidates[:1] for position, candidates in left.items()}
        for position, holding in _surviving(connection, tried, exp.to_table(_CELLS), empty=False).items():
            left[position] = [] if holding else left[position][1:]
            types[position] = holding[0] if holding else StorageType.TEXT
    return types


def _surviving(
    connection: duckdb.DuckDBPyConnection,
    candidates: dict[int, list[StorageType]],
    relation: exp.Expression,
    *,
    empty: bool,
) -> dict[int, list[StorageType]]:
    """Return, in one pass, the types that all cells have; ``empty`` is the verdict on columns without any."""
    tests = [_is_like(position, storage) for position, kept in candidates.items() for storage in kept]
    verdict = exp.true() if empty else exp.false()
    query = exp.select(*(exp.func("coalesce", exp.func("bool_and", test), verdict.copy()) for test in tests))
    row = connection.execute(query.from_(relation).sql(dialect="duckdb", identify=True)).fetchone()
    answers = iter(cast("tuple[bool, ...]", row))
    return {position: [storage for storage in kept if next(answers)] for position, kept in candidates.items()}


def _cell(position: int) -> exp.Expression:
    return exp.column(f"c{position}", quoted=True)


def _is_like(position: int, storage: StorageType) -> exp.Expression:
    """Return whether a cell is spelled like a type and converts to it, NULL for a missing one."""
    cell = _cell(position)
    converted = exp.TryCast(this=cell, to=exp.DataType.build(SQL_TYPES[storage]))
    if storage is StorageType.INTEGER:
        # Casts are generous (007, 1_000, 7.6): only what is written the same way again is an integer.
        holds: exp.Expression = _is_plain(cell, converted)
    else:
        text = exp.func("trim", cell) if storage is StorageType.REAL else cell.copy()
        spelled = exp.Anonymous(this="regexp_full_match", expressions=[text, exp.Literal.string(_PATTERNS[storage])])
        holds = exp.And(this=spelled, expression=exp.Not(this=exp.Is(this=converted, expression=exp.Null())))
    present = exp.Not(this=exp.Is(this=cell.copy(), expression=exp.Null()))
    # A missing cell is no evidence, and bool_and leaves NULL out.
    return exp.Case().when(present, holds)


def _is_plain(cell: exp.Expression, number: exp.Expression) -> exp.Expression:
    """Return whether an integer, written again, is the cell: no leading zeros, no underscores, nothing rounded."""
    again = exp.EQ(this=exp.cast(number, "VARCHAR"), expression=exp.func("trim", cell.copy()))
    return exp.Coalesce(this=again, expressions=[exp.false()])


def _convert_cell(position: int, storage: StorageType) -> exp.Expression:
    cell = _cell(position)
    return cell if storage is StorageType.TEXT else exp.cast(cell, SQL_TYPES[storage])


def _if_it_fits(position: int, storage: StorageType) -> exp.Expression:
    """Return a cell in the type that is stated for its column, NULL if it is not spelled like that type."""
    cell = _cell(position)
    if storage is StorageType.TEXT:
        return cell
    text = exp.func("trim", cell.copy()) if storage in _NUMBERS else cell.copy()
    pattern = exp.Literal.string(_STATED_PATTERNS[storage])
    # DuckDB reads more spellings than are meant here; the pattern decides first.
    spelled = exp.Anonymous(this="regexp_full_match", expressions=[text, pattern])
    return exp.Case().when(spelled, exp.TryCast(this=cell, to=exp.DataType.build(SQL_TYPES[storage])))


def in_stated_type(column: pa.ChunkedArray, storage: StorageType) -> pa.ChunkedArray:
    """Return Arrow data in the type that is stated for its column, with cells that do not fit missing.

    No cell makes it fail, and equal values are the same whatever type they come in.
    """
    wanted = ARROW_TYPES[storage]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    # Bytes and lists mean different things on different engines.
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return column  # no engine reads it, which says so
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and storage is not StorageType.REAL:
        column = _whole(column) if storage is StorageType.INTEGER else _spell_numbers(column)
    elif pa.types.is_timestamp(kind) and storage is StorageType.DATE:
        # A time that is not midnight is no date, and is missing rather than cut off.
        column = pc.if_else(pc.equal(pc.floor_temporal(column, unit="day"), column), column, None)
    elif not _is_like_type(kind, storage):
        column = column.cast(pa.string())
    return (_read_as(storage, column) if column.type == pa.string() else column).cast(wanted, safe=False)


def _is_like_type(kind: pa.DataType, storage: StorageType) -> bool:
    """Return whether values of a type are values of the stated one, in more or fewer bits."""
    match storage:
        case StorageType.REAL:
            found = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        case StorageType.TIMESTAMP:
            found = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        case _:
            found = kind == ARROW_TYPES[storage] or pa.types.is_null(kind)
    return bool(found)


def _whole(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers of which those that are no whole number of 64 bits are missing."""
    if pa.types.is_integer(numbers.type):
        # Only unsigned numbers of 64 bits can be too large.
        too_large = pc.greater(numbers, pa.scalar(2**63 - 1, pa.uint64())) if numbers.type == pa.uint64() else False
        return pc.if_else(too_large, None, numbers)
    numbers = numbers.cast(pa.float64())
    # 2**63 itself is a double and no 64-bit integer, hence strictly below.
    is_whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), 2.0**63))
    return pc.if_else(is_whole, numbers, None)


def _spell_numbers(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers as texts, in which a whole number looks the same among reals."""
    return pc.coalesce(_whole(numbers).cast(pa.int64(), safe=False).cast(pa.string()), numbers.cast(pa.string()))


def _read_as(storage: StorageType, texts: pa.ChunkedArray) -> pa.ChunkedArray:
    with connect() as connection:
        connection.register(_CELLS, pa.table({"c0": texts}))
        query = exp.select(exp.alias_(_if_it_fits(0, storage), "c0")).from_(_CELLS)
        return connection.sql(query.sql(dialect="duckdb", identify=True)).to_arrow_table().column(0)


def _texts(texts: object) -> exp.Array:
    return exp.Array(expressions=[exp.Literal.string(text) for text in cast("Sequence[str]", texts)])


def _not_a_pattern(path: InputFile) -> str:
    """Return a path that DuckDB reads as this one file, whatever its name looks like."""
    # In brackets a special character stands for itself.
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path.absolute()))


def _compression(paths: Sequence[InputFile]) -> str:
    """Return how files are packed; DuckDB itself does not see it behind a question mark in a name."""
    kinds = {"gzip" if path.suffix.lower() == ".gz" else "none" for path in paths}
    return kinds.pop() if len(kinds) == 1 else "auto"


def _check_encoding(encoding: str | None) -> str:
    if encoding is None:
        return "utf-8"
    aliases = {
        "utf8": "utf-8",
        "latin1": "latin-1",
        "iso-8859-1": "latin-1",
        "windows-1252": "cp1252",
        "utf16": "utf-16",
    }
    known = aliases.get(encoding.lower(), encoding.lower())
    if known not in ENCODINGS:
        raise ParameterError(
            f'encoding="{encoding}" is not supported.',
            fix=f"use one of {', '.join(ENCODINGS)}, or save the file as UTF-8.",
        )
    return known


def _fits(paths: Sequence[Path]) -> bool:
    # Packed files grow: text shrinks about eightfold.
    sizes = (path.stat().st_size * (_GZIP_RATIO if path.suffix == ".gz" else 1) for path in paths)
    return sum(sizes) <= _IN_MEMORY
