from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import published_queries
from tests.support import tools

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines

pytest.importorskip("vl_convert")


@pytest.mark.slow
@pytest.mark.statistical
def test_the_published_experiments_come_out_as_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_queries, "DATA", tools.shared_data())
    rows = published_queries.main(tmp_path, draws=2000)
    assert [row["name"] for row in rows if not row["met"]] == []
    assert json.loads((tmp_path / "table.json").read_text("utf-8")) == rows
    figures = {path.stem for path in tmp_path.glob("*.svg")}
    assert figures == {path.stem for path in tmp_path.glob("*.png")}
    assert {"count-epsilon-0.1", "ages-private", "marital-status", "composition", "loan-ratings"} < figures
    assert {"truncated-mean-epsilon-2", "mean-salary-5-epsilon-1", "risk-against-dimension"} < figures


def test_without_the_public_data_the_other_experiments_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(published_queries, "DATA", tmp_path)
    monkeypatch.setattr(published_queries, "DIMENSIONS", (3,))
    rows = published_queries.main(draws=200)
    assert "set CLOISTER_DATA" in capsys.readouterr().out
    assert any(row["name"].startswith("composition") for row in rows)
    assert not any(row["name"].startswith("Adult") for row in rows)
