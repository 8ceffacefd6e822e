from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from benchmarks import harness, synth_case_study
from tests.support.thoroughness import audited


@pytest.fixture(autouse=True)
def _data(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synth_case_study, "DATA", shared_data)


@pytest.mark.parametrize(
    ("name", "shape"), [("Diabetes", (768, 8)), ("Breast cancer", (683, 9)), ("Australian", (690, 14))]
)
def test_the_data_are_as_stated_and_inside_of_their_bounds(name: str, shape: tuple[int, int]) -> None:
    rows = synth_case_study.load(name)
    assert rows.features.shape == shape
    assert abs(rows.scaled).max() <= 1
    assert set(rows.classes) == {0, 1}
    assert "synth_case_study" in harness.names()


# The number of splits makes a miss by chance unlikely: the mean is six of its standard errors above the limit.
@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "epsilon", "count"),
    audited([("Diabetes", 10, 30), ("Breast cancer", 1, 25), ("Australian", 1, 25)], but=[("Breast cancer", 1, 25)]),
)
def test_syn_12_models_trained_on_synthetic_rows_meet_their_bars(name: str, epsilon: float, count: int) -> None:
    bars, deviation = synth_case_study.BARS[name, "Gaussian"]
    bar = bars[synth_case_study.EPSILONS.index(epsilon)]
    found = synth_case_study.tried(synth_case_study.load(name), count, epsilon=epsilon, delta=synth_case_study.DELTA)
    assert statistics.mean(found) >= bar - deviation


def test_every_task_has_a_figure() -> None:
    rows = synth_case_study.load("Breast cancer")
    ((seed, test),) = synth_case_study.splits(rows, 1, 0.8)
    made = seed.synthetic(epsilon=100, delta=1e-5)
    assert len(made.classes) == len(seed.classes)
    assert synth_case_study.searched(made, test) > 0.8
    assert synth_case_study.squared_error(made, test) < 0.25
    assert all(-0.5 <= score <= 1 for score in synth_case_study.agreement(seed, made, test))
    alone = test.take(test.classes == 1)
    assert synth_case_study.accuracy(alone, test) == pytest.approx(test.classes.mean())
