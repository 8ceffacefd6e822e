"""The tables of an evaluation, on the same declared cells, so that figures of different releases can be compared.

Cells become numbers here: what a correlation, a distance or a model is computed from. A bin counts as its middle.
Everything is scaled by public bounds, never by the rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.core.random import RandomSource, integers_below, permutation
from cloister.data.columns import Kind
from cloister.data.engines.base import ARROW_TYPES
from cloister.data.mixed_rows import MixedRows
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import DataError, ParameterError
from cloister.synth._cell_counts import code_rows
from cloister.synth._domain import DomainAttribute, TableDomain, declare_domain

__all__ = [
    "CodedRows",
    "Features",
    "Floats",
    "Tables",
    "amounts",
    "open_real_table",
    "public_table",
    "read_tables",
    "row_codes",
    "scale_amounts",
]


Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

_NUMBERS = (StorageType.INTEGER, StorageType.REAL)
_TIMES = (StorageType.DATE, StorageType.TIMESTAMP)


@dataclass(frozen=True, eq=False, repr=False)
class CodedRows:
    """Distinct rows as cells, and how often each occurs. Protected where the rows are.

    Attributes:
        domain: the declared cells.
        codes: one row per distinct row, one column per column.
        weights: how often each occurs.
    """

    domain: TableDomain
    codes: Codes
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"CodedRows({', '.join(self.domain.names)})"

    @cached_property
    def total(self) -> int:
        """Return the number of rows."""
        return int(self.weights.sum())

    def shares(self, columns: Sequence[int]) -> Floats:
        """Return the share of rows in each combination of some columns' cells, one axis per column."""
        shape = tuple(self.domain.sizes[column] for column in columns)
        counted = np.bincount(self.flat(columns), weights=self.weights, minlength=int(np.prod(shape)))
        return np.asarray(counted.reshape(shape) / self.total)

    def flat(self, columns: Sequence[int]) -> NDArray[np.int64]:
        """Return the number of each distinct row's combination of some columns' cells."""
        place = self.codes[:, columns[0]].astype(np.int64)
        for column in columns[1:]:
            place *= self.domain.sizes[column]
            place += self.codes[:, column]
        return place

    def resampled(self, count: int, source: RandomSource) -> CodedRows:
        """Return as many rows as asked for, drawn with replacement."""
        drawn = np.searchsorted(np.cumsum(self.weights), integers_below(source, self.total, count), side="right")
        return replace(self, weights=np.bincount(drawn, minlength=len(self.codes)))

    def some(self, most: int, source: RandomSource) -> Codes:
        """Return rows one by one in random order, at most so many."""
        places = np.repeat(np.arange(len(self.codes)), self.weights)
        return self.codes[places[permutation(source, self.total)[:most]]]


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """What is compared.

    Attributes:
        domain: the declared cells.
        numeric: which columns hold amounts, rather than names of things.
        real: the rows that the synthetic ones were made from. Protected.
        synthetic: the synthetic rows.
        holdout: rows of the same kind that had no part in the synthetic ones, if there are any. Protected.
        sources: the tables themselves, by these names.
        schema: what is publicly known of the columns.
    """

    domain: TableDomain
    numeric: tuple[bool, ...]
    real: CodedRows
    synthetic: CodedRows
    holdout: CodedRows | None
    sources: dict[str, Table] = field(repr=False)
    schema: Schema

    def __repr__(self) -> str:
        return f"Tables({', '.join(self.domain.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns that are compared."""
        return self.domain.names


def read_tables(
    real: Any,
    synthetic: Any,
    *,
    holdout: Any = None,
    schema: Any = None,
    columns: Sequence[str] | None = None,
    bins: Any = None,
) -> Tables:
    """Open and count the tables, or refuse what cannot be compared.

    Raises:
        MissingBoundsError: if the cells of a column are not declared.
        ParameterError: if the tables have different columns, or columns of different types.
        DataError: if a table is empty.
    """
    first = open_real_table(real, schema)
    second, control = _plain(synthetic), None if holdout is None else _plain(holdout)
    domain = declare_domain(first, columns=columns, bins=bins)
    for what, other in (("synthetic", second), ("holdout", control)):
        if other is not None:
            _check_columns(first, other, domain, what=what, is_chosen=columns is not None)
    sources = {"real": first, "synthetic": _like(domain, first, _again(synthetic, second, first.schema))}
    if control is not None:
        sources["holdout"] = _like(domain, first, _again(holdout, control, first.schema))
    rows = {name: _count_rows(table, domain, what=name) for name, table in sources.items()}
    return Tables(
        domain=domain,
        numeric=tuple(_is_numeric(first.schema, item) for item in domain.attributes),
        real=rows["real"],
        synthetic=rows["synthetic"],
        holdout=rows.get("holdout"),
        sources=sources,
        schema=first.schema,
    )


def open_real_table(real: Any, schema: Any) -> Table:
    """Return the table whose schema says what the cells are."""
    if not isinstance(real, Table):
        return open_table(real, schema=schema)
    if schema is None:
        return real
    return real.with_schema(schema if isinstance(schema, Schema) else Schema.read(schema))


def public_table(synthetic: Any, first: Table, domain: TableDomain) -> Table:
    """Return a synthetic table that can be counted like the first one, of which only columns and types are used."""
    plain = _plain(synthetic)
    _check_columns(first, plain, domain, what="synthetic", is_chosen=True)
    found = _like(domain, first, _again(synthetic, plain, first.schema))
    if not found.count():
        raise DataError("The synthetic table has no rows.", fix="give a table with rows.")
    return found


def _plain(source: Any) -> Table:
    return source.with_schema(None) if isinstance(source, Table) else open_table(source)


def _again(source: Any, opened: Table, schema: Schema) -> Table:
    """Return a file opened as the schema says it is stored; anything else is as it is."""
    if not isinstance(source, str | Path):
        return opened
    known = schema.without(*(name for name in schema.names if name not in opened.columns))
    return open_table(source, schema=known).with_schema(None)


def _check_columns(first: Table, other: Table, domain: TableDomain, *, what: str, is_chosen: bool) -> None:
    absent = [name for name in domain.names if name not in other.columns]
    foreign = [] if is_chosen else [name for name in other.columns if name not in first.columns]
    if not absent and not foreign:
        return
    listing = ", ".join(f'"{name}"' for name in absent or foreign)
    shared = [name for name in domain.names if name in other.columns]
    told = f"The {what} table has no column {listing}." if absent else f"Only the {what} table has {listing}."
    fix = f"columns={shared!r} compares those that both have." if shared else "give tables with the same columns."
    raise ParameterError(told, fix=fix)


def _like(domain: TableDomain, first: Table, other: Table) -> Table:
    """Return a table whose columns have types that can be compared with those of the first."""
    wanted = {name: first.types[name] for name in domain.names if other.types[name] is not first.types[name]}
    changed = {}
    for name, storage in wanted.items():
        found = other.types[name]
        if not any(storage in family and found in family for family in (_NUMBERS, _TIMES)):
            raise ParameterError(
                f'Column "{name}" holds {found} values in one table and {storage} values in the other.',
                fix="store both alike, or state the storage of the column in the schema.",
            )
        if storage is not StorageType.INTEGER:
            changed[name] = storage
    if not changed:
        return other
    rows = other.to_arrow()
    for name, storage in changed.items():
        cast = rows.column(name).cast(ARROW_TYPES[storage], safe=False)
        rows = rows.set_column(rows.column_names.index(name), pa.field(name, cast.type), cast)
    return open_table(rows)


def _count_rows(table: Table, domain: TableDomain, *, what: str) -> CodedRows:
    codes, weights = code_rows(table, domain)
    if not len(codes):
        raise DataError(f"The {what} table has no rows.", fix="give a table with rows.")
    return CodedRows(domain, codes, weights)


def _is_numeric(schema: Schema, attribute: DomainAttribute) -> bool:
    if attribute.is_binned:
        return True
    return attribute.storage in _NUMBERS and schema[attribute.name].kind is Kind.NUMERIC


def amounts(attribute: DomainAttribute) -> Floats:
    """Return the number that each present cell of a numeric column stands for: its value, or the middle of its bin.

    Dates are days and times are seconds since the first edge.
    """
    if not attribute.is_binned:
        return np.array([float(item) for item in attribute.values])
    edges = np.array([_number(edge, attribute.edges[0]) for edge in attribute.edges])
    # The last whole number, or day, of a bin is one before its edge.
    last = edges[1:] - (attribute.storage in (StorageType.INTEGER, StorageType.DATE))
    return np.asarray((edges[:-1] + last) / 2)


def row_codes(attribute: DomainAttribute, values: pa.ChunkedArray) -> NDArray[np.int32]:
    """Return the cell of each value, in order; what is missing or not declared has the cell after the present ones."""
    kind = ARROW_TYPES[attribute.storage]
    cast = values.cast(kind, safe=False)
    if not attribute.is_binned:
        places = pc.index_in(cast, pa.array(attribute.values, kind))
        return np.asarray(places.fill_null(attribute.present).to_numpy(), dtype=np.int32)
    inner = pa.array(attribute.edges[1:-1], kind).to_numpy(zero_copy_only=False)
    filled = cast.fill_null(pa.scalar(attribute.edges[0], kind)).to_numpy()
    codes = np.searchsorted(inner, filled, side="right")
    return np.where(cast.is_null().to_numpy(), attribute.present, codes).astype(np.int32)


def scale_amounts(attribute: DomainAttribute) -> Floats:
    """Return the amounts of the present cells between 0 and 1."""
    found = amounts(attribute)
    spread = found[-1] - found[0] if len(found) > 1 else 1.0
    return np.asarray((found - found[0]) / spread)


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of cells as rows of numbers: an amount as one number, a name as an indicator per cell.

    Attributes:
        tables: whose cells.
        columns: which columns.
    """

    tables: Tables
    columns: tuple[int, ...]

    def of(self, codes: Codes) -> Floats:
        """Return one row of numbers per row of cells; a missing amount is one half, with an indicator beside it."""
        return np.hstack([self._column(codes[:, column], column) for column in self.columns])

    def distances(self, codes: Codes) -> Floats:
        """Return rows of which the squared Euclidean distance is the mean over columns of the squared difference.

        Two amounts differ by their distance between 0 and 1, two names by 1 unless they are the same, and any amount
        differs from a missing one by 0.87 to 1.
        """
        parts = []
        for column in self.columns:
            part = self._column(codes[:, column], column)
            if self.tables.numeric[column]:
                part[:, 1:] *= np.sqrt(0.75)  # one half squared is in the amount already
            else:
                # Two different names differ in two indicators, which together make a distance of 1.
                part *= np.sqrt(0.5)
            parts.append(part)
        return np.asarray(np.hstack(parts) / np.sqrt(len(self.columns)))

    def mix(self, codes: Codes) -> MixedRows:
        """Return rows of which distances are measured pair by pair: amounts between 0 and 1, names as their cells.

        Unlike in `distances`, any amount differs from a missing one by 1.
        """
        numeric = [column for column in self.columns if self.tables.numeric[column]]
        others = [column for column in self.columns if not self.tables.numeric[column]]
        shown = [np.append(scale_amounts(self.tables.domain.attributes[column]), np.nan) for column in numeric]
        numbers = [amounts[codes[:, column]] for amounts, column in zip(shown, numeric, strict=True)]
        return MixedRows(
            columns=tuple(self.tables.names[column] for column in (*numeric, *others)),
            numbers=np.column_stack(numbers) if numbers else np.zeros((len(codes), 0)),
            codes=codes[:, others],
            lows=np.zeros(len(numeric)),
            highs=np.ones(len(numeric)),
        )

    def _column(self, codes: NDArray[np.int32], column: int) -> Floats:
        attribute = self.tables.domain.attributes[column]
        if not self.tables.numeric[column]:
            return np.asarray(np.eye(attribute.size)[codes])
        shown = scale_amounts(attribute)
        if attribute.complete:
            return np.asarray(shown[codes][:, None])
        cells = np.zeros((attribute.size, 2))
        cells[:-1, 0], cells[-1] = shown, (0.5, 1.0)
        return np.asarray(cells[codes])


def _number(edge: Any, first: Any) -> float:  # numbers, dates or times, both of one kind
    if isinstance(edge, dt.datetime):
        return float((edge - first) / dt.timedelta(seconds=1))
    if isinstance(edge, dt.date):
        return float((edge - first).days)
    return float(edge)
