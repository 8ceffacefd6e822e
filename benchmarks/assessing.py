"""How long it takes to measure a table: all models and risks, on Adult and on a million rows drawn from it.

CPU seconds of a warm process, the best of three. The table is in memory; one count of it in the engine is the floor.
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.csv

import cloister as cl
from benchmarks.shared_adult import adult_file, adult_schema
from cloister.core.random import SeededRandomSource, integers_below

TITLE = "Measuring a table: all models and risks"
LARGE = 1_000_000
TARGETS = {"30,162 rows": 0.1, "1,000,000 rows": 1.0}
REPEATS = 3


def main(large: int = LARGE) -> list[dict[str, Any]]:
    """Return the CPU time of one assessment, without and with an estimate for the population."""
    rows = pyarrow.csv.read_csv(adult_file())
    schema = adult_schema()
    drawn = rows.take(pa.array(integers_below(SeededRandomSource(6), len(rows), large)))
    results = []
    for (name, target), table in zip(TARGETS.items(), (rows, drawn), strict=True):
        opened = cl.open_table(table, schema=schema)
        results.append(_row(name, _seconds(opened), target))
        people = 10 * len(table)
        results.append(
            _row(f"{name}, with an estimate for the population", _seconds(opened, population=people), target)
        )
        results.append({"name": f"{name}: one count, the floor", "ours": _counted(opened), "unit": "CPU s"})
    return results


def _row(name: str, seconds: float, target: float) -> dict[str, Any]:
    return {"name": name, "ours": seconds, "unit": "CPU s", "target": f"<= {target:g}", "met": seconds <= target}


def _seconds(table: cl.Table, **options: Any) -> float:
    return _best(lambda: cl.assess(table, **options))


def _counted(table: cl.Table) -> float:
    return _best(lambda: table.with_schema(None).frequencies(list(table.columns)))


def _best(work: Any) -> float:
    work()
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)
