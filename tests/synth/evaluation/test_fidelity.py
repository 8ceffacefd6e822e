from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from cloister.core.random import SeededRandomSource
from cloister.synth.evaluation import _fidelity as fidelity
from cloister.synth.evaluation._fidelity import (
    column_distances,
    compare_associations,
    correlation_ratio,
    cramers_v,
    marginal_distances,
    pair_distances,
    pearson,
    range_errors,
)
from tests.synth.evaluation.small_tables import compared

EVEN = [("x", "red", 0), ("x", "blue", 1), ("y", "red", 2), ("y", "blue", 3)]
LINKED = [("x", "red", 0), ("x", "red", 0), ("y", "blue", 3), ("y", "blue", 3)]
MIXED = [*EVEN, ("z", "red", 1), (None, "blue", 2), ("y", None, None)]


def _source() -> SeededRandomSource:
    return SeededRandomSource(3)


def test_columns_by_hand() -> None:
    found = {item.name: item for item in column_distances(compared(EVEN, LINKED))}
    assert found["letter"].total_variation == 0
    assert found["letter"].kolmogorov_smirnov is None
    # A quarter each against one half at either end: the cumulative shares are 1/4, 1/2, 3/4, 1 and 1/2, 1/2, 1/2, 1.
    assert found["size"].total_variation == pytest.approx(0.5)
    assert found["size"].kolmogorov_smirnov == pytest.approx(0.25)
    assert found["size"].real == (0.25, 0.25, 0.25, 0.25, 0.0)


def test_marginals_by_hand() -> None:
    tables = compared(EVEN, LINKED)
    one, two, three = (marginal_distances(tables, ways, _source()) for ways in (1, 2, 3))
    assert (one.mean, one.worst, one.worst_columns) == (pytest.approx(1 / 6), pytest.approx(0.5), ("size",))
    # letter x color: 1/4 in four cells against 1/2 in two of them; pairs with size likewise.
    assert (two.mean, two.worst, two.compared) == (pytest.approx(0.5), pytest.approx(0.5), 3)
    assert (three.mean, three.marginals) == (pytest.approx(0.5), 1)
    square = pair_distances(tables)
    assert np.allclose(square, [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0.5]])


def test_marginals_by_a_slow_way() -> None:
    tables = compared(MIXED, LINKED * 2 + EVEN)
    found = marginal_distances(tables, 3, _source())
    first, second = MIXED, LINKED * 2 + EVEN
    cells = set(first) | set(second)
    slow = sum(abs(first.count(cell) / len(first) - second.count(cell) / len(second)) for cell in cells) / 2
    assert found.mean == pytest.approx(slow)


def test_large_marginals_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = compared(MIXED, LINKED)
    dense = marginal_distances(tables, 2, _source())
    monkeypatch.setattr(fidelity, "_LARGEST_DENSE", 1)
    assert marginal_distances(tables, 2, _source()) == dense


def test_equal_tables_are_not_apart_in_whatever_order() -> None:
    for order in itertools.islice(itertools.permutations(MIXED), 0, 5000, 1200):
        tables = compared(MIXED, list(order))
        assert marginal_distances(tables, 2, _source()).worst == 0
        assert range_errors(tables, _source()).worst == 0
        assert compare_associations(tables).mean == 0


def test_tables_without_a_common_cell_are_as_far_apart_as_can_be() -> None:
    found = marginal_distances(compared([("x", "red", 0)], [("y", "blue", 3)]), 1, _source())
    assert found.mean == 1
    assert found.resampled == 0


def test_resampled_is_what_sampling_alone_gives() -> None:
    tables = compared(EVEN * 2500, EVEN)
    resampled = marginal_distances(tables, 1, _source()).resampled
    assert 0 < resampled < 1
    many = marginal_distances(compared(EVEN, EVEN * 2500), 1, _source()).resampled
    assert many < 0.02


def test_of_many_marginals_some_are_drawn_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "MOST_MARGINALS", 2)
    found = marginal_distances(compared(EVEN, LINKED), 2, _source())
    assert (found.compared, found.marginals) == (2, 3)
    assert found.to_dict()["compared"] == 2


def test_associations_by_hand() -> None:
    found = compare_associations(compared(EVEN, LINKED))
    # letter and color: independent, then one tells the other. Sizes 0 to 3: half of the variance of 5/4 is not ...
    assert found.real[0, 1] == 0
    assert found.synthetic[0, 1] == pytest.approx(1)
    # ... between letters: means 1/2 and 5/2, variance between 1 of 5/4 in all.
    assert found.real[0, 2] == pytest.approx(math.sqrt(4 / 5))
    # Colors: means 1 and 2, variance between 1/4 of 5/4.
    assert found.real[1, 2] == pytest.approx(math.sqrt(1 / 5))
    assert found.synthetic[1, 2] == pytest.approx(1)
    assert found.differences == {
        "cramers_v": pytest.approx(1),
        "correlation_ratio": pytest.approx((2 - math.sqrt(4 / 5) - math.sqrt(1 / 5)) / 2),
    }
    assert found.mean == pytest.approx((3 - math.sqrt(4 / 5) - math.sqrt(1 / 5)) / 3)


def test_measures_agree_with_slow_ones() -> None:
    source = SeededRandomSource(1)
    table = (source.words(12) % np.uint64(9)).astype(float).reshape(3, 4) + 1
    across, down = np.array([1.0, 2.0, 5.0]), np.array([0.0, 1.0, 4.0, 4.5])
    first = np.repeat(np.repeat(across, 4), table.ravel().astype(int))
    second = np.repeat(np.tile(down, 3), table.ravel().astype(int))
    assert pearson(table, across, down) == pytest.approx(np.corrcoef(first, second)[0, 1])
    total = table.sum()
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / total
    assert cramers_v(table) == pytest.approx(math.sqrt(((table - expected) ** 2 / expected).sum() / total / 2))
    between = sum(
        (second[first == value].mean() - second.mean()) ** 2 * (first == value).sum() for value in np.unique(first)
    )
    assert correlation_ratio(table, down) == pytest.approx(math.sqrt(between / ((second - second.mean()) ** 2).sum()))


def test_what_does_not_vary_goes_with_nothing() -> None:
    assert cramers_v(np.array([[3.0, 0.0]])) == 0
    assert pearson(np.array([[3.0, 0.0]]), np.array([1.0]), np.array([0.0, 1.0])) == 0
    assert pearson(np.zeros((2, 2)), np.arange(2.0), np.arange(2.0)) == 0
    assert correlation_ratio(np.array([[3.0, 0.0]]), np.array([0.0, 1.0])) == 0
    assert correlation_ratio(np.zeros((2, 2)), np.arange(2.0)) == 0


def test_ranges_by_a_slow_way() -> None:
    tables = compared(MIXED, LINKED, columns=["letter", "size"])
    found = range_errors(tables, _source(), questions=200)
    assert found == range_errors(tables, _source(), questions=200)
    runs = (
        [(low, high) for low in range(3) for high in range(low + 1, 4)],
        [(low, high) for low in range(4) for high in range(low + 1, 5)],
    )
    possible = set()
    for one, two in itertools.product(*runs):
        shares = []
        for rows in (MIXED, LINKED):
            inside = [
                row
                for row in rows
                if row[0] in list("xyz")[one[0] : one[1]] and row[2] is not None and two[0] <= row[2] < two[1]
            ]
            shares.append(len(inside) / len(rows))
        possible.add(round(abs(shares[0] - shares[1]), 9))
    assert round(found.worst, 9) == max(possible)
    assert round(found.median, 9) in possible
    assert 0 < found.mean < found.worst
