from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cloister as cl
from benchmarks import (
    anonymize,
    anonymize_data,
    anonymize_jobs,
    anonymize_loss,
    anonymize_scale,
    anonymize_tools,
    assessing,
    harness,
    train_on_released,
)
from benchmarks.anonymize_data import QUASI, K
from benchmarks.anonymize_tools import Way
from benchmarks.exhaustive_lattice import best_recodings
from tests.support.thoroughness import is_thorough

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines

SIZE = 600
WAYS = (*anonymize.HIERARCHICAL, *anonymize.SET_VALUED, Way(name="optimal", algorithm="optimal", suppression=0.05))


@pytest.fixture(autouse=True)
def _data(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anonymize_data, "DATA", shared_data)
    monkeypatch.setenv("CLOISTER_DATA", str(shared_data))
    monkeypatch.setattr(anonymize_tools, "REPEATS", 1)


@pytest.fixture
def adult(tmp_path: Path) -> Path:
    anonymize_data.write_sample(tmp_path / "adult.parquet", size=SIZE)
    return tmp_path / "adult.parquet"


@pytest.fixture
def no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No peer can be installed."""

    def missing(*_: object, **__: object) -> None: ...

    monkeypatch.setattr(anonymize_tools, "run_peer", missing)


def _labels(**shown: list[str]) -> pa.Table:
    size = max(map(len, shown.values()))
    raw = anonymize_data.rows().slice(0, 1)
    return pa.table({name: shown.get(name, [str(raw[name][0])] * size) for name in QUASI})


def test_the_anonymization_benchmarks_are_found_and_their_parts_are_not() -> None:
    assert {"anonymize", "anonymize_scale", "assessing", "population_uniqueness", "train_on_released"} <= set(
        harness.names()
    )
    parts = {"anonymize_data", "anonymize_loss", "anonymize_tools", "anonymize_jobs", "exhaustive_lattice"}
    assert not parts & set(harness.names())


def test_hierarchies_are_trimmed_to_the_data() -> None:
    sizes = {name: len(anonymize_data.paths_to_root(name)) for name in QUASI}
    assert sizes["age"] == 74
    assert sizes["workclass"] == 7
    assert {name: len(anonymize_data.domain(name)) for name in QUASI} == sizes


def test_the_same_rows_are_drawn_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        anonymize_data.write_bootstrap(tmp_path / name, size=1000)
    first, second = (pq.read_table(tmp_path / name) for name in ("a", "b"))
    assert first.equals(second)
    assert first.num_rows == 1000


def test_one_value_of_each_row_is_drawn_anew(tmp_path: Path) -> None:
    anonymize_data.write_bootstrap(tmp_path / "redrawn", size=1000, redrawn=True)
    known = {tuple(row.values()) for row in anonymize_data.rows().select(QUASI).to_pylist()}
    found = [tuple(row.values()) for row in pq.read_table(tmp_path / "redrawn").select(QUASI).to_pylist()]
    assert len(found) == 1000
    assert 0.2 < sum(row not in known for row in found) / 1000 < 0.8


@pytest.mark.parametrize(
    ("column", "label", "loss"),
    [
        ("age", "39", 0.0),
        ("age", "[20, 30]", 10 / 73),
        ("age", "21-30", 9 / 73),
        ("age", "*", 1.0),
        ("workclass", "{Private, State-gov}", 1 / 6),
        ("workclass", "Government", 2 / 6),
        ("race", "*", 1.0),
    ],
)
def test_a_label_costs_what_it_leaves_open(column: str, label: str, loss: float) -> None:
    found = anonymize_loss.evaluate(_labels(**{column: [label]}), total=1)
    assert found.ncp == pytest.approx(loss / len(QUASI))


def test_a_row_that_is_left_out_costs_everything() -> None:
    found = anonymize_loss.evaluate(_labels(sex=["Male", "Female"]), total=8, counts=[3, 1])
    assert (found.ncp, found.smallest, found.suppressed) == (0.5, 1, 4)


def test_a_label_that_means_nothing_is_an_error() -> None:
    with pytest.raises(KeyError, match="Atlantis"):
        anonymize_loss.evaluate(_labels(**{"native-country": ["Atlantis"]}), total=1)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.name}-{way.options.get('values')}")
def test_the_evaluator_agrees_with_the_release(way: Way, adult: Path) -> None:
    release = way.release(anonymize_tools.open_adult(adult))
    found = anonymize_loss.evaluate(release.table.to_arrow(), total=SIZE)
    assert found.ncp == pytest.approx(release.loss.ncp, abs=1e-12)
    assert found.ncp == pytest.approx(release.regions.loss(), abs=1e-12)
    assert found.suppressed == release.suppressed
    assert found.smallest == release.risk.models.k >= K


def test_a_release_that_breaks_its_promise_is_not_evaluated() -> None:
    way = Way(name="mondrian", algorithm="mondrian")
    broken = anonymize_loss.Evaluation(ncp=0.1, smallest=K - 1, suppressed=0)
    with pytest.raises(ValueError, match="does not keep its promise"):
        anonymize_tools.checked(broken, way, SIZE)


def test_exhaustive_search_looks_at_every_recoding(adult: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pq.read_table(adult)
    monkeypatch.setattr("benchmarks.exhaustive_lattice.QUASI", ("sex", "race", "workclass"))
    found = best_recodings(rows, k=K, limits=[0, 1])
    assert [item.nodes for item in found] == [2 * 2 * 3] * 2
    for limit, optimum in zip((0, 1), found, strict=True):
        table = cl.open_table(rows, schema=anonymize_data.schema())
        release = cl.anonymize(
            table,
            models=[cl.KAnonymity(k=K)],
            quasi_identifiers=["sex", "race", "workclass"],
            suppression_limit=limit,
            algorithm="optimal",
        )
        assert release.regions.loss() == pytest.approx(optimum.ncp, abs=1e-12)
        assert release.partition.levels == optimum.levels


@pytest.mark.slow
@pytest.mark.usefixtures("no_peers")
def test_every_recoding_stands_beside_every_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    def optimum(rows: pa.Table, *, k: int, limits: list[float]) -> list[Any]:
        """Stand in for half a minute of search: the best are what `optimal` finds, which is tested above."""
        table = cl.open_table(rows, schema=anonymize_data.schema())
        ways = [Way(name="optimal", algorithm="optimal", suppression=limit) for limit in limits]
        losses = [way.release(table).regions.loss() for way in ways]
        return [anonymize.Optimum(levels=(), ncp=loss, nodes=6480) for loss in losses]

    monkeypatch.setattr(anonymize, "best_recodings", optimum)
    rows = anonymize.main(size=SIZE if is_thorough() else 150)
    assert len(rows) == 3 * 4 + 2 * (2 + 3) + 2 * (2 + 2)
    assert all(row["met"] for row in rows if row.get("peer_name") == "best of 6,480")
    assert "not run (anonypy)" in harness.table(rows)
    assert {row["target"] for row in rows if row["name"] == "hierarchy-bound: clustering: loss"} == {"<= 0.0547"}


@pytest.mark.slow
def test_large_tables_are_released_in_processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_thorough():
        monkeypatch.setattr(anonymize_scale, "GOALS", anonymize_scale.GOALS[1:])
        own = anonymize_tools.run_job

        def run(job: str, **facts: Any) -> dict[str, Any]:
            """Start a process for the largest table, since starting one takes longer than what it does."""
            alone = "4000" in facts["path"] and facts["algorithm"] == "mondrian"
            return own(job, **facts) if alone else anonymize_jobs.JOBS[job](**facts)

        monkeypatch.setattr(anonymize_tools, "run_job", run)
    rows = {row["name"]: row for row in anonymize_scale.main(rows=3000, more_rows=4000)}
    assert len(rows) == 3 * 3 * len(anonymize_scale.GOALS)
    assert (
        rows["3,000 rows: mondrian: to the written file"]["ours"] > rows["3,000 rows: mondrian: to the release"]["ours"]
    )
    assert 0 < float(rows["3,000 rows: local recoding (clustering): loss"]["ours"]) < 1
    assert rows["4,000 rows: mondrian: peak memory"]["met"] is True


@pytest.mark.slow
@pytest.mark.usefixtures("no_peers")
def test_measuring_is_judged_beside_pycanon_and_the_floor() -> None:
    rows = assessing.main(size=SIZE, large=1000)
    assert [row.get("target") for row in rows] == ["<= 0.1", "<= 0.1", "<= 0.1", None, "<= 1", "<= 1"]
    assert rows[0]["peer"] == "not run"
    assert rows[-1]["peer_name"] == "one grouped count"


def test_learning_from_clustered_rows_has_the_target() -> None:
    wanted = {way.algorithm for way, _, target in train_on_released.RELEASES if target == 0.829}
    assert wanted == {"clustering"}
