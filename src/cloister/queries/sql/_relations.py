"""Relations: the rows that a query selects from, and which of their columns its names stand for.

Nothing outside the catalog has a name. Private tables have their columns by position, with what the schema makes
public. Public tables are written into the query as VALUES so that every engine can join them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from cloister.data.engines.base import SQL_TYPES, Engine, value
from cloister.data.engines.predicates import FAMILIES, OperandFamily, find_name, quote, unknown_column
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import MissingBoundsError, UnknownColumnError, UnsafeQueryError, did_you_mean
from cloister.queries.catalog import column_key, person_value
from cloister.queries.sql._terms import Change, Limits, Measured, Span, Term, TermDomain

__all__ = ["Columns", "NameScope", "PublicTable", "QueryRelation", "private_relation"]


Columns: TypeAlias = Mapping[str, Callable[[], Term]]
"""The terms of a table by name, made when they are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRelation:
    """Rows that a query selects from, with the columns that it may name.

    Attributes:
        engine: where the rows are.
        source: what stands after FROM.
        physical: the names that the SQL of its columns mentions.
        columns: what the query may name.
        condition: which rows count.
        person: SQL for the unit of privacy; None when every row is a unit.
        rows_per_person: how many rows a person has by construction; None: any.
    """

    engine: Engine
    source: exp.Expression
    physical: tuple[str, ...]
    columns: Columns = field(repr=False)
    condition: exp.Expression | None = None
    person: exp.Expression | None = None
    rows_per_person: int | None = None

    def where(self, condition: exp.Expression | None) -> QueryRelation:
        """Return the rows for which a condition holds, too."""
        return replace(self, condition=conjunction(self.condition, condition))


def conjunction(left: exp.Expression | None, right: exp.Expression | None) -> exp.Expression | None:
    """Return the conjunction of two conditions, None being true."""
    if left is None or right is None:
        return right if left is None else left
    return exp.And(this=exp.paren(left, copy=False), expression=exp.paren(right, copy=False))


def change_columns(columns: Columns, change: Change) -> Columns:
    """Return the same columns over other SQL."""
    return {name: _change_column(make, change) for name, make in columns.items()}


def _change_column(make: Callable[[], Term], change: Change) -> Callable[[], Term]:
    return lambda: make().rewritten(change)


class NameScope:
    """The tables of one FROM clause by alias."""

    def __init__(self, tables: Mapping[str, Columns], *, shared: frozenset[str] = frozenset()) -> None:
        self.tables = dict(tables)
        self.shared = shared
        self._found: dict[tuple[str, str], Term] = {}

    @property
    def names(self) -> list[str]:
        """Return the names of all columns."""
        return list(dict.fromkeys(name for columns in self.tables.values() for name in columns))

    def find(self, node: exp.Column) -> Term:
        """Return the column that a name stands for.

        Raises:
            UnknownColumnError: if there is none.
            UnsafeQueryError: if there are several.
        """
        identifier = node.this
        if not isinstance(identifier, exp.Identifier):
            raise UnsafeQueryError(
                f"{quote(node)} stands for all columns, which would show rows.",
                fix="name the columns in aggregates, or write COUNT(*).",
            )
        places = self._places(node, identifier)
        if not places:
            raise unknown_column(node, self.names)
        if len(places) > 1 and places[0][1] not in self.shared:
            raise UnsafeQueryError(
                f'"{identifier.name}" is a column of several tables.',
                fix=f"say which one: {' or '.join(f'{alias}.{name}' for alias, name in places)}.",
            )
        return self._term(places[0])

    def has(self, node: exp.Column) -> bool:
        """Return whether a name stands for a column."""
        try:
            return isinstance(node.this, exp.Identifier) and bool(self._places(node, node.this))
        except UnknownColumnError:
            return False

    def place(self, node: Any) -> tuple[str, str] | None:  # a node of any kind
        """Return the table and the name of the one column that a node is; None for other nodes."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        places = self._places(node, node.this)
        return places[0] if len(places) == 1 or (places and places[0][1] in self.shared) else None

    def _places(self, node: exp.Column, identifier: exp.Identifier) -> list[tuple[str, str]]:
        """Return where a name occurs; names that are spelled exactly so come before those that differ in case."""
        tables = self._tables(node)
        exactly = [(alias, identifier.name) for alias in tables if identifier.name in self.tables[alias]]
        if exactly:
            return exactly
        near = [(alias, find_name(identifier, self.tables[alias])) for alias in tables]
        return [(alias, name) for alias, name in near if name is not None]

    def _tables(self, node: exp.Column) -> list[str]:
        qualifier = node.args.get("table")
        if qualifier is None:
            return list(self.tables)
        alias = find_name(qualifier, self.tables)
        if alias is None:
            raise UnknownColumnError(f"{qualifier.name}.{node.name}", self.names)
        return [alias]

    def _term(self, place: tuple[str, str]) -> Term:
        if place not in self._found:
            alias, name = place
            self._found[place] = self.tables[alias][name]()
        return self._found[place]


def no_table(name: str, known: list[str]) -> UnsafeQueryError:
    """Return the error for a table that the catalog does not have."""
    return UnsafeQueryError(
        f'There is no table "{name}".{did_you_mean(name, known)}', fix=f"select from one of {', '.join(known)}."
    )


def private_relation(table: Table, person: str | None) -> QueryRelation:
    """Return the rows of a private table."""
    names = table.columns if table.schema is None else table.schema.names
    columns = {name: _maker(table, name, is_person=name == person) for name in names}
    unit = None if person is None else person_value(table, person)
    physical = tuple(f"c{position}" for position in range(len(table.columns)))
    return QueryRelation(
        engine=table.engine, source=table.engine.source(), physical=physical, columns=columns, person=unit
    )


def _maker(table: Table, name: str, *, is_person: bool) -> Callable[[], Term]:
    return lambda: _column(table, name, is_person=is_person)


def _column(table: Table, name: str, *, is_person: bool) -> Term:
    position = table.columns.index(name)
    storage = table.engine.types[position]
    family = FAMILIES[storage]
    return Term(
        sql=value(table.engine, position),
        family=family,
        storage=storage,
        label=name,
        numeric=_build_measured(table, name, position, storage) if family is OperandFamily.NUMBER else None,
        domain=lambda: _domain(table, name),
        span=lambda: _span(table, name),
        is_person=is_person,
    )


def _build_measured(table: Table, name: str, position: int, storage: StorageType) -> Measured:
    return Measured(
        stored=table.engine.stored(position), storage=storage, label=name, limits=lambda: _limits(table, name)
    )


def _domain(table: Table, name: str) -> TermDomain | None:
    key = column_key(table, name)
    return None if key.values is None else TermDomain(key.values, key.shown or key.values)


def _limits(table: Table, name: str) -> Limits:
    """Return the schema's bounds of a number; none where it has none, so that the query may state them."""
    try:
        low, high = (None, None) if table.schema is None else table.schema.bounds_of(name)
    except MissingBoundsError:
        return None, None
    if isinstance(low, Fraction) and isinstance(high, Fraction):
        return low, high
    return None, None


def _span(table: Table, name: str) -> Span | None:
    try:
        ends = (None, None) if table.schema is None else table.schema.bounds_of(name)
    except MissingBoundsError:
        return None
    first, last = ends
    if isinstance(first, dt.date) and isinstance(last, dt.date):
        return first, last
    return None


_MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class PublicTable:
    """The columns of a public table that a query mentions."""

    name: str
    values: dict[str, tuple[StorageType, list[Any]]]

    @classmethod
    def of(cls, name: str, table: pa.Table, mentioned: Set[str]) -> PublicTable:
        """Return a public table.

        Args:
            name: what the catalog calls it.
            table: its rows.
            mentioned: the names in the query, in lower case.
        """
        if not 0 < table.num_rows <= _MOST_ROWS:
            raise UnsafeQueryError(
                f'The public table "{name}" has {table.num_rows:,} rows.',
                fix=f"join a public table of 1 to {_MOST_ROWS:,} rows.",
            )
        used = [column for column in dict.fromkeys(table.column_names) if column.lower() in mentioned]
        return cls(name, {column: _read_column(name, column, table.column(column)) for column in used})

    def is_unique(self, names: Sequence[str]) -> bool:
        """Return whether no two rows agree in some columns; missing values agree with nothing."""
        rows = list(zip(*(self.values[name][1] for name in names), strict=True))
        present = [row for row in rows if None not in row]
        return len(set(present)) == len(present)

    def physical(self, name: str) -> str:
        """Return how the query's SQL calls a column."""
        return f"c{list(self.values).index(name)}"

    def source(self, prefix: str) -> exp.Select:
        """Return a query of the rows, its columns called by position behind a prefix."""
        rows = [exp.Tuple(expressions=[_write_value(item) for item in row]) for row in self._rows()]
        names = [exp.to_identifier(f"v{place}", quoted=True) for place in range(len(self.values))]
        alias = exp.TableAlias(this=exp.to_identifier(f"{prefix}values", quoted=True), columns=names)
        columns = [
            exp.alias_(
                exp.Cast(this=exp.column(f"v{place}", quoted=True), to=exp.DataType.build(SQL_TYPES[storage])),
                f"{prefix}c{place}",
                quoted=True,
                copy=False,
            )
            for place, (storage, _) in enumerate(self.values.values())
        ]
        return exp.select(*columns, copy=False).from_(exp.Values(expressions=rows, alias=alias), copy=False)

    def columns(self) -> dict[str, Callable[[], Term]]:
        """Return the columns, with what their values are."""
        return {name: self._maker(name) for name in self.values}

    def _rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*(column for _, column in self.values.values()), strict=True))

    def _maker(self, name: str) -> Callable[[], Term]:
        return lambda: self._term(name)

    def _term(self, name: str) -> Term:
        storage, values = self.values[name]
        column = exp.column(self.physical(name), quoted=True)
        present = [item for item in values if item is not None]
        family = FAMILIES[storage]
        measured = None
        if family is OperandFamily.NUMBER:
            measured = Measured(stored=column, storage=storage, label=name, limits=lambda: _public_limits(present))
        return Term(
            sql=column,
            family=family,
            storage=storage,
            label=name,
            numeric=measured,
            domain=lambda: TermDomain.of(sorted(present)),
            span=lambda: _public_span(present, family),
            is_ordered=False,
        )


def _public_limits(values: Sequence[int | float]) -> Limits:
    finite = [Fraction(item) for item in values if math.isfinite(item)]
    if len(finite) != len(values) or not finite:
        return None, None
    low, high = min(finite), max(finite)
    # Limits need some room between them, also where a column has a single value.
    return low, high if high > low else low + 1


def _public_span(values: Sequence[Any], family: OperandFamily) -> Span | None:
    return (min(values), max(values)) if values and family in (OperandFamily.DATE, OperandFamily.TIME) else None


def _read_column(table: str, name: str, column: pa.ChunkedArray) -> tuple[StorageType, list[Any]]:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    storage = _storage(kind)
    if storage is None:
        raise UnsafeQueryError(
            f'Column "{name}" of the public table "{table}" holds values of the type {kind}.',
            fix="convert it to text, numbers, truth values, dates or times.",
        )
    if storage is StorageType.TIMESTAMP:
        column = column.cast(pa.timestamp("us"))
    return storage, [_clean(item) for item in column.to_pylist()]


def _storage(kind: pa.DataType) -> StorageType | None:
    tests: list[tuple[Callable[[pa.DataType], bool], StorageType]] = [
        (pa.types.is_boolean, StorageType.BOOLEAN),
        (lambda item: pa.types.is_integer(item) and not pa.types.is_uint64(item), StorageType.INTEGER),
        (pa.types.is_floating, StorageType.REAL),
        (lambda item: pa.types.is_string(item) or pa.types.is_large_string(item), StorageType.TEXT),
        (pa.types.is_date, StorageType.DATE),
        (lambda item: pa.types.is_timestamp(item) and item.tz is None, StorageType.TIMESTAMP),
    ]
    return next((storage for holds, storage in tests if holds(kind)), None)


def _clean(item: Any) -> Any:
    if isinstance(item, float):
        return None if math.isnan(item) else item + 0.0
    if isinstance(item, str) and "\0" in item:
        raise UnsafeQueryError("A public table has a text that databases cannot hold.", fix="leave out NUL.")
    return item


def _write_value(item: Any) -> exp.Expression:
    """Return a value as text, which its column casts: one type for all rows."""
    if item is None:
        return exp.Null()
    if isinstance(item, bool):
        return exp.Literal.string(str(item).lower())
    if isinstance(item, float):
        infinite = "Infinity" if item > 0 else "-Infinity"
        return exp.Literal.string(infinite if math.isinf(item) else repr(item))
    return exp.Literal.string(item.isoformat(sep=" ") if isinstance(item, dt.datetime) else str(item))
