from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.errors import ParameterTypeError
from cloister.report import markup


@given(st.text(st.characters()))
def test_clean_text_can_be_shown_and_written(text: str) -> None:
    cleaned = markup.clean(text)
    assert cleaned.encode("utf-8").decode() == cleaned
    assert markup.clean(cleaned) == cleaned
    assert not set(cleaned) & set("\x00\x1b\x7f\r\u202e\u2066\ufffe")


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="label is not text"):
        markup.clean(3, name="label")
    with pytest.raises(ParameterTypeError, match="Fix: give columns as a list"):
        markup.lines("abc", name="columns")
    with pytest.raises(ParameterTypeError, match="is not a sequence"):
        markup.several(3, name="columns")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (float("nan"), None),
        (True, "yes"),
        (np.bool_(False), "no"),
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (Fraction(1, 4), 0.25),
        (Decimal("1.5"), 1.5),
        (float("inf"), "∞"),
        (float("-inf"), "\N{MINUS SIGN}∞"),
        (dt.date(2026, 11, 16), "2026-11-16"),
        (dt.datetime(2026, 11, 16, 8, 30), "2026-11-16 08:30:00"),
        ("text", "text"),
    ],
)
def test_plain_values(value: object, expected: object) -> None:
    assert markup.to_cell(value) == expected


def test_values_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ParameterTypeError, match="a value is not text"):
        markup.to_cell([1, 2])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "\N{EN DASH}"),
        ("a", "a"),
        (0, "0"),
        (0.0, "0"),
        (-3, "\N{MINUS SIGN}3"),
        (1_234_567, "1,234,567"),
        (12.0, "12"),
        (123.456, "123.5"),
        (99999.5, "100,000"),
        (0.1 + 0.2, "0.3"),
        (0.000123, "0.000123"),
        (0.00001234, "1.234e\N{MINUS SIGN}05"),
        (1e20, "1e+20"),
        (0.99999, "1"),
    ],
)
def test_numbers_as_they_read(value: object, expected: str) -> None:
    assert markup.format_value(value) == expected
