"""Runs releases of Adult, here or in processes of their own, and peers in environments of their own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import cloister as cl
from benchmarks import harness
from benchmarks.anonymize_data import QUASI, SENSITIVE, K, adult_file, schema
from benchmarks.anonymize_loss import Evaluation, evaluate
from cloister.anonymize.algorithms._base import Task, entry_of, values_of
from cloister.anonymize.cells import read_cells
from cloister.anonymize.models import check_of
from cloister.core.validation import check_probability

REPEATS = 5
_ROOT = str(Path(__file__).parents[1])
_PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {root!r})
from benchmarks.peers import {module} as tool
print(json.dumps(tool.run({path!r}, quasi={quasi!r}, sensitive={sensitive!r}, **{facts!r})))
"""


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to anonymize: its name for people, the algorithm, and what else it is told."""

    name: str
    algorithm: str
    suppression: float = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def release(self, table: cl.Table) -> cl.Release:
        """Return the release of a table."""
        return cl.anonymize(
            table,
            models=[cl.KAnonymity(k=K)],
            algorithm=self.algorithm,
            suppression_limit=self.suppression,
            **self.options,
        )


def open_adult(path: Path) -> cl.Table:
    """Return a file of rows of Adult with its schema."""
    return cl.open_table(path, schema=schema())


def search_seconds(way: Way, path: Path) -> float:
    """Return the CPU seconds of the algorithm alone, on counts that are there already: a median, warm."""
    options = dict(way.options)
    task = Task(
        cells=read_cells(open_adult(path), schema(), quasi=QUASI),
        checks=(check_of(cl.KAnonymity(k=K)),),
        suppression_limit=check_probability(way.suppression, name="suppression_limit"),
        values=values_of(way.algorithm, options.pop("values", None)),
        options=options,
    )
    search = entry_of(way.algorithm).load(way.algorithm)
    return median_seconds(lambda: search(task))


def call_seconds(way: Way, path: Path) -> float:
    """Return the CPU seconds from an open table to all released rows: a median, warm."""
    table = open_adult(path)

    def call() -> object:
        return way.release(table).table.to_arrow()

    return median_seconds(call)


def median_seconds(work: Callable[[], object]) -> float:
    """Return the median CPU seconds of work that was done once before."""
    work()
    return statistics.median(_seconds(work) for _ in range(REPEATS))


def evaluated(way: Way, path: Path) -> Evaluation:
    """Return what the common evaluator says of a release.

    Raises:
        ValueError: if a class is too small or too many rows are left out; its loss would mean nothing.
    """
    total = pq.read_metadata(path).num_rows
    return checked(evaluate(way.release(open_adult(path)).table.to_arrow(), total=total), way, total)


def checked(found: Evaluation, way: Way, total: int) -> Evaluation:
    """Return an evaluation of a release that keeps its promises."""
    if found.smallest < K or found.suppressed > way.suppression * total:
        raise ValueError(f"{way.name} does not keep its promise: {found}")
    return found


def run_peer(module: str, *packages: str, **facts: Any) -> dict[str, Any] | None:
    """Return what a peer found in Adult, or None if it cannot be installed or does not finish here."""
    path = str(adult_file())
    code = _PEER.format(root=_ROOT, module=module, path=path, quasi=list(QUASI), sensitive=SENSITIVE, facts=facts)
    print(f"  {packages[0]} ...", flush=True)
    try:
        return dict(harness.run_peer(code, *packages))
    except subprocess.CalledProcessError as failure:
        print(f"  {packages[0]} could not be run here (exit code {failure.returncode})", flush=True)
        return None


def run_job(job: str, **facts: Any) -> dict[str, Any]:
    """Return what a function of `benchmarks.anonymize_jobs` returns in a process of its own."""
    print(f"  {job}: {facts.get('name', '')} ...", flush=True)
    command = [sys.executable, "-m", "benchmarks.anonymize_jobs", job, json.dumps(facts)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def judged(name: str, ours: float, *, unit: str, target: float | None = None, strict: bool = False) -> dict[str, Any]:
    """Return a row of the results; with a target, whether it is met."""
    row = {"name": name, "ours": _rounded(ours, unit), "unit": unit}
    if target is None:
        return row
    met = ours < target if strict else ours <= target
    return {**row, "target": f"{'<' if strict else '<='} {target:g}", "met": met}


def beside(row: dict[str, Any], peer_name: str, theirs: float | None) -> dict[str, Any]:
    """Return the row with the figure of a peer."""
    if theirs is None:
        return {**row, "peer": "not run", "peer_name": peer_name}
    ours = float(row["ours"])
    shown = {"peer": _rounded(theirs, row["unit"]), "peer_name": peer_name}
    return {**row, **shown, **({"ratio": theirs / ours} if ours else {})}


def _rounded(figure: float, unit: str) -> float | str:
    """Return a loss as text with four decimals: two tools that agree in three may still differ."""
    return f"{figure:.4f}" if unit == "NCP" else figure


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
