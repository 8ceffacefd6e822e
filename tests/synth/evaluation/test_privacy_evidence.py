from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.random import SeededRandomSource
from cloister.synth.evaluation._coded_tables import Features, read_tables
from cloister.synth.evaluation._proximity import (
    find_copies,
    measure_guessing,
    measure_nearness,
    nearest,
    standard_scores,
)
from tests.synth.evaluation.small_tables import compared, people

A, B, C, D = ("x", "red", 0), ("y", "red", 1), ("z", "blue", 2), ("x", "blue", 3)


def _source() -> SeededRandomSource:
    return SeededRandomSource(7)


def test_copies_by_hand() -> None:
    found = find_copies(compared([A, A, B, C], [A, B, D, D, D]))
    assert found.share == pytest.approx(2 / 5)
    assert found.met == pytest.approx(3 / 4)
    assert (found.control, found.control_met, found.score) == (None, None, None)


def test_copies_beside_a_control_by_hand() -> None:
    found = find_copies(compared([A, A, B, C], [A, B, D, D, D], [A, D]))
    # Two of four real rows: A is among them with chance 1 - C(2,2)/C(4,2) = 5/6, B with 1/2.
    assert found.matched == pytest.approx((5 / 6 + 1 / 2) / 5)
    assert found.control == pytest.approx(4 / 5)
    assert found.control_met == pytest.approx(1)
    pooled = (3 + 2) / 6
    assert found.score == pytest.approx((3 / 4 - 1) / math.sqrt(pooled * (1 - pooled) * (1 / 4 + 1 / 2)))


def test_a_smaller_table_than_its_control_is_taken_whole() -> None:
    found = find_copies(compared([A], [A, A], [A, B, C, D]))
    assert found.matched == pytest.approx(1)
    assert found.control == pytest.approx(1 / 4)


def test_copies_are_of_values_and_not_of_bins() -> None:
    tables = compared([("x", "red", 0)], [("x", "red", 1)], bins=1)
    assert tables.domain["size"].present == 1
    assert find_copies(tables).share == 0


def test_shares_that_do_not_vary_have_no_score() -> None:
    assert standard_scores(0.0, 5, 0.0, 7) == 0
    assert standard_scores(0.4, 100, 0.6, 100) == pytest.approx(-math.sqrt(8))


def test_distances_by_hand() -> None:
    tables = compared([A, ("x", "red", None)], [A])
    shown = Features(tables, (0, 1, 2)).distances(
        np.array([[0, 0, 0], [0, 0, 3], [1, 1, 3], [3, 0, 4]], dtype=np.int32)
    )
    squared = ((shown[:, None] - shown[None]) ** 2).sum(axis=2)
    assert squared[0, 1] == pytest.approx(1 / 3)
    assert squared[0, 2] == pytest.approx(1)
    # Another name, and a missing amount beside 0: (1/2)**2 + 3/4.
    assert squared[0, 3] == pytest.approx(2 / 3)


def test_nearest_by_a_slow_way() -> None:
    tables = compared([A, ("x", "red", None)], [A])
    features = Features(tables, (0, 1, 2))
    rows = np.array([[0, 0, 0], [0, 0, 3], [1, 1, 3], [3, 0, 4]], dtype=np.int32)
    distances, places = nearest(features.mix(rows[1:]), features.mix(rows[:1]))
    assert distances**2 == pytest.approx([1 / 3, 1, 2 / 3])
    assert places.tolist() == [0, 0, 0]


def test_nearness_by_hand() -> None:
    found = measure_nearness(compared([A, B], [A, A, C], [C, C]), _source())
    # A is at 0 from the real rows and two names and 2/3 of the range from C; C is two names and 1/3 from B.
    far, near = math.sqrt((2 + 4 / 9) / 3), math.sqrt((2 + 1 / 9) / 3)
    assert sorted(found.distances) == pytest.approx([0, 0, near], abs=1e-5)
    assert sorted(found.control_distances) == pytest.approx([0, far, far], abs=1e-5)
    assert found.nearer == pytest.approx(2 / 3)
    assert found.ratio == pytest.approx(near / (2 * far), abs=1e-5)
    # The rows of the data are at 0 and further, those of the holdout at 0: two ties and two losses of four.
    assert found.area == pytest.approx(1 / 4)
    assert found.score == pytest.approx(-1 / 4 / math.sqrt(5 / 48))
    assert "distances" not in found.to_dict()


def test_nearness_without_a_control_says_nothing_of_one() -> None:
    found = measure_nearness(compared([A, B], [A, C]), _source())
    assert (found.nearer, found.ratio, found.area, found.control_median) == (None, None, None, None)


def test_guessing_by_hand() -> None:
    # The nearest synthetic row of each real row has its color, that of each holdout row has the other one.
    turned = [("x", "blue", 0), ("y", "blue", 1), ("z", "red", 2)]
    (found,) = measure_guessing(compared([A, B, C], [A, B, C], turned), _source())
    assert (found.column, found.accuracy, found.control, found.uplift) == ("color", 1, 0, 1)
    assert found.baseline == pytest.approx(2 / 3)
    assert measure_guessing(compared([A, B, C], [A, B, C]), _source()) == ()


def test_a_target_is_guessed_too() -> None:
    found = measure_guessing(compared([A, B, C], [A, B, C], [A, B]), _source(), target="letter")
    assert [item.column for item in found] == ["letter", "color"]


def test_copied_rows_are_found_and_other_samples_are_not() -> None:
    real, holdout = people(500, seed=1), people(500, seed=2)
    copied = read_tables(real, real.with_schema(None), holdout=holdout)
    assert find_copies(copied).score > 6  # type: ignore[operator]  # there is a holdout
    assert measure_nearness(copied, _source()).score > 6  # type: ignore[operator]  # there is a holdout
    fresh = read_tables(real, people(500, seed=3), holdout=holdout)
    assert abs(find_copies(fresh).score) < 6  # type: ignore[arg-type]  # there is a holdout
    assert abs(measure_nearness(fresh, _source()).score) < 6  # type: ignore[arg-type]  # there is a holdout
    assert all(abs(item.score) < 6 for item in measure_guessing(fresh, _source()))
