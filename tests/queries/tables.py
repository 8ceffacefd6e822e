"""Private tables to ask in tests."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from cloister import Budget, Column, PrivateTable, Schema
from cloister.data.table import Table
from tests.queries.neighbors import fast_table

VISITS = pa.table(
    {
        "patient": [f"p{number % 40}" for number in range(120)],
        "age": pa.array([20 + number % 60 if number % 11 else None for number in range(120)], pa.int64()),
        "cost": [float(number % 50) / 2 for number in range(120)],
        "ward": ["north" if number % 3 else "south" for number in range(120)],
        "sick": [number % 4 == 0 for number in range(120)],
        "day": [dt.date(2026, 1, 1 + number % 3) for number in range(120)],
        "lat": [float(number % 10) for number in range(120)],
        "lon": [float(number % 12) for number in range(120)],
        "note": [f"n{number % 2}" for number in range(120)],
        "empty": pa.array([None] * 120, pa.int64()),
    }
)
SCHEMA = Schema(
    [
        Column(name="patient", role="identifier"),
        Column(name="age", kind="numeric", bounds=(0, 100)),
        Column(name="cost", kind="numeric", bounds=(0, 25)),
        Column(name="ward", categories=["north", "south", "west"]),
        Column(name="sick"),
        Column(name="day", kind="datetime", bounds=("2026-01-01", "2026-12-31")),
        Column(name="lat", kind="numeric", bounds=(0, 10)),
        Column(name="lon", kind="numeric", bounds=(0, 12)),
        Column(name="note"),
        Column(name="empty", kind="numeric", bounds=(0, 10)),
    ]
)


class SpyEngine:
    """An engine that counts the queries it runs, or fails on them."""

    def __init__(self, engine: Any, *, fails: Exception | None = None) -> None:
        self._engine, self._fails = engine, fails
        self.executed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def execute(self, query: Any, schema: Any) -> Any:
        self.executed += 1
        if self._fails is not None:
            raise self._fails
        return self._engine.execute(query, schema)


def visits(**options: Any) -> PrivateTable:
    """Return a private table of 120 visits of 40 patients."""
    return private(VISITS, schema=SCHEMA, **options)


def private(rows: pa.Table, *, schema: Schema | None = None, fails: Exception | None = None, **options: Any) -> Any:
    table = fast_table(rows, name=f"table_{id(rows)}")
    watched = Table(SpyEngine(table.engine, fails=fails), schema=schema)  # type: ignore[arg-type]
    options.setdefault("budget", Budget(epsilon=10**12, delta=0.5))
    return PrivateTable(watched, **options)


def executed(table: PrivateTable) -> int:
    return int(table._table.engine.executed)  # type: ignore[attr-defined]
