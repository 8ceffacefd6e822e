from __future__ import annotations

import pytest

from benchmarks import harness, learn


@pytest.mark.slow
def test_the_benchmark_of_models_measures_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn, "_peers", lambda *_: {})
    cases = tuple(case for case in learn.CASES if case.name.startswith(("linear", "k-means")))
    rows = {row["name"]: row for row in learn.main(runs=1, cases=cases, epsilons=(1.0,))}
    assert float(rows["linear, 49 columns, epsilon 1, delta"]["ours"]) > 0.3
    assert float(rows["k-means, 5 clusters of 49, inertia per row, epsilon 1, delta"]["ours"]) < 2.6
    assert "learn" in harness.names()
