from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from cloister.errors import CloisterError, MissingBoundsError
from cloister.learn._encoding import Encoding, encoding_of
from cloister.learn._features import Binned, Categorical, Numeric

whole = st.integers(-(2**40), 2**40)


def _one_by_one(column: Any, values: tuple[Any, ...]) -> list[int]:
    """Look up each value by itself: slow and obvious."""
    place = {value: position for position, value in enumerate(values)}
    return [place.get(item, len(place)) for item in np.asarray(column).tolist()]


@pytest.mark.parametrize("kind", [np.int64, np.int16, np.uint8, np.float64, np.float32, np.bool_, np.uint64])
@settings(max_examples=30)
@given(values=st.lists(st.integers(-3, 9), min_size=1, unique=True), column=st.lists(st.integers(-6, 12)))
def test_codes_of_numbers_are_those_of_a_lookup(kind: Any, values: list[int], column: list[int]) -> None:
    typed = np.array(column).astype(kind)
    assert Categorical("x", tuple(values)).codes(typed).tolist() == _one_by_one(typed, tuple(values))


@given(values=st.lists(whole, min_size=1, unique=True), column=st.lists(whole))
def test_codes_of_large_numbers(values: list[int], column: list[int]) -> None:
    typed = np.array(column + values, dtype=np.int64)
    assert Categorical("x", tuple(values)).codes(typed).tolist() == _one_by_one(typed, tuple(values))


def test_numbers_next_to_each_other_are_told_apart() -> None:
    large = 2**60
    found = Categorical("x", (large, large + 1)).codes(np.array([large + 1, large, large + 2]))
    assert found.tolist() == [1, 0, 2]
    assert Categorical("x", (1, 2)).codes(np.array([1.5, np.nan, 2.0, np.inf])).tolist() == [2, 2, 1, 2]


@pytest.mark.parametrize(
    "column",
    [
        np.array(["b", "a", None, "z"], dtype=object),
        pd.Series(["b", "a", None, "z"], dtype="str"),
        pd.Series(["b", "a", None, "z"], dtype="string"),
        pa.chunked_array([["b", "a"], [None, "z"]]),
    ],
)
def test_codes_of_texts_are_the_same_however_they_are_held(column: Any) -> None:
    assert Categorical("x", ("a", "b")).codes(column).tolist() == [1, 0, 2, 2]


def test_columns_of_several_types_are_refused() -> None:
    with pytest.raises(CloisterError, match="all values of a column texts"):
        Categorical("x", ("a", "b")).codes(np.array(["a", 1, {}], dtype=object))


def test_bins_are_half_open_and_the_outer_ones_take_what_lies_outside() -> None:
    binned = Binned("x", (0.0, 10.0, 20.0, 40.0))
    column = np.array([-np.inf, -1, 0, 9.99, 10, 20, 40, 41, np.inf, np.nan])
    assert binned.codes(column).tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 2, 3]
    assert binned.outside(column) == 4
    assert binned.labels == ("[0, 10)", "[10, 20)", "[20, 40)")
    assert Binned("x", (0.0, 1.0)).codes(np.array([-3, 0.5, 7])).tolist() == [0, 0, 0]


def test_numbers_without_a_value_are_in_the_middle() -> None:
    numeric = Numeric("x", 0.0, 10.0)
    assert numeric.numbers(np.array([1.0, np.nan])).tolist() == [1, 5]
    assert numeric.outside(np.array([-1.0, 3, np.nan, 11])) == 2
    with pytest.raises(CloisterError, match="mend the data"):
        numeric.numbers(np.array(["a"]))


ENCODING = Encoding((Numeric("age", 0.0, 100.0), Categorical("sex", ("F", "M")), Binned("pay", (0.0, 10.0, 50.0))))


def test_a_matrix_has_numbers_and_indicators() -> None:
    columns = [np.array([30.0, np.nan]), np.array(["M", "?"], dtype=object), np.array([9.0, 70.0])]
    found = ENCODING.matrix(columns)
    assert found.tolist() == [[30, 0, 1, 1, 0], [50, 0, 0, 0, 1]]
    assert found.flags.f_contiguous
    assert ENCODING.names == ("age", "sex=F", "sex=M", "pay=[0, 10)", "pay=[10, 50)")
    assert ENCODING.sizes == (1, 2, 2)
    assert ENCODING.bounds[1].tolist() == [100, 1, 1, 1, 1]
    assert not ENCODING.is_numeric


def test_numbers_have_no_codes_before_they_are_cut() -> None:
    with pytest.raises(CloisterError, match="bins=10"):
        ENCODING.codes([np.array([1.0])] * 3)
    cut = encoding_of(["age"], bounds=(0, 100), bins=4)
    assert cut.codes([np.array([24.0, 25.0, 100.0])]).tolist() == [[0], [1], [3]]


def test_an_encoding_is_written_and_read() -> None:
    assert Encoding.from_dict(ENCODING.to_dict()) == ENCODING


def test_bins_are_given_for_all_in_order_or_by_name() -> None:
    names, bounds = ["a", "b"], (0, 10)
    assert encoding_of(names, bounds=bounds, bins=2).sizes == (2, 2)
    assert encoding_of(names, bounds=bounds, bins=[3, [0, 1, 10]]).sizes == (3, 2)
    assert encoding_of(names, bounds=bounds, bins={"b": 4}).sizes == (10, 4)
    assert encoding_of(names, bins={"a": [0, 5], "b": np.array([0, 1, 2])}).sizes == (1, 2)
    assert encoding_of(names, bounds=bounds).is_numeric


def test_some_columns_of_a_list_may_be_described_elsewhere() -> None:
    found = encoding_of(["a", "b"], domain=[["x", "y"], None], bounds={"b": (0, 1)})
    assert found.features == (Categorical("a", ("x", "y")), Numeric("b", 0.0, 1.0))


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"domain": [None]}, "domain="),
        ({"bins": 3}, "bounds="),
        ({"bins": {"a": [[0, 1], [2, 3]]}}, "the outer bins"),
        ({"bins": dt.date(2026, 1, 1)}, "bins=10"),
        ({"bounds": (0, 1), "bins": True}, "bins"),
        ({"bounds": (0, 1), "bins": -1}, "bins"),
    ],
)
def test_odd_declarations_are_refused_with_a_fix(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        encoding_of(["a"], **options)


def test_something_must_be_learned_from() -> None:
    with pytest.raises(CloisterError, match="at least one column"):
        encoding_of([])
    with pytest.raises(MissingBoundsError):
        encoding_of(["a"])


@pytest.mark.parametrize("kind", ["object", "str", "string"])
def test_texts_are_found_among_values_of_any_kind(kind: str) -> None:
    values = ("a", 7, "line\nbreak", "\ud800", "", "é")
    column = pd.Series(["é", "", "7", None, "line\nbreak", "a", "other"], dtype=kind)
    feature = Categorical("c", values)
    assert feature.codes(column if kind != "object" else column.to_numpy()).tolist() == [5, 4, 6, 6, 2, 0, 6]
