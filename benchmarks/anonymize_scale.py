"""Releases of large tables, from a Parquet file to a Parquet file: a bootstrap of Adult of 1 and of 10 million rows.

Each release is made in a process of its own, after one of a small file that pays for imports. CPU seconds go from
opening the file to the release, and on to the released rows being written. Peak memory is that of the whole process.
The loss is that of the written file, from the evaluator that all tools share. ARX's figures are those that were
published for a bootstrap of Adult, how it was drawn is not known. In a plain one every combination occurs eleven times
or more, so that nothing need be lost at k = 5 and the targets say little about loss. Therefore the same is measured,
without targets, on a harder table in which one value of each row is drawn anew: 180,000 combinations, four of five of
them rarer than k.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import anonymize_data, anonymize_tools
from benchmarks.anonymize_loss import evaluate
from benchmarks.anonymize_tools import Way, beside, judged

TITLE = "Anonymization of large tables: bootstrap of Adult, 8 quasi-identifiers, k = 5"
ROWS, MORE_ROWS = 1_000_000, 10_000_000
MEMORY = 8 * 1024.0
ARX = "ARX, stated"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A way to anonymize, the CPU seconds and the loss that it may take, and what ARX is said to take."""

    way: Way
    seconds: float
    loss: float | None = None
    stated: float | None = None


GOALS = (
    Goal(
        way=Way(name="optimal, 5% suppression", algorithm="optimal", suppression=0.05),
        seconds=5,
        stated=6.5,
    ),
    Goal(
        way=Way(name="local recoding (clustering)", algorithm="clustering", options={"values": "hierarchy"}),
        seconds=8,
        loss=0.0136,
        stated=15,
    ),
    Goal(way=Way(name="mondrian", algorithm="mondrian"), seconds=3),
)


def main(rows: int = ROWS, more_rows: int = MORE_ROWS) -> list[dict[str, Any]]:
    """Return the rows of both sizes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        anonymize_data.write_sample(folder / "small.parquet", size=2000)
        return [*_timed(folder, rows), *_harder(folder, rows), *_within_memory(folder, more_rows)]


def _harder(folder: Path, size: int) -> list[dict[str, Any]]:
    path = folder / f"redrawn_{size}.parquet"
    anonymize_data.write_bootstrap(path, size=size, redrawn=True)
    rows = []
    for goal in GOALS:
        used = _release(goal.way, path)
        what = f"{size:,} rows, one value of each drawn anew: {goal.way.name}"
        found = anonymize_tools.checked(evaluate(pq.read_table(used["released"]), total=size), goal.way, size)
        rows += [
            judged(f"{what}: to the release", used["cpu"], unit="CPU s"),
            judged(f"{what}: to the written file", used["cpu_written"], unit="CPU s"),
            judged(f"{what}: loss", found.ncp, unit="NCP"),
        ]
    return rows


def _timed(folder: Path, size: int) -> list[dict[str, Any]]:
    path = _bootstrap(folder, size)
    rows = []
    for goal in GOALS:
        used = _release(goal.way, path)
        what = f"{size:,} rows: {goal.way.name}"
        found = anonymize_tools.checked(evaluate(pq.read_table(used["released"]), total=size), goal.way, size)
        seconds = judged(f"{what}: to the release", used["cpu"], unit="CPU s", target=goal.seconds)
        written = judged(f"{what}: to the written file", used["cpu_written"], unit="CPU s", target=goal.seconds)
        rows += [row if goal.stated is None else beside(row, ARX, goal.stated) for row in (seconds, written)]
        rows.append(judged(f"{what}: loss", found.ncp, unit="NCP", target=goal.loss, strict=True))
    return rows


def _within_memory(folder: Path, size: int) -> list[dict[str, Any]]:
    path = _bootstrap(folder, size)
    rows = []
    for goal in GOALS:
        used = _release(goal.way, path)
        what = f"{size:,} rows: {goal.way.name}"
        rows += [
            judged(f"{what}: to the written file", used["cpu_written"], unit="CPU s"),
            judged(f"{what}: to the written file (wall)", used["wall_written"], unit="s"),
            judged(f"{what}: peak memory", used["peak"], unit="MiB", target=MEMORY),
        ]
    return rows


def _bootstrap(folder: Path, size: int) -> Path:
    path = folder / f"adult_{size}.parquet"
    anonymize_data.write_bootstrap(path, size=size)
    return path


def _release(way: Way, path: Path) -> dict[str, Any]:
    return anonymize_tools.run_job(
        "release",
        name=way.name,
        path=str(path),
        small=str(path.with_name("small.parquet")),
        algorithm=way.algorithm,
        suppression=way.suppression,
        options=dict(way.options),
    )
