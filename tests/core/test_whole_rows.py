from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.core.whole_rows import exact_product, whole_steps

entries = st.integers(-(2**20), 2**20)
tables = st.integers(1, 5).flatmap(
    lambda rows: st.tuples(
        st.lists(st.tuples(entries, entries), min_size=rows, max_size=rows),
        st.lists(st.tuples(entries), min_size=rows, max_size=rows),
        st.lists(st.sampled_from([0, 1, 7, 2**13, 2**33, 2**60]), min_size=rows, max_size=rows),
    )
)


@given(tables)
def test_products_are_those_of_whole_numbers(
    table: tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[int]],
) -> None:
    left, right, weights = table
    found = exact_product(
        np.array(left, dtype=float), np.array(right, dtype=float), np.array(weights, dtype=np.int64), most=2**40
    )
    rows = list(zip(left, right, weights, strict=True))
    assert found.tolist() == [[sum(one[place] * other[0] * many for one, other, many in rows)] for place in range(2)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_steps_are_clipped_whole_numbers_in_either_layout(order: str) -> None:
    values = np.array([[0.0, -5.0], [2.5, 100.0], [1e300, 7.0]], order=order)  # type: ignore[call-overload]
    found = whole_steps(values, lows=np.array([0.0, 0.0]), highs=np.array([10.0, 10.0]), bits=4)
    assert found.tolist() == [[-16, -16], [-8, 16], [16, 6]]
    assert values[1, 1] == 100


def test_bounds_that_floats_can_hardly_tell_apart_keep_to_the_range() -> None:
    lows, highs = np.array([1e16]), np.array([1e16 + 2])
    found = whole_steps(np.array([[1e16 + 2]]), lows=lows, highs=highs, bits=10)
    assert np.abs(found).max() <= 2**10
