"""`Table.frequencies` beside the same plain DuckDB group-by: 10 million rows, 1000 groups, counts and clamped sums.

The peer is what a person would write: no schema, no exact steps, no integer codes. Both read the same Arrow table in
memory, alternate in one run, and are compared by the median of their wall and CPU times.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from cloister.core.random import SeededRandomSource, integers_below
from cloister.data.measures import Sum
from cloister.data.sources import open_table

TITLE = "Frequency tables: 10 million rows, 1000 groups"
ROWS = 10_000_000
GROUPS = 1000
REPEATS = 7
TARGET = 1.3

_CLAMPED = "sum(CASE WHEN {0} < {1} THEN {1} WHEN {0} > {2} THEN {2} ELSE {0} END)"


def main(rows: int = ROWS, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Measure every case, print the figures and return them."""
    data = _data(rows)
    table = open_table(data)
    connection = duckdb.connect()
    connection.register("data", data)
    results = []
    for name, columns, measures, sql in _cases():
        ours = _repeatable(lambda c=columns, m=measures: table.frequencies(c, measures=m))
        peer = _repeatable(lambda s=sql: connection.sql(s).to_arrow_table())
        results += _compare(name, ours, peer, repeats)
    for row in results:
        print(
            f"{row['name']:58} ours {row['ours']:.3f} {row['unit']}  peer {row['peer']:.3f}  ratio {row['ratio']:.2f}"
        )
    return results


def _cases() -> list[tuple[str, list[str], dict[str, Sum], str]]:
    amount = _CLAMPED.format("amount", 0, 900)
    price = _CLAMPED.format("price", 0.0, 900.0)
    return [
        (
            "integer key, count and integer sum",
            ["key"],
            {"amount": Sum("amount")},
            "SELECT key, count(*), sum(amount) FROM data GROUP BY key",
        ),
        (
            "integer key, count and clamped integer sum",
            ["key"],
            {"amount": Sum("amount", bounds=(0, 900))},
            f"SELECT key, count(*), {amount} FROM data GROUP BY key",
        ),
        (
            "integer key, count and clamped real sum",
            ["key"],
            {"price": Sum("price", bounds=(0, 900), granularity=2**-10)},
            f"SELECT key, count(*), {price} FROM data GROUP BY key",
        ),
        (
            "text key, count and clamped integer and real sums",
            ["name"],
            {"amount": Sum("amount", bounds=(0, 900)), "price": Sum("price", bounds=(0, 900), granularity=2**-10)},
            f"SELECT name, count(*), {amount}, {price} FROM data GROUP BY name",
        ),
        ("two keys, count", ["key", "half"], {}, "SELECT key, half, count(*) FROM data GROUP BY key, half"),
    ]


def _data(rows: int) -> pa.Table:
    source = SeededRandomSource(1)
    keys = integers_below(source, GROUPS, rows)
    amounts = integers_below(source, 1000, rows) - 20
    prices = integers_below(source, 2**30, rows) * (1000 / 2**30) - 20
    names = pa.array([f"group number {key}" for key in range(GROUPS)])
    return pa.table(
        {
            "key": keys,
            "name": pa.DictionaryArray.from_arrays(pa.array(keys.astype(np.int32)), names).cast(pa.string()),
            "half": keys % 2 == 0,
            "amount": amounts,
            "price": prices,
        }
    )


def _repeatable(work: Callable[[], object]) -> Callable[[], tuple[float, float]]:
    def timed() -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - wall, time.process_time() - cpu

    return timed


def _compare(
    name: str, ours: Callable[[], tuple[float, float]], peer: Callable[[], tuple[float, float]], repeats: int
) -> list[dict[str, Any]]:
    ours(), peer()
    pairs = [(ours(), peer()) for _ in range(repeats)]
    results = []
    for position, unit in enumerate(("wall s", "CPU s")):
        mine = statistics.median(pair[0][position] for pair in pairs)
        theirs = statistics.median(pair[1][position] for pair in pairs)
        results.append(
            {
                "name": f"{name} ({unit.split()[0]})",
                "ours": mine,
                "peer": theirs,
                "ratio": mine / theirs,
                "target": TARGET,
                "met": mine / theirs <= TARGET,
                "peer_name": "DuckDB",
                "unit": unit,
            }
        )
    return results


if __name__ == "__main__":
    main()
