"""A slow and obvious reference of `Table.frequencies`: plain Python over rows, exact rationals, no SQL."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.data.bins import BinInterval
from cloister.data.frequency import FrequencyTable, MeasuredSums
from cloister.data.measures import CountPresent, Sum, SumOfSquares
from cloister.data.values import StorageType

Columns = dict[str, tuple[StorageType, list[Any]]]


def clean(item: Any, missing: Sequence[str] = ()) -> Any:
    if item is None or (isinstance(item, float) and math.isnan(item)) or item in missing:
        return None
    return 0.0 if isinstance(item, float) and item == 0 else item


def frequencies(
    data: Columns,
    columns: Sequence[str],
    *,
    keep: Callable[[dict[str, Any]], bool | None] = lambda row: True,
    bins: Mapping[str, Sequence[Any]] | None = None,
    categories: Mapping[str, tuple[Any, ...]] | None = None,
    measures: Mapping[str, Any] | None = None,
    missing: Sequence[str] = (),
) -> FrequencyTable:
    bins, categories, measures = bins or {}, categories or {}, measures or {}
    length = len(next(iter(data.values()))[1])
    rows = [{name: clean(values[i], missing) for name, (_, values) in data.items()} for i in range(length)]
    rows = [row for row in rows if keep(row) is True]
    decoders = tuple(_decoder(name, rows, bins.get(name), categories.get(name)) for name in columns)
    groups: dict[tuple[int, ...], list[dict[str, Any]]] = {} if columns else {(): []}
    for row in rows:
        key = tuple(_code(row[name], decoder, bins.get(name)) for name, decoder in zip(columns, decoders, strict=True))
        groups.setdefault(key, []).append(row)
    ordered = sorted(groups)
    return FrequencyTable(
        columns=tuple(columns),
        codes=np.array(ordered, dtype=np.int32).reshape(len(ordered), len(columns)),
        weights=np.array([len(groups[key]) for key in ordered], dtype=np.int64),
        decoders=decoders,
        types=tuple(data[name][0] for name in columns),
        declared=tuple(name in bins or name in categories for name in columns),
        measures={
            name: _sums(measure, data[measure.column][0], [groups[key] for key in ordered])
            for name, measure in measures.items()
        },
    )


def _decoder(name: str, rows: list[dict[str, Any]], edges: Any, categories: Any) -> tuple[Any, ...]:
    if edges is not None:
        return (*(BinInterval(edges[i], edges[i + 1]) for i in range(len(edges) - 1)), None)
    if categories is not None:
        return (*categories, None)
    values = {row[name] for row in rows}
    return (*sorted(values - {None}), *([None] if None in values else []))


def _code(item: Any, decoder: tuple[Any, ...], edges: Any) -> int:
    if edges is None:
        return decoder.index(item) if item in decoder else len(decoder) - 1
    for number, interval in enumerate(decoder[:-1]):
        if item is not None and interval.low <= item and (item < interval.high or interval.high == math.inf):
            return number
    return len(decoder) - 1


def _sums(measure: Any, storage: StorageType, groups: list[list[dict[str, Any]]]) -> MeasuredSums:
    totals = [sum(_contribution(measure, row[measure.column]) for row in group) for group in groups]
    if isinstance(measure, CountPresent):
        return MeasuredSums(np.array(totals, dtype=np.int64), Fraction(1), (0, 1))
    power = 2 if isinstance(measure, SumOfSquares) else 1
    low, high = (_steps(measure, bound) for bound in measure.bounds) if measure.bounds else (-(2**63), 2**63 - 1)
    steps = (min(low, 0), max(high, 0)) if power == 1 else (0, max(low * low, high * high))
    wide = max(map(abs, steps)) > 2**30
    return MeasuredSums(np.array(totals, dtype=object if wide else np.int64), measure.granularity**power, steps)


def _contribution(measure: Any, item: Any) -> int:
    if item is None:
        return 0
    if isinstance(measure, CountPresent):
        return 1
    if measure.bounds is not None:
        low, high = measure.bounds
        item = min(max(item, low), high)
    steps = _steps(measure, item)
    return steps * steps if isinstance(measure, SumOfSquares) else steps


def _steps(measure: Sum, item: Any) -> int:
    return math.floor(Fraction(item) / measure.granularity + Fraction(1, 2))
