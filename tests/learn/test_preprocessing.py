from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister import learn
from cloister.core.random import SeededRandomSource
from cloister.data.sources import open_table
from cloister.errors import BudgetExceededError, ParameterError, PrivacyParameterWarning
from cloister.learn import PrivateQuantileBins
from cloister.learn.preprocessing import _counts, _edge
from tests.learn import audits, data

X = np.stack([np.linspace(0, 100, 4001), np.linspace(0, 10, 4001) ** 2], axis=1)


def bins(**options: Any) -> Any:
    return PrivateQuantileBins(**{"n_bins": 4, "epsilon": 2, "bounds": (0, 100), **options})


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_bins_hold_about_as_many_rows(count: int) -> None:
    made = bins(n_bins=count, epsilon=5).fit(X)
    for place in range(2):
        shares = np.bincount(made.transform(X)[:, place].astype(int), minlength=count) / len(X)
        assert shares == pytest.approx([1 / count] * count, abs=0.06)
    levels = (count - 1).bit_length()
    assert len(made.steps_) == 2 * levels
    assert sum(step.event.epsilon for step in made.steps_) == 5


def test_edges_lie_on_a_public_grid_and_ascend() -> None:
    made = bins(n_cells=50).fit(X)
    for edges in made.edges_:
        assert (edges / 2 == np.rint(edges / 2)).all()
        assert (np.diff(edges) > 0).all()


def test_one_column_for_each_bin() -> None:
    made = bins(encode="onehot", epsilon=20).fit(X)
    found = made.transform([[1, 1], [99, 99], [-5, 500]])
    assert found.shape == (3, 8)
    assert found.sum(axis=1).tolist() == [2, 2, 2]
    assert made.get_feature_names_out().tolist() == [f"x{place}={code}" for place in range(2) for code in range(4)]
    assert bins().fit(X).get_feature_names_out().tolist() == ["x0", "x1"]


def test_rows_at_one_value_leave_fewer_bins() -> None:
    made = bins(epsilon=10, n_bins=8).fit(np.full((3000, 2), 50.0))
    assert all(len(edges) <= 7 for edges in made.edges_)
    assert made.transform([[50, 50]]).shape == (1, 2)


def test_a_table_is_learned_from_as_an_array_is() -> None:
    table = open_table(pa.table({"a": X[:, 0], "b": X[:, 1]}))
    made = bins(bounds={"a": (0, 100), "b": (0, 100)}, random_state=SeededRandomSource(2)).fit(table)
    same = bins(random_state=SeededRandomSource(2)).fit(X)
    assert all((ours == theirs).all() for ours, theirs in zip(made.edges_, same.edges_, strict=True))
    empty = open_table(pa.table({"a": pa.array([], pa.float64())}))
    assert len(bins(bounds={"a": (0, 1)}).fit(empty).edges_) == 1


def test_a_row_moves_scores_by_what_they_are_paid_for() -> None:
    for share, whole in ((1, 2), (1, 3), (2, 5)):
        for row in range(4):
            before = np.array([2, 0, 3, 1])
            after = before + (np.arange(4) == row)
            scores = []
            for counts in (before, after):
                inside = np.concatenate([[0], np.cumsum(counts)])
                scores.append(-np.abs(whole * inside - share * inside[-1]))
            assert np.abs(scores[0] - scores[1]).max() <= _edge(share, whole, Fraction(1), 5).score_sensitivity


def test_rows_are_counted_in_their_cells() -> None:
    feature = bins().fit(X).encoding_.features[0]
    counts = _counts(np.array([-5.0, 0, 24.9, 25, 100, 500]), np.arange(1, 7, dtype=np.int64), feature, 4)
    assert counts.tolist() == [6, 4, 0, 11]


def test_bad_parameters_are_refused() -> None:
    for options, fix in (
        ({"n_bins": 1}, "n_bins"),
        ({"n_cells": 3}, "n_cells"),
        ({"encode": "dense"}, "onehot"),
        ({"delta": 1e-6}, "leave delta out"),
        ({"bounds": None}, "give bounds"),
        ({"bounds": None, "domain": [2, 2]}, "features="),
    ):
        with pytest.raises(ParameterError, match=fix):
            bins(**options).fit([[0, 1], [1, 0]])


def test_a_hopeless_epsilon_is_said_before_it_is_paid() -> None:
    with pytest.warns(PrivacyParameterWarning, match="too small to learn anything"):  # noqa: SIM117  # both
        with pytest.raises(BudgetExceededError):
            bins(epsilon=1e-6, ledger=data.book(epsilon=1e-9), dataset="patients").fit(X)


def test_models_are_saved(tmp_path: Path) -> None:
    made = bins().fit(X)
    made.save(tmp_path / "bins.cloister")
    again = learn.load(tmp_path / "bins.cloister")
    assert all((ours == theirs).all() for ours, theirs in zip(made.edges_, again.edges_, strict=True))


@pytest.mark.slow
@pytest.mark.statistical
def test_an_audit_does_not_refute_the_claim_but_half_of_the_noise() -> None:
    whole = np.array([[0.1], [0.9]])
    audits.check_audit(
        lambda: PrivateQuantileBins(n_bins=2, n_cells=2, bounds=(0, 1)),
        lambda found: found.edges_[0][0],
        (whole, whole[1:]),
        samples=4000,
    )
