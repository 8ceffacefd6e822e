"""Measuring what a table gives away: all risks and models of Adult and of a bootstrap of it, beside pycanon.

CPU seconds go from the open table to the assessment: prosecutor, journalist and marketer risk, an estimate for the
population, homogeneity and posterior, and every model that the table happens to satisfy. pycanon measures models only.
The floor is one grouped count of the same columns in DuckDB. Utility, which needs the original as well, comes on top.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb

import cloister as cl
from benchmarks import anonymize_data, anonymize_tools
from benchmarks.anonymize_data import QUASI, SENSITIVE
from benchmarks.anonymize_tools import Way, beside, judged

TITLE = "Assessing a table: 8 quasi-identifiers, one sensitive column, all models and risks"
ROWS = 1_000_000
POPULATION = 250_000_000
TARGETS = (0.1, 1.0)


def main(size: int | None = None, rows: int = ROWS) -> list[dict[str, Any]]:
    """Return the rows of both tables; for a try, of the first rows of Adult."""
    with tempfile.TemporaryDirectory() as folder:
        path, large = Path(folder) / "adult.parquet", Path(folder) / "large.parquet"
        anonymize_data.write_sample(path, size=size)
        anonymize_data.write_bootstrap(large, size=rows)
        found = _assessed(path, TARGETS[0])
        peer = anonymize_tools.run_peer("pycanon_models", "pycanon", size=size)
        compared = [
            beside(found, "pycanon, models only", None if peer is None else peer["cpu"]),
            beside(found, "one grouped count", _floor(path)),
        ]
        return [*compared, *_release(path), beside(_assessed(large, TARGETS[1]), "one grouped count", _floor(large))]


def _assessed(path: Path, target: float) -> dict[str, Any]:
    table = anonymize_tools.open_adult(path)
    used = anonymize_tools.median_seconds(lambda: cl.assess(table, population=POPULATION), repeats=3)
    return judged(f"{table.count():,} rows: risks and models", used, unit="CPU s", target=target)


def _release(path: Path) -> list[dict[str, Any]]:
    """Measure a release beside its original: utility as well."""
    made = Way(name="mondrian", algorithm="mondrian").release(anonymize_tools.open_adult(path))
    used = anonymize_tools.median_seconds(lambda: cl.assess(made, population=POPULATION), repeats=3)
    total = made.partition.cells.total
    return [judged(f"{total:,} rows: risks, models and utility of a release (mondrian)", used, unit="CPU s")]


def _floor(path: Path) -> float:
    """Return the CPU seconds of one grouped count."""
    columns = ", ".join(f'"{name}"' for name in (*QUASI, SENSITIVE))
    sql = f"SELECT count(*) FROM (SELECT count(*) FROM read_parquet('{path}') GROUP BY {columns})"
    connection = duckdb.connect()
    return anonymize_tools.median_seconds(lambda: connection.sql(sql).fetchall())
