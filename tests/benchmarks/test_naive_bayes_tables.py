from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness, naive_bayes_tables as tables
from cloister.core.random import SystemRandomSource, integers_below
from cloister.learn import PrivateCategoricalNB
from cloister.learn.naive_bayes import correct_counts


def _small() -> tables.Coded:
    source, sizes = SystemRandomSource(), (3, 2, 4)
    features = np.stack([integers_below(source, size, 400) for size in sizes], axis=1)
    return tables.Coded(features, (features.sum(axis=1) + integers_below(source, 2, 400)) % 3, sizes, 3)


def test_it_is_among_the_benchmarks() -> None:
    assert "naive_bayes_tables" in harness.names()


@pytest.mark.parametrize("correction", ["none", "empirical_bayes"])
def test_many_draws_at_once_classify_as_the_estimator_does(correction: str) -> None:
    data, held = _small(), np.arange(0, 400, 4)
    learned = np.setdiff1d(np.arange(400), held)
    model = PrivateCategoricalNB(domain=[3, 2, 4], classes=[0, 1, 2], correction=correction, alpha=0, epsilon=0.5)
    model.fit(data.features[learned], data.target[learned])
    noise = tables._noise("0.5", data)
    noisy = np.tile(model.released_counts_.astype(np.float64), (2, 1, 1))
    found = tables.Test.of(data, held).accuracy(tables.scores(correct_counts(noisy, noise, correction), data.sizes))
    assert found == pytest.approx([100 * model.score(data.features[held], data.target[held])] * 2)


def test_counts_of_folds_are_counts_of_rows() -> None:
    data = _small()
    counts = data.counts(np.arange(100))
    assert counts.shape == (3, 9)
    assert counts[1, 3] == ((data.target[:100] == 1) & (data.features[:100, 1] == 0)).sum()
    assert (data.counts(np.arange(100)) + data.counts(np.arange(100, 400)) == data.counts()).all()


def test_a_cell_is_judged_by_both_accuracies_and_their_order() -> None:
    plain, better = np.full(50, 74.0), np.full(50, 76.0)
    accuracy, wins = tables._cell("Adult", 0, "0.01", plain, better)
    assert (accuracy["ours"], accuracy["met"], wins["ours"], wins["met"]) == (
        "74.00 / 76.00",
        True,
        "100.0 / 0.0 / 0.0",
        True,
    )
    assert tables.__dict__["CLOSE"] == 1.0
    far, _ = tables._cell("Adult", 0, "0.01", plain - 1, better)
    turned, losses = tables._cell("Adult", 0, "0.01", plain + 1.2, plain + 1.1)
    assert not far["met"]
    assert not turned["met"]
    assert not losses["met"]
    _, order = tables._cell("Nursery", 2, "0.1", plain, better)
    assert order["target"] == "better more often than worse"


def test_a_small_protocol_gives_all_cells() -> None:
    rows = list(tables._of_folds("Nursery", _small(), 0, 1, 2))
    assert [row["name"] for row in rows[:2]] == ["Nursery, 5 folds, no noise", "Nursery, 5 folds, epsilon 0.1: ML / EB"]
    assert len(rows) == 1 + 2 * len(tables.ACCURACY["Nursery"])


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "shape", "better_than"),
    [("Adult", (30_162, 102, 2), 0.6), ("Adult, all rows", (32_561, 102, 2), 0.6), ("Nursery", (12_960, 27, 5), 0.45)],
)
def test_ml_03_the_published_tables(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch, name: str, shape: tuple[int, ...], better_than: float
) -> None:
    """Few repeats and draws of 5 folds, and room for their spread; the whole protocol is the benchmark."""
    monkeypatch.setattr(tables, "DATA", shared_data)
    data = tables.load(name)
    assert (len(data.target), sum(data.sizes), data.classes) == shape
    assert tables._lengths(name, data)["met"]
    smallest, largest = min(tables.ACCURACY[name], key=float), max(tables.ACCURACY[name], key=float)
    quiet, found = tables.measure(data, 5, (smallest, largest), 2, 60)
    for epsilon, ways in found.items():
        for ours, published in zip(ways, tables.ACCURACY[name][epsilon][0], strict=True):
            assert ours.mean() == pytest.approx(published, abs=2.0)
    plain, better = found[smallest]
    assert better.mean() >= plain.mean() - tables.SLACK
    assert (better > plain).mean() > better_than  # 77% and 64% with the whole protocol
    assert found[largest][0].mean() > plain.mean()
    assert abs(found[largest][0].mean() - quiet) < 1
