"""What rows can be, from public facts alone: every column cut into declared cells, and cells turned into values again.

A category is a cell; numbers, dates and times are cut into public bins, the outer ones taking what lies outside. A
column has one more cell for missing values unless it was declared complete. Whole numbers with few possible values
have a cell each.

`public_schema` is what a model and its rows say about their columns: what a person stated, and nothing that was read
from the data.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.validation import check_count
from cloister.data.bins import BinInterval, ColumnBins
from cloister.data.columns import Column, Kind, Role
from cloister.data.engines.aggregation import as_stored
from cloister.data.engines.base import ARROW_TYPES
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import MissingBoundsError, ParameterError, ParameterTypeError, SchemaError, UnknownColumnError
from cloister.synth.inference._marginal_model import uniforms

__all__ = ["DomainAttribute", "TableDomain", "declare_domain", "public_schema"]


DEFAULT_BINS = 32
MOST_BINS = 100_000
_DAY = dt.timedelta(days=1)
_SECOND = dt.timedelta(seconds=1)
_NUMBERS = (StorageType.INTEGER, StorageType.REAL)
_TIMES = (StorageType.DATE, StorageType.TIMESTAMP)


@dataclass(frozen=True)
class DomainAttribute:
    """One column and its cells.

    Attributes:
        name: of the column.
        storage: the type of its values.
        values: its declared values, where it has categories.
        edges: the edges of its bins, where it has bins.
        complete: whether it never has missing values.
    """

    name: str
    storage: StorageType
    values: tuple[Any, ...] = ()
    edges: tuple[Any, ...] = ()
    complete: bool = False

    @property
    def present(self) -> int:
        """Return the number of cells that are not missing."""
        return len(self.values) if self.values else len(self.edges) - 1

    @property
    def size(self) -> int:
        """Return the number of cells."""
        return self.present + (not self.complete)

    @property
    def is_binned(self) -> bool:
        """Return whether the cells are bins."""
        return not self.values

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the cells as texts."""
        shown = [str(item) for item in self.values] or [
            str(BinInterval(low, high)) for low, high in zip(self.edges, self.edges[1:], strict=False)
        ]
        return (*shown, *(() if self.complete else ("missing",)))

    @property
    def engine_edges(self) -> list[Any] | None:
        """Return the edges by which an engine bins: the outer ones take what lies outside."""
        return [-math.inf, *self.edges[1:-1], math.inf] if self.is_binned else None

    def codes(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """Return the cell of each value, the number of present cells for what is missing or not declared."""
        if not self.is_binned:
            place = {value: position for position, value in enumerate(self.values)}
            return np.array([place.get(value, self.present) for value in values], dtype=np.int64)
        inner = list(self.edges[1:-1])
        found = [
            self.present if value is None else int(np.searchsorted(inner, value, side="right")) for value in values
        ]
        return np.array(found, dtype=np.int64)

    def decode(self, codes: NDArray[Any], source: RandomSource, *, between: tuple[Any, Any] | None = None) -> pa.Array:
        """Return a value for each cell: its category, or a uniform draw from its bin.

        Args:
            codes: the cells.
            source: of the draws.
            between: limits inside of which values are drawn.
        """
        kind, missing = ARROW_TYPES[self.storage], codes >= self.present
        if not self.is_binned:
            listed = pa.array([*self.values, None], kind)
            return listed.take(pa.array(np.minimum(codes, self.present), pa.int64()))
        low, high = (np.array([_number(edge) for edge in part]) for part in (self.edges[:-1], self.edges[1:]))
        if between is not None:
            first, last = map(_number, between)
            # The upper limit is included, while draws stay below an edge.
            low, high = np.maximum(low, first), np.minimum(high, np.nextafter(last, math.inf))
        # Missing cells get any bin for the draw, and are masked at the end.
        inside = np.where(missing, 0, codes)
        drawn = self._drawn(low[inside], high[inside], uniforms(source, len(codes)))
        return _to_storage(drawn, self.storage, missing)

    def _drawn(self, low: Any, high: Any, spread: Any) -> Any:
        if self.storage is StorageType.REAL:
            return low + (high - low) * spread
        # A bin that limits cut to less than one whole number keeps its first one, and rounding must not reach
        # the end.
        first, end = np.ceil(low), np.maximum(np.ceil(high), np.ceil(low) + 1)
        return np.minimum(first + np.floor((end - first) * spread), end - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        cells = (
            {"edges": [_plain(edge) for edge in self.edges]}
            if self.is_binned
            else {"values": list(map(_plain, self.values))}
        )
        return {"name": self.name, "storage": str(self.storage), **cells, "complete": self.complete}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DomainAttribute:
        """Return what `to_dict` wrote."""
        storage = StorageType(values["storage"])
        return cls(
            name=str(values["name"]),
            storage=storage,
            values=tuple(_read(item, storage) for item in values.get("values", ())),
            edges=tuple(_read(item, storage) for item in values.get("edges", ())),
            complete=bool(values["complete"]),
        )


@dataclass(frozen=True)
class TableDomain:
    """The columns that are synthesized, in order."""

    attributes: tuple[DomainAttribute, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(item.name for item in self.attributes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of cells of each column."""
        return tuple(item.size for item in self.attributes)

    @property
    def cells(self) -> int:
        """Return the number of combinations of all cells."""
        return math.prod(self.sizes)

    def positions(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the positions of columns, in ascending order.

        Raises:
            UnknownColumnError: if there is no such column.
        """
        listed = [names] if isinstance(names, str) else list(names)
        for name in listed:
            if name not in self.names:
                raise UnknownColumnError(str(name), self.names)
        return tuple(sorted(self.names.index(name) for name in listed))

    def __getitem__(self, name: str) -> DomainAttribute:
        return self.attributes[self.positions([name])[0]]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"columns": [item.to_dict() for item in self.attributes]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TableDomain:
        """Return what `to_dict` wrote."""
        return cls(tuple(DomainAttribute.from_dict(item) for item in values["columns"]))


def declare_domain(
    table: Table,
    *,
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    bins: Any = None,  # a number, or a mapping of numbers and lists of edges
    complete: Any = (),  # column names, or True for all
    apart: Iterable[str] = (),
) -> TableDomain:
    """Return the cells of a table's columns, from a confirmed schema.

    Args:
        table: the rows, which are not looked at.
        schema: what is known of the columns; the table's own by default.
        columns: which of them; without it, all that the schema describes but identifiers.
        bins: into how many bins numbers and times are cut, or at which edges: for all, or by column.
        complete: the columns that never have missing values, which is public knowledge; or True for all.
        apart: columns that are left out unless they were asked for.

    Raises:
        MissingBoundsError: if nothing public is known of a column.
        UnconfirmedSchemaError: if what is known is a guess.
    """
    known = table.schema if schema is None else schema
    if known is None:
        raise MissingBoundsError(
            "Nothing is known about the columns, and reading their values from the data would not be private.",
            fix='describe them in a schema: open_table("data.csv", schema="data.schema.yaml").',
        )
    names = _choose_columns(table, known, columns, set(apart))
    cuts = _cuts(bins, names)
    whole = _complete(complete, names)
    return TableDomain(
        tuple(_attribute(known, name, table.types[name], cuts[name], complete=name in whole) for name in names)
    )


def _choose_columns(table: Table, schema: Schema, columns: Sequence[str] | None, apart: set[str]) -> tuple[str, ...]:
    if columns is None:
        # A guess that a column identifies people would let the rows decide which columns there are.
        apart_by_role = [name for name in schema.names if schema[name].role is Role.IDENTIFIER or schema[name].subject]
        schema.require_confirmed(apart_by_role, facts=("role", "subject"))
        names = tuple(
            name
            for name in table.columns
            if name in schema
            and schema[name].role is not Role.IDENTIFIER
            and not schema[name].subject
            and name not in apart
        )
    else:
        if isinstance(columns, str):
            raise ParameterTypeError("columns is not a list.", fix=f'write columns=["{columns}"].')
        names = tuple(columns)
    for name in names:
        if name not in table.columns:
            raise UnknownColumnError(str(name), table.columns)
        if name not in schema:
            raise MissingBoundsError(
                f'The schema does not describe column "{name}".',
                fix="add it to the schema, or leave it out of columns.",
            )
        if schema[name].role is Role.IDENTIFIER or schema[name].subject:
            raise ParameterError(
                f'Column "{name}" identifies people, and is not synthesized.', fix="leave it out of columns."
            )
    if not names or len(set(names)) != len(names):
        raise ParameterError("There are no columns, or one of them twice.", fix="name each column once.")
    return names


def _cuts(bins: Any, names: Sequence[str]) -> dict[str, Any]:
    if bins is None or isinstance(bins, int):
        return dict.fromkeys(names, DEFAULT_BINS if bins is None else check_count(bins, name="bins", at_least=1))
    if not isinstance(bins, Mapping):
        raise ParameterTypeError("bins is not a number or a mapping.", fix='write bins=32, or bins={"age": 10}.')
    unknown = next((name for name in bins if name not in names), None)
    if unknown is not None:
        raise UnknownColumnError(str(unknown), names)
    return {name: bins.get(name, DEFAULT_BINS) for name in names}


def _many(cut: Any) -> int:
    """Return a number of bins, or refuse one that no table could fill."""
    many = check_count(cut, name="bins", at_least=1)
    if many > MOST_BINS:
        raise ParameterError(
            f"bins is above {MOST_BINS:,}.", fix="use for example bins=32: every bin gets noise of its own."
        )
    return many


def _complete(complete: Any, names: Sequence[str]) -> frozenset[str]:
    if isinstance(complete, bool):
        return frozenset(names if complete else ())
    listed = [complete] if isinstance(complete, str) else list(complete)
    for name in listed:
        if name not in names:
            raise UnknownColumnError(str(name), names)
    return frozenset(listed)


def _attribute(schema: Schema, name: str, storage: StorageType, cut: Any, *, complete: bool) -> DomainAttribute:
    column = schema[name]
    if column.categories is not None and isinstance(cut, int):
        return DomainAttribute(name, storage, values=_values(schema, name, storage), complete=complete)
    if storage is StorageType.BOOLEAN:
        return DomainAttribute(name, storage, values=(False, True), complete=complete)
    if storage in (*_NUMBERS, *_TIMES):
        return _cut(schema, name, storage, cut, complete=complete)
    schema.categories_of(name)  # says what to do
    raise ParameterError(f'Column "{name}" holds texts, which have no bins.', fix="leave it out of bins.")


def _values(schema: Schema, name: str, storage: StorageType) -> tuple[Any, ...]:
    stored = [as_stored(item, storage) for item in schema.categories_of(name)]
    if any(item is None for item in stored):
        raise SchemaError(
            f'Some categories of "{name}" are not values that the column, which holds {storage} values, can have.',
            fix="write the categories as the column stores them, or state its storage in the schema.",
        )
    return tuple(stored)


def _cut(schema: Schema, name: str, storage: StorageType, cut: Any, *, complete: bool) -> DomainAttribute:
    if not isinstance(cut, int):
        given = ColumnBins.of(name, list(cut), storage)
        if any(isinstance(edge, float) and math.isinf(edge) for edge in given.edges):
            raise ParameterError(f'The bins of "{name}" are endless.', fix="give finite outer edges.")
        return DomainAttribute(name, storage, edges=tuple(given.edges), complete=complete)
    low, high = schema.bounds_of(name)
    many = _many(cut)
    if storage in _NUMBERS:
        first, last = Fraction(low), Fraction(high)  # type: ignore[arg-type]  # bounds of a number
        if storage is StorageType.INTEGER:
            return _whole(name, math.ceil(first), math.floor(last), many, complete=complete)
        edges = [float(first + (last - first) * place / many) for place in range(many + 1)]
        return DomainAttribute(name, storage, edges=tuple(edges), complete=complete)
    return DomainAttribute(name, storage, edges=_moments(low, high, storage, many), complete=complete)


def _whole(name: str, first: int, last: int, many: int, *, complete: bool) -> DomainAttribute:
    if last < first:
        raise SchemaError(f'No whole number lies between the bounds of "{name}".', fix="correct the bounds.")
    count = last - first + 1
    if count <= many:
        return DomainAttribute(name, StorageType.INTEGER, values=tuple(range(first, last + 1)), complete=complete)
    edges = tuple(math.ceil(first + Fraction(count * place, many)) for place in range(many + 1))
    return DomainAttribute(name, StorageType.INTEGER, edges=edges, complete=complete)


def _moments(low: Any, high: Any, storage: StorageType, many: int) -> tuple[Any, ...]:
    step = _DAY if storage is StorageType.DATE else _SECOND
    first, last = (_moment(item, storage) for item in (low, high))
    count = (last - first) // step + 1
    many = min(many, count)
    return tuple(first + step * math.ceil(Fraction(count * place, many)) for place in range(many + 1))


def _moment(item: Any, storage: StorageType) -> Any:
    is_time = isinstance(item, dt.datetime)
    if storage is StorageType.TIMESTAMP:
        return item.replace(tzinfo=None) if is_time else dt.datetime.combine(item, dt.time())
    return item.date() if is_time else item


def _number(item: Any) -> float:
    """Return a value of a bin as a number: itself, a day, or a second."""
    if isinstance(item, dt.datetime):
        return (item - dt.datetime(1970, 1, 1)) / _SECOND
    if isinstance(item, dt.date):
        return float((item - dt.date(1970, 1, 1)).days)
    return float(item)


def _to_storage(numbers: NDArray[np.float64], storage: StorageType, missing: NDArray[np.bool_]) -> pa.Array:
    match storage:
        case StorageType.REAL:
            return pa.array(numbers, mask=missing)
        case StorageType.INTEGER:
            return pa.array(numbers.astype(np.int64), mask=missing)
        case StorageType.DATE:
            return pa.array(numbers.astype(np.int32), mask=missing).cast(pa.date32())
        case _:
            return pa.array(numbers.astype(np.int64) * 10**6, mask=missing).cast(pa.timestamp("us"))


def _plain(item: Any) -> Any:
    return item.isoformat() if isinstance(item, dt.date) else item


def _read(item: Any, storage: StorageType) -> Any:
    match storage:
        case StorageType.DATE:
            return dt.date.fromisoformat(item)
        case StorageType.TIMESTAMP:
            return dt.datetime.fromisoformat(item)
        case StorageType.REAL:
            return float(item)
        case StorageType.INTEGER:
            return int(item)
        case StorageType.BOOLEAN:
            return bool(item)
        case _:
            return str(item)


def public_schema(schema: Schema, names: Collection[str]) -> Schema:
    """Return the stated facts of some columns, which may be handed out with a model.

    Guessed facts and the evidence for them come from the rows. Hierarchies may list the values of the rows. Neither is
    needed to draw rows, so all of them are left out.

    Args:
        schema: what is known of the columns, guesses among it.
        names: the columns that are kept.
    """
    return Schema(_keep_stated(column) for name, column in schema.columns.items() if name in names)


def _keep_stated(column: Column) -> Column:
    guessed = column.guessed
    return replace(
        column,
        role=Role.QUASI if "role" in guessed else column.role,
        kind=Kind.NOMINAL if "kind" in guessed and column.categories is not None else column.kind,
        storage=column.stated_storage,
        bounds=None if "bounds" in guessed else column.bounds,
        categories=None if "categories" in guessed else column.categories,
        hierarchy=None,
        hierarchy_file=None,
        subject=column.subject and "subject" not in guessed,
        guessed=frozenset(),
        evidence="",
    )
