"""Profiles of columns: one query for the counts and extremes of all, and one per type for the frequent values."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
from sqlglot import exp

from cloister.data.engines.base import ARROW_TYPES, Engine, value
from cloister.data.profile import ColumnProfile, StorageType

__all__ = ["COMMON_VALUES", "profile_columns"]

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
    branches = [_branch(engine, position) for position in positions]
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
    return ranked.order_by(exp.Ordered(this=exp.column("n"), desc=True), exp.column("v")).limit(COMMON_VALUES)
