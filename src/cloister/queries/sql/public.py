"""Public tables, written into the query as VALUES so that every engine can join them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import exp

from cloister.data.engines.base import SQL_TYPES
from cloister.data.engines.predicates import FAMILIES, Family
from cloister.data.profile import StorageType
from cloister.errors import UnsafeQueryError
from cloister.queries.sql.terms import Domain, Limits, Measured, Span, Term

__all__ = ["PublicTable"]

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
        return cls(name, {column: _stored(name, column, table.column(column)) for column in used})

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
        rows = [exp.Tuple(expressions=[_written(item) for item in row]) for row in self._rows()]
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
        if family is Family.NUMBER:
            measured = Measured(stored=column, storage=storage, label=name, limits=lambda: _limits(present))
        return Term(
            sql=column,
            family=family,
            storage=storage,
            label=name,
            numeric=measured,
            domain=lambda: Domain.of(sorted(present)),
            span=lambda: _span(present, family),
            is_ordered=False,
        )


def _limits(values: Sequence[int | float]) -> Limits:
    finite = [Fraction(item) for item in values if math.isfinite(item)]
    if len(finite) != len(values) or not finite:
        return None, None
    low, high = min(finite), max(finite)
    return low, high if high > low else low + 1


def _span(values: Sequence[Any], family: Family) -> Span | None:
    return (min(values), max(values)) if values and family in (Family.DATE, Family.TIME) else None


def _stored(table: str, name: str, column: pa.ChunkedArray) -> tuple[StorageType, list[Any]]:
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


def _written(item: Any) -> exp.Expression:
    """Return a value as text, which its column casts: one type for all rows."""
    if item is None:
        return exp.Null()
    if isinstance(item, bool):
        return exp.Literal.string(str(item).lower())
    if isinstance(item, float):
        infinite = "Infinity" if item > 0 else "-Infinity"
        return exp.Literal.string(infinite if math.isinf(item) else repr(item))
    return exp.Literal.string(item.isoformat(sep=" ") if isinstance(item, dt.datetime) else str(item))
