from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, softmax

from cloister.learn.trees._splits import Sample
from cloister.learn.trees.boosting import UNIT, WHOLE, outputs_of, reach, residuals, squared_reach, sums_of
from cloister.testing import all_neighbors


def test_residuals_are_what_is_left_to_explain() -> None:
    scores = np.array([[0], [3 * UNIT], [-100 * UNIT], [100 * UNIT]])
    found = residuals(scores, np.array([1, 0, 1, 1])) / WHOLE
    assert np.allclose(found[:, 0], [0.5, -expit(3), 1, 0], atol=1 / WHOLE)


def test_residuals_of_several_classes() -> None:
    logits = np.array([[0.0, 1.0, -2.0], [30.0, -30.0, 0.0]])
    found = residuals(np.rint(logits * UNIT).astype(np.int64), np.array([1, 2])) / WHOLE
    expected = np.eye(3)[[1, 2]] - softmax(logits, axis=1)
    assert np.allclose(found, expected, atol=2 / WHOLE)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_no_score_moves_a_row_farther_than_stated(classes: int) -> None:
    outputs = outputs_of(classes)
    levels = [-40 * UNIT, -UNIT, -1, 0, 3 * UNIT, 40 * UNIT]
    scores = np.array(list(product(levels, repeat=outputs)))
    for label in range(classes):
        moved = residuals(scores, np.full(len(scores), label))
        farthest, squared = np.abs(moved).sum(axis=1).max(), (moved**2).sum(axis=1).max()
        assert reach(outputs) - 1 <= farthest <= reach(outputs)
        assert 0.999 * squared_reach(outputs) <= squared <= squared_reach(outputs)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_row_moves_the_sums_of_a_feature_no_farther_than_stated(classes: int) -> None:
    outputs = outputs_of(classes)
    effects = np.array([[-20 * UNIT, 5, 0], [UNIT, 3 * UNIT, -9], [7, -UNIT, 20 * UNIT]])[:, :outputs]
    rows = list(product(range(3), range(classes)))

    def sums(dataset):
        table = np.array(dataset, dtype=np.int64).reshape(-1, 2)
        sample = Sample(table[:, :1], table[:, 1], np.ones(len(table), dtype=np.int64))
        return sums_of(sample, effects[table[:, 0]], 0, 3)

    for larger, smaller in all_neighbors(rows, max_rows=3):
        moved = sums(larger) - sums(smaller)
        assert np.abs(moved).sum() <= reach(outputs)
        assert (moved**2).sum() <= squared_reach(outputs)


def test_rows_that_occur_often_count_often() -> None:
    codes, classes, scores = np.array([[0], [1]]), np.array([1, 0]), np.array([[100], [-50]])
    heavy = sums_of(Sample(codes, classes, np.array([3, 2])), scores, 0, 2)
    listed = [np.repeat(array, [3, 2], axis=0) for array in (codes, classes, scores)]
    plain = sums_of(Sample(listed[0], listed[1], np.ones(5, dtype=np.int64)), listed[2], 0, 2)
    assert (heavy == plain).all()


def test_a_row_is_by_itself() -> None:
    scores = np.arange(-3000, 3000, 7).reshape(-1, 3)
    classes = np.arange(len(scores)) % 3
    together = residuals(scores, classes)
    alone = [residuals(scores[place : place + 1], classes[place : place + 1])[0] for place in range(len(scores))]
    assert (together == np.array(alone)).all()
