from __future__ import annotations

import numpy as np
import pytest

from cloister.learn.compressive._scatter_ratios import association, between_scatter, total_scatter, within_scatter
from tests.learn.compressive import worked


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_total_scatter_is_the_sum_of_within_and_between(classes: int) -> None:
    rows, codes = worked.normal(60, 5) * 3 + 10, np.arange(60) % classes
    total = within_scatter(rows, codes) + between_scatter(rows, codes)
    assert np.abs(total_scatter(rows) - total).max() < 1e-9


def test_the_between_scatter_has_at_most_one_direction_less_than_classes() -> None:
    assert np.linalg.matrix_rank(between_scatter(worked.normal(40, 6), np.arange(40) % 4)) == 3


def test_the_scatters_of_the_worked_example() -> None:
    assert total_scatter(worked.X).tolist() == [[4, 0], [0, 4]]
    assert between_scatter(worked.X, worked.UTILITY).tolist() == [[4, 0], [0, 0]]
    assert within_scatter(worked.X, worked.UTILITY).tolist() == [[0, 0], [0, 4]]
    assert between_scatter(worked.X, worked.PRIVACY).tolist() == [[0, 0], [0, 4]]
    assert within_scatter(worked.X, worked.PRIVACY).tolist() == [[4, 0], [0, 0]]


def test_the_between_scatter_is_not_the_misprinted_one() -> None:
    mean, printed = worked.X.mean(axis=0), np.zeros((2, 2))
    for label in (0, 1):
        inside = worked.X[label == worked.UTILITY]
        center = inside.mean(axis=0)
        printed += len(inside) * np.outer(center, center) - len(worked.X) * np.outer(mean, mean)
    assert printed.tolist() == [[0, -4], [-4, -4]]
    assert np.linalg.eigvalsh(printed).min() < 0
    found = between_scatter(worked.X, worked.UTILITY)
    assert np.linalg.eigvalsh(found).min() >= 0
    assert not np.allclose(found, printed)


def test_association_is_one_for_labels_that_determine_each_other() -> None:
    codes = np.array([0, 1, 2, 0, 1, 2])
    assert association(codes, 2 - codes) == pytest.approx(1)
