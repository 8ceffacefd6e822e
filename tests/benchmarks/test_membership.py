from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import harness, learn_data, membership

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines


def test_it_is_a_benchmark() -> None:
    assert "membership" in harness.names()


@pytest.mark.slow
def test_the_benchmark_of_membership_measures_what_it_says(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn_data, "DATA", shared_data)
    monkeypatch.setattr(membership, "KINDS", {"likelihood ratio": {"kind": "lira"}})
    rows = {row["name"]: row for row in membership.main(size=1000, runs=1, shadows=6)}
    area = rows["forest, likelihood ratio: area under the curve"]
    assert area["ours"] > 0.7
    assert area["peer_name"] == "ART black-box, stated"
    assert rows["private forest, epsilon 1, likelihood ratio: area under the curve"]["ours"] < 0.62
