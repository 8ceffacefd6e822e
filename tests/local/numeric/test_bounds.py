from __future__ import annotations

import hashlib
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from cloister.errors import MissingBoundsError, OutsideDomainError, ParameterError, ParameterTypeError
from cloister.local.numeric._bounds import STEPS, NumericGrid, bounds_hash

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def slow_place(value: float | Fraction, grid: NumericGrid) -> int:
    step = floor((Fraction(value) - grid.low) / (grid.high - grid.low) * grid.steps + Fraction(1, 2))
    return min(max(step, 0), grid.steps)


@given(
    st.lists(NUMBERS | st.floats(-20, 20), min_size=1, max_size=20),
    st.tuples(st.fractions(-20, 20), st.fractions(1 / 1000, 30)),
    st.sampled_from([1, 2, 3, 7, 1000, 2**16, STEPS, 2**31]),
)
def test_places_are_exact(values: list[float], ends: tuple[Fraction, Fraction], steps: int) -> None:
    grid = NumericGrid.of((ends[0], ends[0] + ends[1]), steps)
    assert grid.places(values).tolist() == [slow_place(value, grid) for value in values]


@pytest.mark.parametrize("bounds", [("0.1", "0.3"), (-1, 1), (10**9, 10**9 + 1), (-(10**15), 10**15), ("-1/3", "2/7")])
@pytest.mark.parametrize("steps", [4, 1000, STEPS])
def test_places_beside_every_kind_of_edge_are_exact(bounds: Any, steps: int) -> None:
    grid = NumericGrid.of(bounds, steps)
    edges = [float(grid.low + grid.width * Fraction(2 * step - 1, 2 * steps)) for step in (1, 2, steps // 2, steps)]
    values = np.array([[np.nextafter(edge, -np.inf), edge, np.nextafter(edge, np.inf)] for edge in edges]).ravel()
    assert grid.places(values).tolist() == [slow_place(value, grid) for value in values]


def test_halves_go_up_and_values_are_clamped() -> None:
    grid = NumericGrid.of((0, 4), 4)
    assert grid.places([0.5, 1.5, np.nextafter(1.5, 0), -1e308, 1e308]).tolist() == [1, 2, 1, 0, 4]


def test_every_kind_of_number_has_its_place() -> None:
    grid = NumericGrid.of((0, 10), 10)
    for values in (
        [1, 2.5, 9],
        (Fraction(1), Decimal("2.5"), 9),
        np.array([1, 2.5, 9], dtype=np.float32),
        pa.array([1, 2.5, 9]),
        pa.chunked_array([[1, 2.5], [9]]),
        np.array([np.float64(1), Fraction(5, 2), np.int64(9)], dtype=object),
    ):
        assert grid.places(values).tolist() == [1, 3, 9]
    assert grid.places([10**30, -(10**30), 2**62]).tolist() == [10, 0, 10]
    assert grid.places(np.array([2**63 + 1], dtype=np.uint64)).tolist() == [10]
    wide = NumericGrid.of((2**60, 2**60 + 4), 4)
    assert wide.places(np.array([2**60 + 1, 2**60 + 3])).tolist() == [1, 3]
    assert grid.places([]).tolist() == []


@pytest.mark.parametrize(
    "value", [None, float("nan"), float("inf"), -float("inf"), "4711", True, 1j, [1, [2]], Decimal("NaN"), object()]
)
def test_what_is_no_number_is_refused(value: Any) -> None:
    grid = NumericGrid.of((0, 10), 10)
    for given_ in (value, [1, value]):
        with pytest.raises(OutsideDomainError, match="no answer") as raised:
            grid.places(given_)
        assert "4711" not in str(raised.value)


def test_missing_values_in_tables_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for values in (
        pa.array([1, None]),
        masked,
        pandas.Series([1, None]),
        pandas.Series([1, None], dtype="Int64"),
        {1, 2},
    ):
        with pytest.raises(OutsideDomainError, match="missing"):
            NumericGrid.of((0, 10), 10).places(values)
    assert NumericGrid.of((0, 10), 10).places(pandas.Series([1, 2], dtype="Int64")).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("bounds", "steps", "error", "fix"),
    [
        (None, 8, MissingBoundsError, "anybody would expect"),
        ((1, 1), 8, ParameterError, "leave room"),
        ((2, 1), 8, ParameterError, "smaller number first"),
        ((0, float("nan")), 8, ParameterError, "finite"),
        ("ab", 8, ParameterTypeError, "bounds=\\(0, 110\\)"),
        ((0, "1e500"), 8, ParameterError, "another unit"),
        ((0, "1e-400"), 8, ParameterError, "another unit"),
        ((0, 1), 0, ParameterError, "steps=1"),
        ((0, 1), 2**31 + 1, ParameterError, "2\\*\\*30"),
        ((0, 1), 2.5, ParameterTypeError, "integer"),
    ],
)
def test_bad_bounds_and_steps_are_refused(bounds: Any, steps: Any, error: type[Exception], fix: str) -> None:
    with pytest.raises(error, match=fix):
        NumericGrid.of(bounds, steps)


def test_the_hash_of_bounds_is_that_of_their_texts() -> None:
    assert bounds_hash(["-1", "1/2"]) == hashlib.sha256(b'["n:-1","n:1/2"]').hexdigest()


@pytest.mark.parametrize("exponent", ["999999999", "401", "-999999999"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_huge_exponents_are_clamped_without_their_digits(exponent: str, sign: str) -> None:
    grid = NumericGrid.of((-10, 10), 4)
    value = Decimal(f"{sign}1e{exponent}")
    expected = 2 if exponent.startswith("-") else 0 if sign else 4
    assert grid.places([value]).tolist() == [expected]
    assert grid.places(value).tolist() == expected
    assert grid.places([Decimal("0e999999999")]).tolist() == [2]
    assert grid.places([Decimal("9e299"), Decimal("2.5")]).tolist() == [4, 3]


@pytest.mark.parametrize(
    "values",
    [
        np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        [1.0, np.ma.masked],
        [np.ma.masked, np.ma.masked],
        np.ma.masked,
        (np.ma.masked_array([1.0], mask=[True]), np.ma.masked_array([2.0], mask=[False])),
        [np.ma.masked_array([1.0, 2.0], mask=[True, False])],
        np.ma.masked_array(np.array([1, 2], dtype=object), mask=[True, False]),
    ],
)
def test_masked_numbers_are_missing(values: Any) -> None:
    with pytest.raises(OutsideDomainError, match="missing"):
        NumericGrid.of((0, 10), 4).places(values)


def test_masked_arrays_without_masked_numbers_are_numbers() -> None:
    assert NumericGrid.of((0, 4), 4).places(np.ma.masked_array([1.0, 2.0], mask=[False, False])).tolist() == [1, 2]
