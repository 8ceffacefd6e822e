from __future__ import annotations

import numpy as np
import pytest

from cloister.core.random import random_source
from cloister.learn._encoding import FeatureBins
from cloister.learn._features import Binned, Categorical
from cloister.learn.trees._splits import Sample, TreeGrowth, candidates_of, go_right, leaves_of
from cloister.testing import check_distribution
from cloister.testing.distributions import categorical

BINS = FeatureBins(
    (
        Binned("x", (0.0, 1.0, 2.0, 3.0, 4.0)),
        Categorical("c", ("a", "b", "c")),
        Categorical("yes", (False, True)),
        Binned("one", (0.0, 1.0)),
    )
)


def test_candidates_are_all_different_splits() -> None:
    candidates = candidates_of(BINS)
    assert list(zip(candidates.feature.tolist(), candidates.cell.tolist(), strict=True)) == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0)
    ]  # fmt: skip
    assert len(candidates) == 8
    assert candidates.of_features(np.array([1])).feature.tolist() == [1, 1, 1]


def test_rows_go_left_into_the_first_bins_or_with_the_value() -> None:
    codes = np.array([[0, 0, 0, 0], [1, 1, 0, 0], [2, 2, 0, 0], [3, 3, 0, 0]])
    ordered = candidates_of(BINS).ordered
    assert go_right(np.tile([0, 1], (4, 1)), ordered, codes).tolist() == [False, False, True, True]
    assert go_right(np.tile([1, 2], (4, 1)), ordered, codes).tolist() == [True, True, False, True]


def test_leaves_are_counted_from_the_left() -> None:
    splits = np.array([[0, 1], [0, 0], [0, 2]])
    codes = np.array([[0], [1], [2], [3]])
    assert leaves_of(splits, np.array([True]), codes).tolist() == [0, 1, 2, 3]
    assert leaves_of(splits, np.array([True]), codes[:0]).tolist() == []


def test_leaf_counts_add_up_rows() -> None:
    growth = TreeGrowth(depth=1, classes=2, cells=(4,), splitter=None)
    sample = Sample(np.array([[0], [1], [3]]), np.array([0, 1, 1]), np.array([5, 6, 7]))
    assert growth.leaf_counts(sample, np.array([[0, 0]]), np.array([True])).tolist() == [[5, 0], [0, 13]]
    assert repr(sample) == "Sample(features=1)"


@pytest.mark.statistical
def test_random_splits_take_any_feature_then_any_of_its_splits() -> None:
    candidates = candidates_of(BINS)
    drawn = candidates.draw(random_source(), 20_000)
    keys = drawn[:, 0] * 10 + drawn[:, 1]
    expected = {0: 1 / 12, 1: 1 / 12, 2: 1 / 12, 10: 1 / 12, 11: 1 / 12, 12: 1 / 12, 20: 1 / 4, 30: 1 / 4}
    check_distribution(keys, categorical(expected))
