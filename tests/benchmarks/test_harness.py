from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import harness, import_time


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "RESULTS.md"
    monkeypatch.setattr(harness, "RESULTS", path)
    return path


def test_a_section_is_replaced_and_the_others_stay(results: Path) -> None:
    harness.write_section(
        "noise", "Noise", [{"name": "draws", "ours": 2_000_000, "peer": 100_000, "peer_name": "other"}]
    )
    harness.write_section("composition", "Composition", [{"name": "events", "ours": 0.25, "met": True}])
    before = results.read_text("utf-8")
    harness.write_section("composition", "Composition", [{"name": "events", "ours": 0.5, "met": False}])
    after = results.read_text("utf-8")
    assert "| draws | 2,000,000 | 100,000 (other) |" in before
    assert "| draws | 2,000,000 | 100,000 (other) |" in after
    assert "| events | 0.25 | yes |" in before
    assert "| events | 0.5 | no |" in after
    assert "0.25" not in after
    assert after.count("## ") == 2


def test_a_missed_target_is_a_failure(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_time, "main", lambda: [{"name": "slow import", "ours": 999, "met": False}])
    assert harness.run(["import_time"]) == 1
    assert "Target missed: slow import" in capsys.readouterr().err
    assert "slow import" in results.read_text("utf-8")


def test_an_unknown_benchmark_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert harness.run(["nonsense"]) == 2
    assert "import_time" in capsys.readouterr().err
