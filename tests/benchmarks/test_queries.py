from __future__ import annotations

import json
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks import harness, queries, query_data, query_latency, query_memory, query_tools, usage
from benchmarks.query_tools import Tool

FLAT = {"n": [10.0, 20.0], "s": [500.0, 1000.0], "m": [50.0, 50.0]}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "it's rows.parquet"
    query_data.write_table(path, rows=20_000, groups=7)
    return path


def test_the_query_benchmarks_are_found_and_their_parts_are_not() -> None:
    assert {"queries", "query_latency", "query_memory", "query_spark"} <= set(harness.names())
    assert not {"query_data", "query_tools", "usage"} & set(harness.names())


def test_the_same_rows_come_out_every_time(table: Path, tmp_path: Path) -> None:
    query_data.write_table(tmp_path / "again.parquet", rows=20_000, groups=7)
    assert pq.read_table(table).equals(pq.read_table(tmp_path / "again.parquet"))


def test_a_limit_of_ten_rows_gives_up_about_eighteen_percent(tmp_path: Path) -> None:
    query_data.write_table(tmp_path / "rows.parquet", rows=400_000, groups=7)
    rows = np.bincount(pq.read_table(tmp_path / "rows.parquet")["person"].to_numpy())
    assert np.maximum(rows - 10, 0).sum() / 400_000 == pytest.approx(0.18, abs=0.01)
    assert (rows > 50).sum() < len(rows) / 100


def test_values_lie_within_the_public_bounds_around_the_middle(table: Path) -> None:
    values = pq.read_table(table)["value"].to_numpy()
    assert values.min() >= 0
    assert values.max() <= 100
    assert all(40 <= mean <= 60 for mean in query_data.exact_answers(table)["m"])


def test_the_bounded_truth_weighs_each_row_by_its_persons_share(table: Path) -> None:
    rows = pq.read_table(table).to_pylist()
    of_each = Counter(row["person"] for row in rows)
    wanted = [0.0] * 7
    for row in rows:
        wanted[row["grp"]] += min(1, 10 / of_each[row["person"]])
    bounded = query_data.bounded_answers(table, limit=10)
    assert bounded["n"] == pytest.approx(wanted)
    assert bounded["m"] == pytest.approx(np.divide(bounded["s"], bounded["n"]).tolist())
    assert query_data.bounded_answers(table, limit=10**6)["s"] == pytest.approx(query_data.exact_answers(table)["s"])


def test_errors_are_medians_over_groups() -> None:
    off = {"n": [11.0, 23.0], "s": [500.0, 1000.0], "m": [49.0, 50.0]}
    assert query_data.median_errors(off, FLAT) == {"n": 2.0, "s": 0.0, "m": 0.5}


@pytest.mark.slow
def test_a_tool_answers_in_a_process_of_its_own(table: Path) -> None:
    used = query_tools.run(
        query_tools.DUCKDB, (table.rename(table.with_name("rows.parquet")),) * 2, groups=7, limit=None
    )
    assert used["answers"]["n"] == query_data.exact_answers(table.with_name("rows.parquet"))["n"]
    assert 0 < used["cpu"] < 60
    assert 10 < used["peak"] < 2000


def test_the_report_measures_what_comes_after_the_first_question(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[str, float]] = []
    tool = types.ModuleType("tool")
    tool.prepare = lambda path, **_: lambda epsilon: asked.append((path, epsilon)) or FLAT  # type: ignore[attr-defined]
    usage.report(tool, "rows", small="few", repeats=2, groups=2, limit=None)
    assert asked == [("few", 1.0), *[("rows", 1.0)] * 3]
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"wall", "cpu", "peak", "warm", "answers"}
    assert printed["answers"] == FLAT


@pytest.mark.slow
def test_the_work_of_living_and_finished_children_counts() -> None:
    work = "sum(range(30_000_000)); print(flush=True); input()"
    before = usage.cpu_seconds()
    with subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = usage.cpu_seconds()
        child.communicate(b"\n")
    assert alive - before > 0.1
    assert usage.cpu_seconds() - before > 0.1


def test_the_memory_of_the_parent_does_not_count() -> None:
    ballast = np.ones(15_000_000)
    code = "from benchmarks.usage import peak_mebibytes; print(peak_mebibytes())"
    root = str(Path(usage.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, cwd=root)
    assert float(done.stdout) < 60 < ballast.nbytes / 2**20


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that answer without being run: ours nearly right in a second, peers farther off in a minute."""

    def run(tool: Tool, *_: object, **__: object) -> dict[str, Any]:
        if tool.name == "Tumult":
            raise subprocess.CalledProcessError(1, ["pip"])
        off = 1.0 if tool.module in ("ours", "plain_duckdb") else 100.0
        answers = {name: [value + off for value in values] for name, values in FLAT.items()}
        cpu = 60.0 if tool.packages else 1.0
        return {"cpu": cpu, "wall": cpu, "peak": 100.0, "warm": cpu / 100, "answers": {**answers, "limit": [51.0]}}

    def truth(_: object, **__: object) -> query_data.Answers:
        return FLAT

    for name, stand_in in {"exact_answers": truth, "bounded_answers": truth, "write_table": _nothing}.items():
        monkeypatch.setattr(query_data, name, stand_in)
    monkeypatch.setattr(query_tools, "run", run)


def _nothing(*_: object, **__: object) -> None: ...


@pytest.mark.usefixtures("canned")
def test_every_figure_stands_beside_every_peer() -> None:
    rows = {(row["name"], row.get("peer_name")): row for row in queries.main(rows=30, groups=2)}
    assert rows["row unit: CPU", "plain DuckDB"]["met"] is True
    assert rows["person unit, limit 10: CPU", "OpenDP"]["ratio"] == 60
    assert rows["person unit, limit 10: error of a count", "SmartNoise"]["peer"] == 100
    assert rows["person unit, limit 10: error of a mean", "PipelineDP"]["met"] is False
    chosen = "person unit, limit 51 chosen for epsilon 0.05: error of a count against all rows"
    assert rows[chosen, "fixed limit 10"]["met"] is True


@pytest.mark.usefixtures("canned")
def test_a_peer_that_cannot_be_run_is_said_to_be_so() -> None:
    rows = [row for row in queries.main(rows=30, groups=2) if row.get("peer_name") == "Tumult"]
    assert len(rows) == 5
    assert all(row["peer"] == "not run" and "ratio" not in row for row in rows)
    assert "not run (Tumult)" in harness.table(rows)


@pytest.mark.usefixtures("canned")
def test_a_warm_question_is_judged_in_milliseconds() -> None:
    rows = query_latency.main()
    assert [row.get("peer_name") for row in rows] == [None, "OpenDP", "SmartNoise", "PipelineDP"]
    assert all(row["ours"] == 10 and row["met"] is True for row in rows)


def test_memory_is_held_against_its_bound_for_every_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    persons: list[int] = []

    def run(tool: Tool, files: tuple[Path, Path], **_: Any) -> dict[str, Any]:
        counts = Counter(pq.read_table(files[0])["person"].to_pylist())
        persons.append(max(counts.values()))
        return {"peak": 399.0 if len(persons) < 5 else 401.0, "cpu": 1.0}

    monkeypatch.setattr(query_tools, "run", run)
    rows = query_memory.main(rows=4000, groups=5)
    assert [row["met"] for row in rows if "met" in row] == [True] * 4 + [False]
    assert [row["name"].split(":")[0] for row in rows[::2]][-1] == "persons even, 250 groups"
    assert persons[2] > 5 * persons[1]
