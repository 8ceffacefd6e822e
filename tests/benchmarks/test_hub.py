from __future__ import annotations

import pytest

from benchmarks import harness, hub

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]  # quicker tests reach the same lines


def test_a_few_analysts_are_answered_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "WORKERS", 1)
    rows = {row["name"]: row for row in hub.main(analysts=5, questions=1)}
    assert rows["5 analysts, SQLite: errors, overspends, damages"]["ours"] == 0, rows
    assert rows["5 analysts, SQLite: answers"]["ours"] > 0
    assert rows["the bare library call"]["ours"] > 0
    assert "hub" in harness.names()
