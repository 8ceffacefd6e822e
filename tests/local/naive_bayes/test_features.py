from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.errors import OutsideDomainError, ParameterError
from cloister.local import Bins
from cloister.local.naive_bayes.features import finite_numbers


def test_a_number_on_an_edge_belongs_above_and_one_beyond_the_ends_to_the_last() -> None:
    assert Bins((0, 10, 20)).codes([-5, 0, 9.99, 10, 20, 99]).tolist() == [0, 0, 0, 1, 1, 1]


@given(st.integers(2, 20), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_bins_of_equal_width_are_equally_wide_and_cover_the_bounds(count: int, low: float, width: float) -> None:
    bins = Bins.equal_width((low, low + width), count=count)
    assert len(bins) == count
    assert np.allclose(np.diff(bins.edges), width / count, rtol=1e-6)
    assert set(bins.codes([low, low + width]).tolist()) == {0, count - 1}


@given(st.lists(st.integers(-30, 30), min_size=4, max_size=60), st.integers(2, 4))
def test_bins_of_equal_frequency_keep_equal_numbers_together(numbers: list[int], count: int) -> None:
    if len(set(numbers)) < count:
        with pytest.raises(ParameterError, match="use fewer bins"):
            Bins.equal_frequency(numbers, count=count)
        return
    codes = Bins.equal_frequency(numbers, count=count).codes(numbers)
    by_number: dict[int, set[int]] = {}
    for number, code in zip(numbers, codes.tolist(), strict=True):
        by_number.setdefault(number, set()).add(code)
    assert all(len(found) == 1 for found in by_number.values())


def test_names_say_which_ends_belong_to_a_bin() -> None:
    assert Bins((0, 2.5, 10)).names == ("[0, 2.5)", "[2.5, 10]")


@pytest.mark.parametrize("bad", [[1.0, float("nan")], [float("inf")], ["much"], [None], [True]])
def test_missing_and_foreign_values_are_refused_and_not_quoted(bad: list[object]) -> None:
    with pytest.raises(OutsideDomainError, match="no answer") as caught:
        Bins((0, 1, 2)).codes(bad)
    assert "much" not in str(caught.value)


@pytest.mark.parametrize("edges", [(), (0, 1), (0, 0, 1), (2, 1, 0)])
def test_edges_must_rise(edges: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match="three rising numbers"):
        Bins(edges)


@pytest.mark.parametrize("values", [np.ma.masked_array([1.0, 2.0], mask=[True, False]), [1.0, np.ma.masked]])
def test_masked_numbers_are_missing(values: Any) -> None:
    with pytest.raises(OutsideDomainError, match="missing"):
        finite_numbers(values)
