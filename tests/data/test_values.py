from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from cloister.core.exact import text_of_number
from cloister.data.values import distinct_values, is_missing, is_single, text_of


@pytest.mark.parametrize(
    "value", [None, float("nan"), np.float32("nan"), Decimal("nan"), np.datetime64("NaT"), pd.NA, pd.NaT]
)
def test_missing_values(value: Any) -> None:
    assert is_missing(value)


@pytest.mark.parametrize("value", ["", 0, False, "nan", math.inf, np.datetime64("2020-01-01"), Decimal(0)])
def test_present_values(value: Any) -> None:
    assert not is_missing(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("01", "01"),
        (np.str_("a"), "a"),
        (True, "true"),
        (np.False_, "false"),
        (39, "39"),
        (np.uint8(39), "39"),
        (39.0, "39"),
        (-0.5, "-0.5"),
        (1e22, "1e+22"),
        (math.inf, "inf"),
        (Decimal("1.50"), "1.5"),
        (Decimal("Infinity"), "Infinity"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction(1, 3), "1/3"),
        (date(2024, 1, 2), "2024-01-02"),
        (datetime(2024, 1, 2, 3), "2024-01-02T03:00:00"),
        (np.datetime64("2024-01-02"), "2024-01-02"),
    ],
)
def test_one_text_per_value(value: Any, text: str) -> None:
    assert text_of(value) == text


@given(st.fractions())
def test_the_text_of_a_number_is_exact(value: Fraction) -> None:
    assert Fraction(text_of_number(value)) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_decimals_are_written_plainly(value: Decimal) -> None:
    text = text_of_number(Fraction(value))
    assert "/" not in text
    assert Fraction(text) == Fraction(value)


def test_one_or_many() -> None:
    assert [is_single(value) for value in ("ab", 5, None, np.array(5), date(2020, 1, 1))] == [True] * 5
    assert [is_single(value) for value in (["ab"], (), np.array([5]), {"a"})] == [False] * 4


@pytest.mark.parametrize("values", [[1, 2, 1], ["b", "a", "b"], [None, 1.5, None], [1, True, 1]])
def test_distinct_values_can_be_put_back(values: list[Any]) -> None:
    for given_ in (values, np.array(values, dtype=object), np.array(values)):
        distinct, places = distinct_values(given_)
        assert [distinct[place] for place in places] == list(given_)
        assert len(distinct) < len(values)
