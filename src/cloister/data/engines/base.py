"""The seam between cloister and a database: an `Engine` runs a `sqlglot` expression and returns Arrow.

Queries never mention the names of columns. Every engine offers its table as ``cloister_rows(c0, c1, ...)``, by
position, so that quotes, keywords, duplicates and names that differ in case only cannot change the meaning of a query.

Decided once, for all engines: NULL and NaN are the same missing value; -0.0 is 0.0; text is compared by code points,
without trimming or folding, and bytes in it that are no text are U+FFFD; integers wider than 64 bits are text; decimals
with a fraction are real numbers in double precision; dates and times outside the years 1 to 9999, and infinite ones,
are missing; enumerations, UUIDs, JSON and times of day are their text. So no value of a type makes a query fail, and
values that are one group have one text, whichever row stands for the group. Types that engines spell differently
(lists, structures, bytes, intervals) are refused when such a column is used; the other columns of the table are not
affected.
"""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from sqlglot import exp

from cloister.data.values import StorageType
from cloister.errors import DataError, DataWarning, InternalError

__all__ = ["ARROW_TYPES", "Engine", "literal", "physical", "repair_names", "rows_of", "value"]

ROWS = "cloister_rows"
"""The alias under which every engine offers its table."""

ARROW_TYPES: dict[StorageType, pa.DataType] = {
    StorageType.INTEGER: pa.int64(),
    StorageType.REAL: pa.float64(),
    StorageType.BOOLEAN: pa.bool_(),
    StorageType.TEXT: pa.string(),
    StorageType.DATE: pa.date32(),
    StorageType.TIMESTAMP: pa.timestamp("us"),
}

SQL_TYPES: dict[StorageType, str] = {
    StorageType.INTEGER: "BIGINT",
    StorageType.REAL: "DOUBLE",
    StorageType.BOOLEAN: "BOOLEAN",
    StorageType.TEXT: "TEXT",
    StorageType.DATE: "DATE",
    StorageType.TIMESTAMP: "TIMESTAMPNTZ",
}


_CALENDAR: dict[StorageType, tuple[dt.date, dt.date]] = {
    StorageType.DATE: (dt.date.min, dt.date.max),
    StorageType.TIMESTAMP: (dt.datetime.min, dt.datetime.max),
}


Relation = TypeVar("Relation", exp.Table, exp.Subquery, exp.Table | exp.Subquery)


class Engine(Protocol):
    """One table in one database."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns' names, unique and not empty."""
        ...

    @property
    def types(self) -> tuple[StorageType, ...]:
        """Return the columns' types."""
        ...

    @property
    def sums_overflow(self) -> bool:
        """Return whether a sum of 64-bit integers stays 64 bits wide."""
        ...

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the texts that stand for a missing value."""
        ...

    @property
    def sniffed(self) -> frozenset[str]:
        """Return the columns whose types were decided by what is in the rows, so that one row can change them."""
        ...

    def source(self) -> exp.Table | exp.Subquery:
        """Return what a query selects from, its columns renamed by position."""
        ...

    def stored(self, position: int) -> exp.Expression:
        """Return a column in its `StorageType`, comparable by code point if it is text."""
        ...

    def execute(self, query: exp.Select, schema: pa.Schema) -> pa.Table:
        """Run a query and return its columns in the Arrow types of ``schema``.

        Raises:
            DataError: if the database refuses; its own words are withheld, since they may quote cells.
        """
        ...

    def beside(self, other: Engine) -> Engine:
        """Return an engine over another one's rows whose source can be named in this engine's queries.

        Raises:
            DataError: if the two cannot be brought together.
        """
        ...

    def stream(self, query: exp.Select, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Run a query and return its rows piece by piece, where the database can."""
        ...

    def store(self, name: str) -> None:
        """Write the rows as a new table of the same database.

        Raises:
            DataError: if there is no database, the name is taken, or this account may not create it.
        """
        ...

    def drop(self, name: str) -> None:
        """Delete a table that `store` made."""
        ...

    def derive(self, query: exp.Select, schema: pa.Schema, lookups: Mapping[str, pa.Table]) -> Engine:
        """Return an engine over what a query gives, computed where the rows are, whenever it is asked.

        Args:
            query: selects the columns of ``schema``; it may name this engine's source and the lookups.
            schema: the names and types of the columns.
            lookups: small tables that the query joins.
        """
        ...


def no_store(name: str) -> DataError:
    """Return the refusal to store rows where there is no database to keep them."""
    return DataError(
        f'These rows are in no database that could keep a table "{name}".',
        fix='write them to a file: write("table.parquet").',
    )


def physical(position: int) -> exp.Column:
    """Return the reference to a column by its position."""
    return exp.column(f"c{position}", quoted=True)


def rows_of(relation: Relation, width: int) -> Relation:
    """Return a relation as ``cloister_rows(c0, c1, ...)``."""
    columns = [exp.to_identifier(f"c{position}", quoted=True) for position in range(width)]
    alias = exp.TableAlias(this=exp.to_identifier(ROWS, quoted=True), columns=columns)
    renamed = relation.copy()
    renamed.set("alias", alias)
    return renamed


def value(engine: Engine, position: int) -> exp.Expression:
    """Return a column in which every kind of missing value is NULL, and values that are equal have one text."""
    column = engine.stored(position)
    match engine.types[position]:
        case StorageType.DATE | StorageType.TIMESTAMP as storage:
            return within_calendar(column, storage)
        case StorageType.REAL:
            # NaN goes first: adding zero would keep it.
            return _one_zero(_null_if(column, [literal(math.nan, StorageType.REAL)]))
        case StorageType.TEXT if engine.missing:
            return _null_if(column, [literal(marker, StorageType.TEXT) for marker in engine.missing])
        case _:
            return column


def within_calendar(column: exp.Expression, storage: StorageType) -> exp.Expression:
    """Return a date or time, NULL outside the years 1 to 9999: there is no counterpart elsewhere."""
    first, last = _CALENDAR[storage]
    # Both ends are compared as literals of the same type, so that infinite dates fall outside.
    reached = exp.GTE(this=column.copy(), expression=literal(first, storage))
    passed = exp.LTE(this=column.copy(), expression=literal(last, storage))
    return exp.Case().when(exp.And(this=reached, expression=passed), column.copy())


def all_rows(engine: Engine) -> pa.Table:
    """Return every row, by position, with one kind of missing value."""
    return engine.execute(*select_all(engine))


def rename_tables(query: exp.Select, names: Mapping[str, str]) -> exp.Expression:
    """Return a query with some of its tables under other names, their aliases kept."""
    return query.transform(lambda node: _rename_table(node, names))


def _rename_table(node: exp.Expression, names: Mapping[str, str]) -> exp.Expression:
    if isinstance(node, exp.Table) and node.name in names:
        node.set("this", exp.to_identifier(names[node.name], quoted=True))
    return node


def storage_of(kind: pa.DataType) -> StorageType:
    """Return the storage type whose Arrow type this is."""
    return next(storage for storage, arrow in ARROW_TYPES.items() if arrow == kind)


def select_all(engine: Engine) -> tuple[exp.Select, pa.Schema]:
    """Return the query for every row, by position, with one kind of missing value, and its columns."""
    fields = [(f"c{position}", ARROW_TYPES[storage]) for position, storage in enumerate(engine.types)]
    columns = [exp.alias_(value(engine, position), name, quoted=True) for position, (name, _) in enumerate(fields)]
    return exp.select(*columns).from_(engine.source()), pa.schema(fields)


def apart() -> DataError:
    """Return the refusal to join tables that are in different places."""
    return DataError(
        "The tables are in different databases, so that no query can join them.",
        fix="open both from the same database or session, or both from files or data frames.",
    )


def unusable(name: str, native: str) -> DataError:
    """Return the refusal of a column whose type does not mean the same on every engine."""
    return DataError(
        f'Column "{name}" holds values of the type {native}, which engines spell differently.',
        fix="convert it to text, a number, a date or a time in a view or before opening; or use other columns.",
    )


def literal(item: Any, storage: StorageType) -> exp.Expression:  # a Python value of the storage type
    """Return a Python value as SQL that means exactly that value on every engine."""
    match storage:
        case StorageType.BOOLEAN:
            return exp.Boolean(this=bool(item))
        case StorageType.TEXT:
            return exp.Literal.string(item)
        case StorageType.INTEGER:
            return _cast_text(str(_within_64_bits(int(item))), storage)
        case StorageType.REAL:
            return _cast_text(_float_text(float(item)), storage)
        case StorageType.DATE:
            return _cast_text(item.isoformat(), storage)
        case StorageType.TIMESTAMP:
            return _cast_text(item.isoformat(sep=" "), storage)


def _within_64_bits(number: int) -> int:
    """Return a whole number that every engine can hold: a larger one would fail in the rows that reach it."""
    if not -(2**63) <= number < 2**63:
        raise InternalError("a query would compare with a whole number beyond 64 bits.")
    return number


def repair_names(raw: Iterable[object]) -> tuple[str, ...]:
    """Return unique, non-empty names, and warn about the ones that had to be made up.

    An empty name becomes ``column_<position>``; a repeated one gets the first free ``_2``, ``_3``, ...
    """
    given = ["" if name is None else str(name) for name in raw]
    # Names that are there stay as they are; made-up ones give way to all of them.
    taken = {name for name in given if name.strip()}
    names: list[str] = []
    repaired: list[str] = []
    for position, name in enumerate(given):
        new = name
        if not name.strip():
            new = _free(f"column_{position + 1}", taken)
        elif name in names:
            new = _free(name, taken)
        if new != name:
            taken.add(new)
            repaired.append(f'column {position + 1} is now "{new}"')
        names.append(new)
    if repaired:
        warnings.warn(
            f"Empty or repeated column names were replaced: {', '.join(repaired)}.", DataWarning, stacklevel=2
        )
    return tuple(names)


def cast_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a result in the names and types that were asked for; damaged text is an Arrow error."""
    result = table.rename_columns(schema.names).cast(schema)
    result.validate(full=True)
    return result


def as_date(text: str) -> dt.date | None:
    """Return an ISO date, or None."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def as_timestamp(text: str) -> dt.datetime | None:
    """Return an ISO date and time without a zone, or None."""
    try:
        stamp = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return stamp if stamp.tzinfo is None else None


def decimal_storage(precision: int, scale: int) -> StorageType:
    """Return how decimals are stored: with a fraction as real numbers, else as integers if they fit."""
    if scale > 0:
        return StorageType.REAL
    # 18 digits always fit 64 bits, 19 do not.
    return StorageType.INTEGER if precision <= 18 else StorageType.TEXT


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _cast_text(text: str, storage: StorageType) -> exp.Expression:
    # Cast from text: engines read bare numbers as decimals, floats or 32 bits, each in its own way.
    return exp.Cast(this=exp.Literal.string(text), to=_data_type(storage).copy())


@cache
def _data_type(storage: StorageType) -> exp.DataType:
    return exp.DataType.build(SQL_TYPES[storage])


def _float_text(number: float) -> str:
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return "NaN" if math.isnan(number) else repr(number + 0.0)


def _one_zero(column: exp.Expression) -> exp.Expression:
    """Return 0.0 for -0.0, which equals it but has another text: -0.0 + 0.0 is 0.0, and x + 0.0 is x otherwise."""
    return exp.paren(exp.Add(this=column, expression=literal(0.0, StorageType.REAL)), copy=False)


def _null_if(column: exp.Expression, markers: Sequence[exp.Expression]) -> exp.Expression:
    """Return NULL instead of any of the markers. All engines order and equate NaN as one value."""
    for marker in markers:
        column = exp.Nullif(this=column, expression=marker)
    return column
