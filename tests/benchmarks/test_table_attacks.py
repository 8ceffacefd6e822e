from __future__ import annotations

import pytest

from benchmarks import harness, table_attacks

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines


def test_the_benchmark_is_found() -> None:
    assert "table_attacks" in harness.names()


@pytest.mark.slow
def test_every_attack_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.anonymize_tools.REPEATS", 1)
    rows = table_attacks.main(size=300, phones=1000)
    assert len(rows) == 14
    assert all(float(row["ours"]) >= 0 for row in rows)
    assert all("success" in row["name"] for row in rows)
