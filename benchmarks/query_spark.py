"""The row-level query on Apache Spark in local mode, beside the plain Spark query.

Both run in one session over the same Parquet file and alternate; the medians of wall time and of CPU time are compared.
CPU time is that of this process, the Java machine and its workers together.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import query_data
from benchmarks.peers import ours
from benchmarks.query_data import GROUPS, LIMIT, ROWS
from benchmarks.usage import cpu_seconds

TITLE = "Private queries on Spark in local mode: 10 million rows, 1000 groups, COUNT + SUM + AVG"
REPEATS = 7
WARM_UP = 3
TARGET = 1.3

Times = Callable[[], tuple[float, float]]


def main(rows: int = ROWS, groups: int = GROUPS, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Return wall and CPU seconds of both."""
    with tempfile.TemporaryDirectory() as folder, _session(folder) as session:
        path = Path(folder) / "rows.parquet"
        query_data.write_table(path, rows=rows, groups=groups)
        frame = session.read.parquet(str(path))
        frame.createOrReplaceTempView("data")
        plain = _times(lambda: session.sql(ours.SQL).collect())
        by_row, by_person = (_private(frame, groups, limit) for limit in (None, LIMIT))
        return [
            *_compared("row unit", by_row, plain, repeats, target=TARGET),
            *_compared(f"person unit, limit {LIMIT}", by_person, plain, repeats, target=None),
        ]


def _private(frame: Any, groups: int, limit: int | None) -> Times:
    ask = ours.prepare(frame, groups=groups, limit=limit)
    return _times(lambda: ask(1.0))


def _times(ask: Callable[[], object]) -> Times:
    def timed() -> tuple[float, float]:
        wall, cpu = time.perf_counter(), cpu_seconds()
        ask()
        return time.perf_counter() - wall, cpu_seconds() - cpu

    return timed


def _compared(
    name: str,
    mine: Times,
    plain: Times,
    repeats: int,
    *,
    target: float | None,
) -> list[dict[str, Any]]:
    pairs = [(mine(), plain()) for _ in range(WARM_UP + repeats)][WARM_UP:]
    rows: list[dict[str, Any]] = []
    for place, unit in enumerate(("wall s", "CPU s")):
        ours_, theirs = (statistics.median(pair[side][place] for pair in pairs) for side in (0, 1))
        row = {"name": f"{name} ({unit.split()[0]})", "ours": ours_, "peer": theirs, "peer_name": "plain Spark"}
        judged = {} if target is None else {"target": f"<= {target:g}x", "met": ours_ <= target * theirs}
        rows.append({**row, "ratio": ours_ / theirs, "unit": unit, **judged})
    return rows


@contextmanager
def _session(folder: str) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
