from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.errors import CloisterError, ParameterError, ParameterTypeError
from cloister.protocols.pca._plans import FixedPoint, as_rows
from cloister.testing import samplers

entries = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(st.tuples(entries, entries, entries), max_size=6),
    st.sampled_from([1, Fraction(1, 3), "1e-9", 7.25, 10**12]),
    st.sampled_from([None, 0, 5]),
)
def test_rows_are_whole_and_never_longer_than_the_norm(rows: list[Any], norm: Any, digits: int | None) -> None:
    try:
        whole = FixedPoint.of(data_norm=norm, fraction_bits=digits, columns=3)
    except ParameterError:
        assert digits is not None
        return
    steps = whole.steps(np.array(rows).reshape(-1, 3))
    assert steps.shape == (len(rows), 3)
    for row in steps.tolist():
        assert all(step == int(step) for step in row)
        assert sum(int(step) ** 2 for step in row) <= whole.largest**2
    assert whole.largest <= whole.norm * whole.unit < whole.largest + 1


@given(st.lists(st.tuples(entries, entries), min_size=2, max_size=5))
def test_a_row_does_not_depend_on_the_others(rows: list[Any]) -> None:
    whole = FixedPoint.of(data_norm=2, fraction_bits=None, columns=2)
    together = whole.steps(np.array(rows))
    for place, row in enumerate(rows):
        assert (whole.steps(np.array([row])) == together[place]).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_wide_rows_do_not_depend_on_the_others_in_any_layout(order: Any) -> None:
    whole = FixedPoint.of(data_norm=1, fraction_bits=None, columns=40)
    rows = np.asarray(samplers.gaussian(1, (500, 40)), order=order)
    together = whole.steps(rows)
    for place in range(500):
        assert (whole.steps(rows[place : place + 1]) == together[place]).all()


def test_short_rows_keep_their_values_and_long_ones_their_direction() -> None:
    whole = FixedPoint.of(data_norm=1, fraction_bits=None, columns=2)
    assert whole.largest == 2**19
    rows = np.array([[0.25, -0.5], [3e300, 4e300], [0.0, 0.0]])
    found = whole.steps(rows) / float(whole.unit)
    assert found == pytest.approx(np.array([[0.25, -0.5], [0.6, 0.8], [0, 0]]), abs=2**-18)


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"data_norm": 0}, "positive data_norm"),
        ({"data_norm": "wide"}, "finite number"),
        ({"fraction_bits": -1}, "leave fraction_bits out"),
        ({"fraction_bits": 30}, "leave fraction_bits out"),
        ({"fraction_bits": 10**9}, "leave fraction_bits out"),
        ({"fraction_bits": True}, "leave fraction_bits out"),
        ({"fraction_bits": 1.5}, "leave fraction_bits out"),
        ({"columns": 2**15}, "fewer with very many columns"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        FixedPoint.of(**({"data_norm": 1, "fraction_bits": None, "columns": 2} | options))


@pytest.mark.parametrize("rows", [[1, 2], [["a", "b"]], [[[1]]], [[1], [2, 3]], [[]], "rows", None])
def test_what_is_no_table_is_refused(rows: Any) -> None:
    with pytest.raises(ParameterTypeError, match="two-dimensional array"):
        as_rows(rows, name="east")


@pytest.mark.parametrize("cell", [float("nan"), float("inf"), None])
def test_missing_numbers_are_refused_without_saying_where(cell: Any) -> None:
    with pytest.raises(ParameterError, match="fill or drop") as caught:
        as_rows([[1.0, 424242.0], [cell, 3.0]], name="east")
    assert "424242" not in str(caught.value)
