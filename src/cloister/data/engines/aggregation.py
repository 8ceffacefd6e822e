"""What an engine aggregates for us: grouped counts and sums, and the profiles of columns.

Counts and sums are one query in the engine, then integer coding of its few result rows in Arrow and NumPy. Profiles are
one query for the counts and extremes of all columns, and one per type for the frequent values.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from cloister.data.bins import ColumnBins
from cloister.data.engines.base import ARROW_TYPES, Engine, as_date, as_timestamp, value, within_calendar
from cloister.data.frequency import FrequencyTable, MeasuredSums, build
from cloister.data.measures import Measure, Sum
from cloister.data.values import ColumnProfile, StorageType

__all__ = ["COMMON_VALUES", "CountKey", "as_stored", "count_groups", "profile_columns"]


_WIDE = "DECIMAL(38, 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountKey:
    """A column to group by: as it is, in bins, or by categories. ``is_declared`` says that those are public facts."""

    name: str
    position: int
    type: StorageType
    bins: ColumnBins | None = None
    categories: tuple[Any, ...] | None = None
    is_declared: bool = False

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type in which the engine returns the column."""
        return pa.int64() if self.bins is not None else ARROW_TYPES[self.type]

    def group(self, engine: Engine) -> exp.Expression:
        """Return what the engine groups by. Texts that mean a missing value are merged afterwards, among groups."""
        if self.bins is not None:
            return self.bins.code(value(engine, self.position))
        return value(engine, self.position) if self.type is StorageType.REAL else engine.stored(self.position)

    def select(self, grouped: exp.Expression) -> exp.Expression:
        """Return what the engine shows of a group: dates that Python can hold."""
        is_dated = self.bins is None and self.type in (StorageType.DATE, StorageType.TIMESTAMP)
        return within_calendar(grouped, self.type) if is_dated else grouped.copy()


def count_groups(
    engine: Engine,
    keys: Sequence[CountKey],
    *,
    condition: exp.Expression | None,
    measures: Mapping[str, Measure],
    positions: Mapping[str, int],
) -> FrequencyTable:
    """Run the query and return its groups as a frequency table."""
    query, schema = _plan(engine, keys, condition, measures, positions)
    result = engine.execute(query, schema)
    # Coded after the engine has grouped: few rows are left, and all engines sort alike here.
    coded = [_encode(result.column(f"k{number}"), key, engine.missing) for number, key in enumerate(keys)]
    codes = np.empty((result.num_rows, len(keys)), dtype=np.int32)
    for number, (column, _) in enumerate(coded):
        codes[:, number] = column
    sums = {
        name: MeasuredSums(
            _sums(result.column(f"m{number}")), measure.unit, measure.steps(engine.types[positions[name]])
        )
        for number, (name, measure) in enumerate(measures.items())
    }
    return build(
        columns=tuple(key.name for key in keys),
        codes=codes,
        weights=_sums(result.column("n")),
        decoders=tuple(decoder for _, decoder in coded),
        types=tuple(key.type for key in keys),
        declared=tuple(key.is_declared for key in keys),
        measures=sums,
    )


def _plan(
    engine: Engine,
    keys: Sequence[CountKey],
    condition: exp.Expression | None,
    measures: Mapping[str, Measure],
    positions: Mapping[str, int],
) -> tuple[exp.Select, pa.Schema]:
    groups = [key.group(engine) for key in keys]
    grouped = [
        (f"k{number}", key.select(group), key.arrow_type)
        for number, (key, group) in enumerate(zip(keys, groups, strict=True))
    ]
    totals: list[tuple[str, exp.Expression, pa.DataType]] = [("n", exp.Count(this=exp.Star()), pa.int64())]
    for number, (name, measure) in enumerate(measures.items()):
        position = positions[name]
        totals.append((f"m{number}", *_sum_measure(engine, position, measure)))
    selected = [exp.alias_(column, name, quoted=True) for name, column, _ in (*grouped, *totals)]
    query = exp.select(*selected).from_(engine.source(), copy=False)
    if condition is not None:
        query = query.where(condition)
    if grouped:
        query = query.group_by(*groups, copy=False)
    return query, pa.schema([(name, kind) for name, _, kind in (*grouped, *totals)])


def _sum_measure(engine: Engine, position: int, measure: Measure) -> tuple[exp.Expression, pa.DataType]:
    storage = engine.types[position]
    source = engine.stored(position) if isinstance(measure, Sum) else value(engine, position)
    added = measure.contribution(source, storage)
    if measure.is_wide(storage):
        # Where the engine adds in 64 bits each number is widened first: a sum that overflows would fail by its rows.
        wide = exp.cast(added, _WIDE) if engine.sums_overflow else added
        return exp.cast(exp.Sum(this=wide), _WIDE), pa.decimal128(38, 0)
    return exp.cast(exp.Sum(this=added), "BIGINT"), pa.int64()


def _sums(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return whole numbers; an empty sum is zero."""
    if pa.types.is_decimal(column.type):
        numbers = np.empty(len(column), dtype=object)
        numbers[:] = [0 if item is None else int(item) for item in column.to_pylist()]
        return numbers
    return np.asarray(pc.fill_null(column, 0).to_numpy(), dtype=np.int64)


def _encode(column: pa.ChunkedArray, key: CountKey, missing: Sequence[str]) -> tuple[NDArray[Any], tuple[Any, ...]]:
    """Return the codes of a result column and the values they stand for."""
    array = _merge_missing(column.combine_chunks(), key, missing)
    if key.bins is not None:
        intervals = key.bins.intervals
        return pc.fill_null(array, len(intervals)).to_numpy(), (*intervals, None)
    if key.categories is not None:
        return _encode_declared(array, key.categories, key.type)
    encoded = array.dictionary_encode()
    values = encoded.dictionary
    # Sorted by code points in Arrow, since engines order texts in different ways.
    order = pc.sort_indices(values)
    ranks = np.empty(len(values) + 1, dtype=np.int32)
    ranks[order.to_numpy()] = np.arange(len(values))
    ranks[-1] = len(values)
    codes = ranks[pc.fill_null(encoded.indices, len(values)).to_numpy()]
    decoder = values.take(order).to_pylist()
    return codes, (*decoder, None) if array.null_count else tuple(decoder)


def _encode_declared(
    array: pa.Array, categories: tuple[Any, ...], storage: StorageType
) -> tuple[NDArray[Any], tuple[Any, ...]]:
    """Return codes among the declared values; every other value is missing."""
    stored = [as_stored(category, storage) for category in categories]
    known = [number for number, item in enumerate(stored) if item is not None]
    # A declared value that the column cannot hold occurs nowhere, and must not shift the others.
    found = pc.index_in(array, value_set=pa.array([stored[number] for number in known], array.type))
    numbers = np.array([*known, len(categories)], dtype=np.int32)
    return numbers[pc.fill_null(found, len(known)).to_numpy()], (*categories, None)


def _merge_missing(array: pa.Array, key: CountKey, missing: Sequence[str]) -> pa.Array:
    """Return the column with the markers as null."""
    if key.type is StorageType.TEXT and missing:
        marked = pc.is_in(array, value_set=pa.array(missing, pa.string()))
        return pc.if_else(marked, pa.scalar(None, array.type), array)
    return array


def as_stored(category: Any, storage: StorageType) -> Any:
    """Return a declared category as a value of the column, or None if the column cannot hold it."""
    is_truth = isinstance(category, bool)
    match storage:
        case StorageType.TEXT:
            return str(category).lower() if is_truth else str(category)
        case StorageType.BOOLEAN:
            return category if is_truth else None
        case StorageType.INTEGER | StorageType.REAL:
            is_number = isinstance(category, int | float | Fraction) and not is_truth
            return _as_number(category, storage) if is_number else None
        case StorageType.DATE:
            return _as_date(category)
        case StorageType.TIMESTAMP:
            stamp = as_timestamp(category) if isinstance(category, str) else category
            return stamp if isinstance(stamp, dt.datetime) else None


def _as_number(category: int | float | Fraction, storage: StorageType) -> int | float | None:
    if storage is StorageType.REAL:
        # Adding zero turns -0.0 into 0.0, which is how the engine groups it.
        return float(category) + 0.0
    if not math.isfinite(category) or category != int(category) or not -(2**63) <= int(category) < 2**63:
        return None
    return int(category)


def _as_date(category: Any) -> dt.date | None:
    day = as_date(category) if isinstance(category, str) else category
    return day if isinstance(day, dt.date) and not isinstance(day, dt.datetime) else None


COMMON_VALUES = 1000
"""How many of a column's most frequent values a profile lists at most."""


def profile_columns(engine: Engine) -> list[ColumnProfile]:
    """Return the profile of every column."""
    facts = _facts(engine)
    common = _common(engine)
    return [
        ColumnProfile(
            name=name,
            type=storage,
            rows=facts["rows"],
            missing=facts["rows"] - facts[f"present{position}"],
            distinct=facts[f"distinct{position}"],
            minimum=facts[f"minimum{position}"],
            maximum=facts[f"maximum{position}"],
            common=tuple(common[position]),
        )
        for position, (name, storage) in enumerate(zip(engine.names, engine.types, strict=True))
    ]


def _facts(engine: Engine) -> dict[str, Any]:
    selected: list[tuple[str, exp.Expression, pa.DataType]] = [("rows", exp.Count(this=exp.Star()), pa.int64())]
    for position, storage in enumerate(engine.types):
        column = value(engine, position)
        kind = pa.int64() if storage is StorageType.BOOLEAN else ARROW_TYPES[storage]
        ordered = _orderable(column, storage)
        selected += [
            (f"present{position}", exp.Count(this=column), pa.int64()),
            (f"distinct{position}", exp.Count(this=exp.Distinct(expressions=[column.copy()])), pa.int64()),
            (f"minimum{position}", exp.Min(this=ordered), kind),
            (f"maximum{position}", exp.Max(this=ordered.copy()), kind),
        ]
    query = exp.select(*(exp.alias_(column, name, quoted=True) for name, column, _ in selected)).from_(engine.source())
    row: dict[str, Any] = engine.execute(query, pa.schema([(name, kind) for name, _, kind in selected])).to_pylist()[0]
    for position, storage in enumerate(engine.types):
        if storage is StorageType.BOOLEAN:
            for end in (f"minimum{position}", f"maximum{position}"):
                row[end] = None if row[end] is None else bool(row[end])
    return row


def _orderable(column: exp.Expression, storage: StorageType) -> exp.Expression:
    """Return a truth value as a number, since not every engine orders truth values."""
    return exp.cast(exp.cast(column, "INT"), "BIGINT") if storage is StorageType.BOOLEAN else column.copy()


def _common(engine: Engine) -> dict[int, list[Any]]:
    by_type: dict[StorageType, list[int]] = defaultdict(list)
    for position, storage in enumerate(engine.types):
        by_type[storage].append(position)
    common: dict[int, list[Any]] = defaultdict(list)
    for storage, positions in by_type.items():
        schema = pa.schema([("p", pa.int64()), ("v", ARROW_TYPES[storage]), ("n", pa.int64())])
        rows = engine.execute(_most_frequent(engine, positions), schema)
        for position, item in zip(rows.column("p").to_pylist(), rows.column("v").to_pylist(), strict=True):
            common[position].append(item)
    return common


def _most_frequent(engine: Engine, positions: list[int]) -> exp.Select:
    """Return a query for the most frequent values of several columns of one type, in a fixed order."""
    # Each branch has an order and a limit of its own: it must be selected from before it can be part of a union.
    branches = [exp.select("p", "v", "n").from_(_branch(engine, at).subquery(f"common_{at}")) for at in positions]
    union: exp.Query = branches[0]
    for branch in branches[1:]:
        union = exp.union(union, branch, distinct=False)
    everything = exp.select("p", "v", "n").from_(union.subquery("ranked"))
    return everything.order_by(exp.column("p"), exp.Ordered(this=exp.column("n"), desc=True), exp.column("v"))


def _branch(engine: Engine, position: int) -> exp.Select:
    column = value(engine, position)
    number = exp.cast(exp.Literal.number(position), "BIGINT")
    counted = (
        exp.select(exp.alias_(number, "p"), exp.alias_(column, "v"), exp.alias_(exp.Count(this=exp.Star()), "n"))
        .from_(engine.source())
        .where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null())))
        .group_by(column.copy())
    )
    ranked = exp.select("p", "v", "n").from_(counted.subquery("counted"))
    # The value itself decides between equal counts, so that a profile does not change from run to run.
    return ranked.order_by(exp.Ordered(this=exp.column("n"), desc=True), exp.column("v")).limit(COMMON_VALUES)
