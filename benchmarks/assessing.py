"""How long it takes to measure a table: all models and risks, on Adult and on a million rows drawn from it.

CPU seconds of a warm process, from the open Parquet file to the assessment. pycanon measures models only. One grouped
count of the same columns in DuckDB is the floor. The utility of a release needs its original as well.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb

import cloister as cl
from benchmarks import anonymize_data, anonymize_tools
from benchmarks.anonymize_data import QUASI, SENSITIVE
from benchmarks.anonymize_tools import Way, beside, judged, median_seconds

TITLE = "Measuring a table: 8 quasi-identifiers, one sensitive column, all models and risks"
LARGE = 1_000_000
TARGETS = (0.1, 1.0)
FLOOR, PYCANON = "one grouped count", "pycanon, models only"


def main(size: int | None = None, large: int = LARGE) -> list[dict[str, Any]]:
    """Return the CPU time of one assessment, without and with an estimate for the population."""
    with tempfile.TemporaryDirectory() as folder:
        adult, drawn = Path(folder) / "adult.parquet", Path(folder) / "large.parquet"
        anonymize_data.write_sample(adult, size=size)
        anonymize_data.write_bootstrap(drawn, size=large)
        return [*_beside_pycanon(adult, size), *_assessed(adult, TARGETS[0]), _release(adult), *_assessed(drawn, 1.0)]


def _beside_pycanon(path: Path, size: int | None) -> list[dict[str, Any]]:
    peer = anonymize_tools.run_peer("pycanon_models", "pycanon", size=size)
    return [beside(_assessed(path, TARGETS[0])[0], PYCANON, None if peer is None else peer["cpu"])]


def _assessed(path: Path, target: float) -> list[dict[str, Any]]:
    table = anonymize_tools.open_adult(path)
    rows, floor = table.count(), _floor(path)
    plain = median_seconds(lambda: cl.assess(table))
    estimated = median_seconds(lambda: cl.assess(table, population=10 * rows))
    return [
        beside(judged(f"{rows:,} rows", plain, unit="CPU s", target=target), FLOOR, floor),
        beside(
            judged(f"{rows:,} rows, with an estimate for the population", estimated, unit="CPU s", target=target),
            FLOOR,
            floor,
        ),
    ]


def _release(path: Path) -> dict[str, Any]:
    """Measure a release beside its original: utility as well."""
    made = Way(name="mondrian", algorithm="mondrian").release(anonymize_tools.open_adult(path))
    used = median_seconds(lambda: cl.assess(made))
    return judged(f"{made.partition.cells.total:,} rows: a release (mondrian), with its utility", used, unit="CPU s")


def _floor(path: Path) -> float:
    """Return the CPU seconds of one grouped count."""
    columns = ", ".join(f'"{name}"' for name in (*QUASI, SENSITIVE))
    connection = duckdb.connect()
    rows = connection.read_parquet(str(path))
    return median_seconds(lambda: rows.aggregate(f"{columns}, count(*)").fetchnumpy())
