"""PostgreSQL: data that already lives there stays there. Every query is a read-only transaction of its own."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
import pyarrow.csv as arrow_csv
from sqlglot import exp

from cloister.data.engines.base import (
    SQL_TYPES,
    Engine,
    apart,
    cast_columns,
    decimal_storage,
    literal,
    physical,
    repair_names,
    rows_of,
    storage_of,
    unusable,
)
from cloister.data.engines.openers import SourceOptions, opens_urls
from cloister.data.values import StorageType
from cloister.errors import (
    DataError,
    MissingExtraError,
    SourceNotFoundError,
    SourceUnreachableError,
    did_you_mean,
)

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresEngine", "open_postgres"]

_TYPES = {
    16: StorageType.BOOLEAN,
    20: StorageType.INTEGER,
    21: StorageType.INTEGER,
    23: StorageType.INTEGER,
    700: StorageType.REAL,
    701: StorageType.REAL,
    1082: StorageType.DATE,
    1114: StorageType.TIMESTAMP,
    1184: StorageType.TIMESTAMP,
}
_NUMERIC, _WITH_ZONE = 1700, 1184
_TRANSLATED = ("UTF8", "LATIN1")
"""The encodings of which every text has a counterpart elsewhere."""
_PLAIN_CODES = {storage: code for code, storage in _TYPES.items() if code != _WITH_ZONE} | {StorageType.TEXT: 25}
_SETTINGS = (
    "SET LOCAL datestyle TO 'ISO'; SET LOCAL extra_float_digits TO 1; SET LOCAL client_encoding TO 'UTF8'; "
    "SET LOCAL standard_conforming_strings TO on"
)
_FIND = """
SELECT 1 FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = %(name)s AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
AND CASE WHEN %(schema)s::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = %(schema)s END
"""
_UNUSABLE = """
SELECT oid, pg_catalog.format_type(oid, NULL) FROM pg_catalog.pg_type
WHERE oid = ANY(%s) AND (typtype IN ('c', 'r', 'm') OR typcategory IN ('A', 'G', 'V')
OR oid IN ('bytea'::regtype, 'interval'::regtype, 'timetz'::regtype))
"""


class PostgresEngine:
    """A table or view of a PostgreSQL database."""

    dialect = "postgres"
    sniffed: frozenset[str] = frozenset()
    sums_overflow = False

    def __init__(self, url: str, table: str, *, missing: tuple[str, ...] = ()) -> None:
        self.url = url
        self.missing = missing
        relation = _relation(table)
        description, self._unusable, self._encoding = self._describe(relation, table)
        self.names = repair_names(column.name for column in description)
        self._codes = [column.type_code for column in description]
        self.types = tuple(map(_storage_type, description))
        self._source: exp.Table | exp.Subquery = rows_of(relation, len(self.names))

    def source(self) -> exp.Table | exp.Subquery:
        """Return the table with its columns renamed by position."""
        return self._source.copy()

    def stored(self, position: int) -> exp.Expression:
        """Return a column in its stored type; text in the collation of code points."""
        column: exp.Expression = physical(position)
        storage, code = self.types[position], self._codes[position]
        if code in self._unusable:
            raise unusable(self.names[position], self._unusable[code])
        if code == _WITH_ZONE:
            return exp.AtTimeZone(this=column, zone=exp.Literal.string("UTC"))
        if code == _NUMERIC:
            # PostgreSQL's decimals have a NaN, which is a missing value like any other.
            column = exp.Nullif(this=column, expression=_decimal("NaN"))
            if storage is StorageType.REAL:
                return _as_double(column)
        converted = exp.cast(column, SQL_TYPES[storage])
        if storage is StorageType.TEXT:
            # One text that cannot be translated would make a whole query fail: a row would decide.
            if self._encoding not in _TRANSLATED:
                raise _refuse_encoding(self.names[position], self._encoding)
            # The database's own collation may call different texts equal.
            return exp.paren(exp.Collate(this=converted, expression=exp.to_identifier("C", quoted=True)))
        return converted

    def execute(self, query: exp.Select, schema: pa.Schema) -> pa.Table:
        """Run a query and return its columns in the Arrow types of ``schema``."""
        sql = query.sql(dialect=self.dialect, identify=True)
        try:
            return cast_columns(_parse(self._copy(sql), schema), schema)
        except pa.ArrowException:
            raise DataError(
                "The table holds values that have no counterpart elsewhere.",
                fix="leave them out in a view, and open the view.",
            ) from None

    def beside(self, other: Engine) -> Engine:
        """Return another table of the same database."""
        if not isinstance(other, PostgresEngine) or other.url != self.url:
            raise apart()
        return other

    def stream(self, query: exp.Select, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Run a query and return its rows as they are parsed."""
        yield from self.execute(query, schema).to_batches()

    def derive(self, query: exp.Select, schema: pa.Schema, lookups: Mapping[str, pa.Table]) -> Engine:
        """Return an engine over a query in which the lookups are written out: reading needs no right to write."""
        written = {name: _values(table) for name, table in lookups.items()}
        inlined = query.transform(lambda node: _inline_table(node, written))
        return _DerivedEngine(self.url, exp.Subquery(this=inlined), schema, self._encoding)

    def store(self, name: str) -> None:
        """Write the rows as a new table of the same database.

        Raises:
            DataError: if the table is there already, or this account may not create it.
        """
        columns = [exp.alias_(self.stored(position), name, quoted=True) for position, name in enumerate(self.names)]
        rows = exp.select(*columns).from_(self.source())
        statement = exp.Create(this=_relation(name), kind="TABLE", expression=rows)
        try:
            self._run(statement.sql(dialect=self.dialect, identify=True))
        except (_driver().Error, UnicodeError):
            raise DataError(
                f'The table "{name}" could not be made.',
                fix="choose a name that is not taken, and ask the database's owner for the right to create it.",
            ) from None

    def drop(self, name: str) -> None:
        """Delete a table that `store` made."""
        self._run(f"DROP TABLE {_relation(name).sql(dialect=self.dialect, identify=True)}")

    def _run(self, statement: str) -> None:
        with _connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute(_SETTINGS)
            cursor.execute(statement)

    def _copy(self, sql: str) -> bytes:
        """Return the result as CSV text, which Arrow parses without a Python object per cell."""
        received = io.BytesIO()
        with _reading(self.url) as cursor, cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT csv)") as copy:
            for block in copy:
                received.write(block)
        return received.getvalue()

    def _describe(self, relation: exp.Table, table: str) -> tuple[list[Any], dict[int, str], str]:
        """Return the columns, the names of those of their types that are refused, and the encoding of texts."""
        psycopg = _driver()
        sql = exp.select("*").from_(relation).limit(0).sql(dialect=self.dialect, identify=True)
        try:
            with _reading(self.url, guard=False) as cursor:
                named = {"name": relation.name, "schema": relation.db or None}
                if cursor.execute(_FIND, named).fetchone() is None:
                    raise SourceNotFoundError(
                        f'The database has no table "{table}".{did_you_mean(table, self._tables())}',
                        fix="name a table or view as it is spelled there, with its schema: ?table=clinic.visits.",
                    )
                description = list(cursor.execute(sql).description or ())
                codes = [column.type_code for column in description]
                refused = dict(cursor.execute(_UNUSABLE, [codes]).fetchall())
                return description, refused, str(cursor.execute("SHOW server_encoding").fetchall()[0][0])
        except psycopg.errors.InsufficientPrivilege:
            raise DataError(
                f'This account may not read "{table}".', fix="ask the database's owner for the right to select from it."
            ) from None
        except (psycopg.Error, UnicodeError):
            raise DataError(
                f'The database could not say what "{table}" holds.',
                fix="check that the name is spelled as there, and that selecting from it works for this account.",
            ) from None

    def _tables(self) -> list[str]:
        sql = (
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        with _reading(self.url) as cursor:
            rows = cursor.execute(sql).fetchall()
        return [name for schema, table in rows for name in (table, f"{schema}.{table}")]


class _DerivedEngine(PostgresEngine):
    """What a query gives, computed by the database whenever it is asked."""

    def __init__(self, url: str, query: exp.Subquery, schema: pa.Schema, encoding: str) -> None:
        self.url = url
        self._encoding = encoding
        self.missing = ()
        self.names = tuple(schema.names)
        self.types = tuple(storage_of(field.type) for field in schema)
        self._codes = [_PLAIN_CODES[storage] for storage in self.types]
        self._unusable = {}
        self._source = rows_of(query, len(self.names))


def _values(table: pa.Table) -> exp.Subquery:
    """Return a small table written out."""
    storages = [storage_of(field.type) for field in table.schema]
    columns = [column.to_pylist() for column in table.columns]
    lines = [
        exp.Tuple(expressions=[_write_literal(item, storage) for item, storage in zip(line, storages, strict=True)])
        for line in zip(*columns, strict=True)
    ]
    labels = [exp.to_identifier(field.name, quoted=True) for field in table.schema]
    listed = exp.Values(expressions=lines, alias=exp.TableAlias(this=exp.to_identifier("written"), columns=labels))
    return exp.Subquery(this=exp.select("*").from_(listed))


def _write_literal(item: Any, storage: StorageType) -> exp.Expression:
    if item is None:
        return exp.cast(exp.Null(), SQL_TYPES[storage])
    return literal(item, storage)


def _inline_table(node: exp.Expression, written: Mapping[str, exp.Subquery]) -> exp.Expression:
    if isinstance(node, exp.Table) and node.name in written:
        subquery = written[node.name].copy()
        subquery.set("alias", node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
        return subquery
    return node


def _driver() -> Any:  # the module psycopg
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError(what="PostgreSQL tables", package="psycopg", extra="postgres") from None
    return psycopg


def _connect(url: str) -> psycopg.Connection[Any]:
    psycopg = _driver()
    try:
        return psycopg.connect(url, connect_timeout=10)  # type: ignore[no-any-return]
    except (psycopg.Error, UnicodeError):
        raise SourceUnreachableError(
            f"The database at {_place(url)} does not answer, or refuses this account.",
            fix="check host, port, database name and password, and that the server runs.",
        ) from None


@contextmanager
def _reading(url: str, *, guard: bool = True) -> Iterator[psycopg.Cursor[Any]]:
    """Yield a cursor in a read-only transaction; the server's words are withheld, since they may quote cells."""
    psycopg = _driver()
    try:
        with _connect(url) as connection:
            connection.read_only = True
            with connection.cursor() as cursor:
                cursor.execute(_SETTINGS)
                yield cursor
    except (psycopg.Error, UnicodeError):
        if not guard:
            raise
        raise DataError(
            "The database stopped answering or refused the query.",
            fix="try again; if it persists, check the server's log for the time of this query.",
        ) from None


def _place(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or dict(parse_qsl(parts.query)).get("host", "localhost")
    return f'"{host}{parts.path}"'


def _relation(table: str) -> exp.Table:
    *schema, name = table.split(".", 1)
    database = exp.to_identifier(schema[0], quoted=True) if schema else None
    return exp.Table(this=exp.to_identifier(name, quoted=True), db=database)


def _storage_type(column: Any) -> StorageType:
    if column.type_code == _NUMERIC:
        precision, scale = column.precision, column.scale
        return StorageType.REAL if precision is None else decimal_storage(precision, scale or 0)
    return _TYPES.get(column.type_code, StorageType.TEXT)


def _refuse_encoding(name: str, encoding: str) -> DataError:
    """Return the refusal of texts of which a single one without a counterpart would make a query fail."""
    return DataError(
        f'Column "{name}" holds texts in the encoding {encoding}, not all of which have a counterpart in Unicode.',
        fix="copy the table to a database whose encoding is UTF8, and open it there; or use other columns.",
    )


def _decimal(text: str) -> exp.Expression:
    return exp.cast(exp.Literal.string(text), "DECIMAL")


def _as_double(column: exp.Expression) -> exp.Expression:
    """Return an exact decimal as the nearest double; a cast alone fails beyond the range of doubles."""
    infinite, tiny = (literal(number, StorageType.REAL) for number in (math.inf, 0.0))
    # A cast fails also where a decimal underflows.
    small = exp.LT(this=exp.Abs(this=column.copy()), expression=_decimal("1e-300"))
    return (
        exp.Case()
        .when(exp.GT(this=column.copy(), expression=_decimal("1e308")), infinite)
        .when(exp.LT(this=column.copy(), expression=_decimal("-1e308")), literal(-math.inf, StorageType.REAL))
        .when(small, tiny)
        .else_(exp.cast(column.copy(), SQL_TYPES[StorageType.REAL]))
    )


def _parse(text: bytes, schema: pa.Schema) -> pa.Table:
    if not text:
        return schema.empty_table()
    # One block for all of it: Arrow fails on a row that is longer than a block, and no row may decide that.
    return arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(column_names=schema.names, block_size=max(len(text), 1)),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=arrow_csv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )


@opens_urls("postgresql", "postgres", example="postgresql://...")
def open_postgres(url: str, table: str, options: SourceOptions) -> Engine:
    """Return an engine over a table or view of a server."""
    return PostgresEngine(url, table, missing=options.missing)
