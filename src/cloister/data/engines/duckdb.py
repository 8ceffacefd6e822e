"""The embedded engine: DuckDB over files, Arrow, pandas, polars and its own relations and databases.

How much memory a question may use, and where it puts what does not fit: a question gets a fixed amount for each thread,
beside the tables that its database holds. What does not fit goes to temporary files, in a folder that this account
alone can read and that is gone with the process. Rows must not decide whether a question is answered: one that cannot
be done so, or whose files cannot be written, is run again with all the memory that there is. Processes that may not
write rows to files have no folder, and then no such bound.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from cloister.data.engines.base import (
    SQL_TYPES,
    Engine,
    all_rows,
    apart,
    cast_columns,
    decimal_storage,
    no_store,
    physical,
    rename_tables,
    repair_names,
    rows_of,
    unusable,
)
from cloister.data.values import StorageType
from cloister.errors import CloisterError, DataError

__all__ = [
    "UNFINISHED",
    "DuckDBEngine",
    "bound_memory",
    "connect",
    "engine_over_arrow",
    "engine_over_relation",
    "lift_bound",
    "spill_folder",
]


PER_THREAD = 100_000_000
"""The bytes that a question gets for each thread. With much less, nearly everything goes through files."""

UNFINISHED = (duckdb.OutOfMemoryException, duckdb.IOException)
"""What a question ends in for want of memory, or of space for its temporary files."""

_FOLDER_NUMBERS = itertools.count()
_STATE = """
SELECT current_setting('temp_directory'), current_setting('threads'), sum(memory_usage_bytes) FROM duckdb_memory()
"""


def spill_folder(database: str | None = None) -> str:
    """Return the folder for the temporary files of a database, which makes it when it needs it.

    Every database in memory has one of its own; a database file has one, since DuckDB opens a file once for a process.
    """
    name = f"memory-{next(_FOLDER_NUMBERS)}" if database is None else f"file-{_number_of(database)}"
    return str(_folder_of_process(os.getpid()) / name)


def bound_memory(connection: duckdb.DuckDBPyConnection) -> bool:
    """Bound what questions use beside what the database holds now; False if there is no folder for the rest."""
    folder, threads, held = connection.execute(_STATE).fetchall()[0]
    if not folder:
        return False
    # What the tables hold already is not the question's, and must not count against it.
    connection.execute(f"SET memory_limit = '{int(held) + int(threads) * PER_THREAD}B'")
    return True


def lift_bound(connection: duckdb.DuckDBPyConnection) -> None:
    """Let questions use what DuckDB uses by itself: most of the memory that there is."""
    connection.execute("RESET memory_limit")


@cache
def _number_of(database: str) -> int:  # noqa: ARG001  # one number for each
    return next(_FOLDER_NUMBERS)


@cache
def _folder_of_process(process: int) -> Path:
    folder = tempfile.mkdtemp(prefix=f"cloister-{process}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


_DATA = "cloister_data"
_TYPES = dict.fromkeys(
    ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"), StorageType.INTEGER
)
_TYPES |= dict.fromkeys(("float", "double"), StorageType.REAL)
_ZONED = ("timestamp with time zone", "timestamptz_ns")
_TYPES |= dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", *_ZONED), StorageType.TIMESTAMP)
_TYPES |= {"boolean": StorageType.BOOLEAN, "date": StorageType.DATE}
_AS_TEXT = (
    "varchar",
    "json",
    "uuid",
    "enum(",
    "decimal(",
    "ubigint",
    "hugeint",
    "uhugeint",
    "bignum",
    "varint",
    '"null"',
)

_EXTENSIONS = ("arrow.uuid", "arrow.json")

_FAILURES = (duckdb.Error, pa.ArrowException, OSError)
"""What a query that cannot read its rows may end in; a stream that breaks off is an error of the system to Arrow."""
_BATCH = 2**17
_NUMBERS = itertools.count()
_TEMPORARY = exp.Properties(expressions=[exp.TemporaryProperty()])

_Run = Callable[[str], pa.Table]
_Failure = Callable[[Exception], CloisterError]


class DuckDBEngine:
    """A table in DuckDB. ``run`` executes SQL in which the table is called ``relation``.

    Text in a table that somebody else made (``is_foreign``) may have a collation of its own, which is set aside.
    ``failure`` says in our own words why a query failed.
    """

    dialect = "duckdb"
    sums_overflow = False

    def __init__(
        self,
        run: _Run,
        relation: exp.Table,
        *,
        names: Sequence[object],
        native_types: Sequence[Any],
        missing: tuple[str, ...] = (),
        connection: duckdb.DuckDBPyConnection | None = None,
        is_foreign: bool = False,
        sniffed: frozenset[str] = frozenset(),
        failure: _Failure | None = None,
    ) -> None:
        self.names = repair_names(names)
        self.sniffed = sniffed
        self._failure = failure or unreadable
        self._connection = connection
        self._is_bounded = connection is not None and bound_memory(connection)
        self._beside = 0
        self._is_foreign = is_foreign
        self.missing = missing
        self._native = [str(native).lower() for native in native_types]
        self.types = tuple(map(_storage_type, self._native))
        self._run = run
        # Columns go by their position, so that no name can change the meaning of a query.
        self._source = rows_of(relation, len(self.names))
        self._lock = threading.Lock()

    def source(self) -> exp.Table:
        """Return the relation with its columns renamed by position."""
        return self._source.copy()

    def stored(self, position: int) -> exp.Expression:
        """Return a column, cast only where DuckDB's type is not the stored one."""
        column: exp.Expression = physical(position)
        storage, native = self.types[position], self._native[position]
        if native in _ZONED:
            column = exp.AtTimeZone(this=column, zone=exp.Literal.string("UTC"))
        if native == "timestamp with time zone":
            return column
        if native not in _TYPES and native != "time" and not _is_plain(native):
            raise unusable(self.names[position], native)
        # Finer or coarser times may lie outside of what microseconds hold: TRY_CAST makes them missing instead of
        # failing.
        if storage is StorageType.TIMESTAMP and native != "timestamp":
            return exp.TryCast(this=column, to=exp.DataType.build(SQL_TYPES[storage]))
        if storage is StorageType.TEXT and self._is_foreign:
            text = column if native == "varchar" else exp.cast(column, SQL_TYPES[storage])
            # In a collation of its own, different texts could be one group, and a row would decide which one is
            # shown.
            return exp.paren(exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True)))
        as_is = native in ("bigint", "double", "boolean", "varchar", "date", "timestamp")
        return column if as_is else exp.cast(column, SQL_TYPES[storage])

    def execute(self, query: exp.Select, schema: pa.Schema) -> pa.Table:
        """Run a query and return its columns in the Arrow types of ``schema``."""
        sql = query.sql(dialect=self.dialect, identify=True)
        try:
            with self._lock:
                if self._is_foreign:
                    self._check_collation()
                result = self._answer(sql)
            return cast_columns(result, schema)
        except _FAILURES as error:
            raise self._failure(error) from None

    def _answer(self, sql: str) -> pa.Table:
        """Run SQL within the bound on memory, and without it what cannot be done within it."""
        try:
            return self._run(sql)
        except UNFINISHED:
            if self._connection is None or not self._is_bounded:
                raise
            # Rows must not decide whether a question is answered, so that it is asked again with all memory.
            self._lift_bound(self._connection)
            return self._run(sql)

    def _lift_bound(self, connection: duckdb.DuckDBPyConnection) -> None:
        lift_bound(connection)
        self._is_bounded = False

    def _check_collation(self) -> None:
        """Refuse a connection that compares texts in its own way: which one stands for a group would be up to a row."""
        setting = self._run("SELECT current_setting('default_collation') AS setting").column(0)[0].as_py()
        if setting:
            raise DataError(
                "The connection has a collation of its own, under which different texts are equal.",
                fix="run RESET default_collation on it, or open the file or table itself.",
            )

    def stream(self, query: exp.Select, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Run a query and return its rows piece by piece; no other query runs meanwhile."""
        if self._connection is None:
            yield from self.execute(query, schema).to_batches()
            return
        try:
            with self._lock:
                if self._is_bounded:
                    self._lift_bound(self._connection)  # rows that were handed over cannot be taken back
                sql = query.sql(dialect=self.dialect, identify=True)
                for batch in self._connection.sql(sql).to_arrow_reader(_BATCH):
                    yield from cast_columns(pa.Table.from_batches([batch]), schema).to_batches()
        except _FAILURES as error:
            raise self._failure(error) from None

    def derive(self, query: exp.Select, schema: pa.Schema, lookups: Mapping[str, pa.Table]) -> Engine:
        """Return an engine over a view in this one's connection."""
        if self._connection is None:
            return self._copy().derive(query, schema, lookups)
        # Numbered over the whole process: two views in one connection must not share a name.
        view = exp.to_table(f"cloister_derived_{next(_NUMBERS)}")
        named = rename_tables(query, {name: f"{view.name}_{name}" for name in lookups})
        try:
            with self._lock:
                for name, table in lookups.items():
                    self._connection.register(f"{view.name}_{name}", table)
                statement = exp.Create(this=view, kind="VIEW", expression=named, properties=_TEMPORARY.copy())
                self._connection.execute(statement.sql(dialect=self.dialect, identify=True))
                return engine_over_connection(
                    self._connection, view, names=schema.names, sniffed=self.sniffed, failure=self._failure
                )
        except duckdb.Error as error:
            raise self._failure(error) from None

    def store(self, name: str) -> None:
        """Refuse: the rows are in files or in memory."""
        raise no_store(name)

    def drop(self, name: str) -> None:
        """Refuse: nothing was stored."""
        raise no_store(name)

    def _copy(self) -> DuckDBEngine:
        """Return the same rows in a connection of our own: the one of a relation cannot be told new names."""
        rows = all_rows(self).rename_columns([f"c{position}" for position in range(len(self.names))])
        connection = connect()
        connection.register(_DATA, rows)
        return engine_over_connection(connection, exp.to_table(_DATA), names=self.names)

    def beside(self, other: Engine) -> Engine:
        """Return the rows of another DuckDB table, held in this one's connection."""
        if self._connection is None or not isinstance(other, DuckDBEngine):
            raise apart()
        self._beside += 1
        name = f"cloister_other_{self._beside}"
        rows = all_rows(other)
        with self._lock:
            self._connection.register(name, rows)
            return engine_over_connection(
                self._connection,
                exp.to_table(name),
                names=other.names,
                sniffed=other.sniffed,
                failure=self._failure,
            )


_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


def forbid_spilling() -> None:
    """Keep every database that this process opens from now on in memory: no row ever reaches a temporary file.

    A query that needs more memory than there is then fails instead.
    """
    _CONFIGURATION["temp_directory"] = ""


def connect() -> duckdb.DuckDBPyConnection:
    """Return an in-memory database of its own: no network, and no name that means a Python variable."""
    return _quiet(duckdb.connect(":memory:", config=_settings()))


def connect_to_file(path: str) -> duckdb.DuckDBPyConnection:
    """Return a database file, for reading it and no other file."""
    connection = _quiet(duckdb.connect(path, read_only=True, config=_settings(path)))
    # Only after it is open: from here on not even SQL of ours can reach another file.
    return connection.execute("SET enable_external_access = false")


def _settings(path: str | None = None) -> dict[str, str | bool | int | float | list[str]]:
    """Return the settings of a database, with a folder of its own for temporary files if there may be any."""
    return {"temp_directory": spill_folder(path), **_CONFIGURATION}


def _quiet(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return a connection that draws no progress bar into what is printed."""
    return connection.execute("SET enable_progress_bar = false")


def tables_of(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return the schemas and names of a database's own tables and views."""
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT internal "
        "UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = current_database() AND NOT internal"
    )
    return [(str(schema), str(name)) for schema, name in found.fetchall()]


def engine_over_arrow(
    table: Any,  # an Arrow table or dataset
    *,
    missing: tuple[str, ...] = (),
    sniffed: frozenset[str] = frozenset(),
) -> DuckDBEngine:
    """Return an engine over Arrow data, without copying it; ``sniffed`` names columns whose type rows have decided."""
    names = list(table.schema.names)
    for field in table.schema:
        # An extension type may mean anything; those that are their text are known.
        if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name not in _EXTENSIONS:
            raise unusable(field.name, field.type.extension_name)
    if isinstance(table, pa.Table):
        table = pa.table(
            [_decode_dictionary(column) for column in table.columns],
            names=[f"c{position}" for position in range(len(names))],
        )
    connection = connect()
    connection.execute("SET enable_external_access = false")
    try:
        if isinstance(table, pa.Table):
            # Damaged Arrow data could make DuckDB read beyond its buffers.
            table.validate(full=True)
        connection.register(_DATA, table)
        return engine_over_connection(connection, exp.to_table(_DATA), names=names, missing=missing, sniffed=sniffed)
    except (duckdb.Error, pa.ArrowException):
        raise DataError(
            "The data have a column of a type that cannot be read.",
            fix="convert its columns to text, numbers, truth values, dates or times first.",
        ) from None


def engine_over_connection(
    connection: duckdb.DuckDBPyConnection,
    relation: exp.Table,
    *,
    names: Sequence[object] | None = None,
    missing: tuple[str, ...] = (),
    is_foreign: bool = False,
    sniffed: frozenset[str] = frozenset(),
    failure: _Failure | None = None,
) -> DuckDBEngine:
    """Return an engine over a table or view of a connection that is ours; ``is_foreign`` says who made the table."""
    described = connection.sql(exp.select("*").from_(relation).limit(0).sql(dialect="duckdb", identify=True))
    return DuckDBEngine(
        lambda sql: connection.sql(sql).to_arrow_table(),
        relation,
        names=described.columns if names is None else names,
        native_types=described.types,
        missing=missing,
        connection=connection,
        is_foreign=is_foreign,
        sniffed=sniffed,
        failure=failure,
    )


def engine_over_relation(relation: Any, *, missing: tuple[str, ...] = ()) -> DuckDBEngine:  # a DuckDBPyRelation
    """Return an engine over a relation, on the connection it came from."""
    # A relation can only be asked under a name given with each query.
    return DuckDBEngine(
        lambda sql: relation.query(_DATA, sql).to_arrow_table(),
        exp.to_table(_DATA),
        names=relation.columns,
        native_types=relation.types,
        missing=missing,
        is_foreign=True,
    )


def unreadable(error: Exception) -> DataError:
    """Return why a query failed, without the database's own words: they may quote cells."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return DataError(
            "The question needs more memory than it may use.",
            fix="ask for fewer groups or columns, or have the limit raised by whoever runs this.",
        )
    return DataError(
        "The data could not be read to its end.",
        fix="check that the source is complete, unchanged since it was opened, and of one type per column.",
    )


def _decode_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column as its values: enumerations are DuckDB's for text only."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    return column


def _is_plain(native: str) -> bool:
    return native.startswith(_AS_TEXT) and (native.startswith("enum(") or not native.endswith("]"))


def _storage_type(native: str) -> StorageType:
    if native.startswith("decimal(") and native.endswith(")"):
        precision, scale = (int(part) for part in native[len("decimal(") : -1].split(","))
        return decimal_storage(precision, scale)
    return _TYPES.get(native, StorageType.TEXT)
