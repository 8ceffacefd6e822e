from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.errors import CloisterError, ParameterError, ParameterTypeError
from cloister.mechanisms import DiscreteLaplace
from cloister.queries.postprocessing import mean_from_histogram, nonnegative, normalized, rounded

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


def test_negative_counts_become_zero_and_integers_stay_integers() -> None:
    assert nonnegative([3, -2, 0]).tolist() == [3, 0, 0]
    assert nonnegative([3, -2]).dtype == np.int64
    assert nonnegative(np.array([1, 2**63], dtype=np.uint64)).dtype == np.float64
    assert nonnegative(-0.5) == 0
    assert nonnegative(4) == 4


def test_an_answer_stands_for_its_value() -> None:
    answer = DiscreteLaplace(sensitivity=1, epsilon=1).release(np.array([5, 0, 7]))
    assert nonnegative(answer).tolist() == np.maximum(answer.value, 0).tolist()


@given(numbers)
def test_clipping_and_rounding_are_idempotent(values: list[float]) -> None:
    for function in (nonnegative, rounded):
        once = function(values)
        assert np.array_equal(function(once), once)


@given(numbers)
def test_rounding_moves_no_number_by_more_than_it_must(values: list[float]) -> None:
    assert (np.abs(rounded(values) - np.array(values)) <= 0.5).all()
    kept = rounded(values, keep_total=True)
    assert kept.dtype == np.int64
    assert (np.abs(kept - np.array(values)) < 1 + 1e-9).all()
    assert kept.sum() == round(float(np.sum(values)))


def test_rounding_one_number_gives_one_number() -> None:
    assert rounded(2.5) == 2
    assert rounded(3.6, keep_total=True) == 4


@given(numbers)
def test_shares_add_up_to_one(values: list[float]) -> None:
    shares = normalized(values)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)


def test_shares_without_any_positive_number_are_equal() -> None:
    assert normalized([-3, 0]).tolist() == [0.5, 0.5]
    assert normalized([5e-324, 0.0]).tolist() == [1.0, 0.0]


SALARIES = [1234, 1300, 1233, 1250, 1284, 2000, 2300, 2044, 2573, 2745, 2853, 2483, 3633, 3182, 3274, 3935]
NOISE = (0.7534844, -0.6143575, -1.5725160)


def test_cdp_11_mean_from_a_histogram() -> None:
    counts, _ = np.histogram(SALARIES, bins=[1000, 2000, 3000, 4000])
    middles = [1500, 2500, 3500]
    assert counts.tolist() == [5, 7, 4]
    assert mean_from_histogram(counts, middles) == 2437.5
    assert np.mean(SALARIES) == 2332.6875
    assert counts + NOISE == pytest.approx([5.753484, 6.385643, 2.427484], abs=1e-6)
    assert mean_from_histogram(counts + NOISE, middles) == pytest.approx(2271.67, abs=0.005)


def test_a_mean_from_a_histogram_stays_within_the_buckets() -> None:
    assert mean_from_histogram([5, -4], [10, 20]) == 10
    assert mean_from_histogram([-1, -1, -1], [0, 10, 30]) == 15


@pytest.mark.parametrize(
    ("bad", "fix"),
    [
        (["a"], "array of numbers"),
        ([], "at least one number"),
        ([1.0, math.nan], "missing and infinite"),
        ([True], "array of numbers"),
    ],
)
@pytest.mark.parametrize("function", [nonnegative, rounded, normalized])
def test_odd_input_is_refused_with_a_fix(function: Any, bad: list[Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        function(bad)


def test_numbers_beyond_integers_are_refused() -> None:
    with pytest.raises(ParameterError, match="larger units"):
        rounded([1e30])


def test_buckets_and_midpoints_must_agree() -> None:
    with pytest.raises(ParameterError, match="one midpoint for each bucket"):
        mean_from_histogram([1, 2], [1])
    with pytest.raises(ParameterError, match="list of numbers"):
        mean_from_histogram([[1, 2]], [1, 2])
    with pytest.raises(ParameterTypeError, match="midpoints as a list"):
        mean_from_histogram([1, 2], None)
