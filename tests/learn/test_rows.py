from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from cloister.core.whole_rows import exact_product, limit_norms, whole_steps
from cloister.errors import InternalError
from cloister.learn._rows import WeightedRows


def slowly(left: Any, right: Any, weights: Any) -> list[list[int]]:
    return [
        [
            sum(int(w) * int(a) * int(b) for w, a, b in zip(weights, left[:, i], right[:, j], strict=True))
            for j in range(right.shape[1])
        ]
        for i in range(left.shape[1])
    ]


@given(st.data(), st.integers(0, 30), st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 2**20, 2**40, 2**61]))
def test_products_are_those_of_whole_numbers(data: Any, rows: int, width: int, height: int, heavy: int) -> None:
    bits = data.draw(st.integers(0, 20))
    cells = st.integers(-(2**bits), 2**bits).map(float)
    left = data.draw(arrays(np.float64, (rows, width), elements=cells))
    right = data.draw(arrays(np.float64, (rows, height), elements=cells))
    weights = data.draw(arrays(np.int64, rows, elements=st.integers(0, heavy)))
    assert exact_product(left, right, weights, most=4**bits).tolist() == slowly(left, right, weights)


def test_products_do_not_wrap_around() -> None:
    ones = np.ones((4, 1))
    heavy = np.full(4, 2**62, dtype=np.int64)
    assert exact_product(ones, ones, heavy, most=1).tolist() == [[2**64]]


def test_products_beyond_64_bits_stay_exact() -> None:
    wide = np.full((3, 1), 2.0**26)
    weights = np.array([2**40, 1, 2**40], dtype=np.int64)
    found = exact_product(wide, wide, weights, most=2**52)
    assert found.dtype == object
    assert int(found[0, 0]) == 2**52 * (2**41 + 1)


def test_the_order_of_rows_does_not_matter() -> None:
    numbers = np.arange(15_000, dtype=np.int64) * 2_654_435_761 % 2**32
    left = (numbers % 2**16 - 2**15).astype(float).reshape(5000, 3)
    weights = numbers[:5000] % 2**30 + 1
    order = np.argsort(numbers[:5000])
    forth = exact_product(left, left, weights, most=2**30)
    assert (forth == exact_product(left[order], left[order], weights[order], most=2**30)).all()


def test_no_rows_give_zeros() -> None:
    nothing = exact_product(np.empty((0, 2)), np.empty((0, 3)), np.empty(0, dtype=np.int64), most=1)
    assert nothing.tolist() == [[0, 0, 0], [0, 0, 0]]


@given(
    arrays(np.float64, st.tuples(st.integers(0, 20), st.integers(1, 6)), elements=st.integers(-(2**20), 2**20)),
    st.integers(1, 2**22),
)
def test_norms_are_never_above_the_limit(steps: Any, most: int) -> None:
    limited = limit_norms(steps, most=most)
    for before, after in zip(steps.tolist(), limited.tolist(), strict=True):
        assert all(item == int(item) for item in after)
        assert sum(int(item) ** 2 for item in after) <= most**2
        if sum(int(item) ** 2 for item in before) <= most**2:
            assert before == after
        else:
            assert all(abs(small) <= abs(large) for small, large in zip(after, before, strict=True))


def test_limited_norms_are_close_to_the_limit() -> None:
    limited = limit_norms(np.full((1, 4), 2.0**20), most=2**15)
    assert np.sqrt((limited**2).sum()) > 2**15 * 0.999


def test_a_grid_too_fine_for_exact_norms_is_a_bug() -> None:
    with pytest.raises(InternalError, match="too fine"):
        limit_norms(np.full((1, 4), 2.0**26), most=1)


@given(st.floats(allow_nan=True, allow_infinity=True), st.floats(-1e150, 1e150), st.floats(1e-100, 1e150))
def test_steps_are_whole_and_within_the_grid(value: float, low: float, width: float) -> None:
    high = min(low + width, 1e150)
    if high <= low:
        return
    steps = whole_steps(np.array([[value]]), lows=np.array([low]), highs=np.array([high]), bits=15)
    assert steps[0, 0] == int(steps[0, 0])
    assert -(2**15) <= steps[0, 0] <= 2**15


def test_steps_reach_from_end_to_end() -> None:
    values = np.array([[-5.0], [0.0], [5.0], [10.0], [99.0], [np.nan]])
    steps = whole_steps(values, lows=np.array([0.0]), highs=np.array([10.0]), bits=3)
    assert steps[:, 0].tolist() == [-8, -8, 0, 8, 8, 0]


def test_rows_show_no_cells() -> None:
    assert repr(WeightedRows(np.array([[4711.0]]), None, np.array([1]))) == "Rows(features=1)"
