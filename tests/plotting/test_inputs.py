from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloister.errors import ParameterError, ParameterTypeError
from cloister.plotting import inputs


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5, None],
        (1.0, Fraction(5, 2), float("nan")),
        [Decimal(1), Decimal("2.5"), Decimal("nan")],
        np.array([1, 2.5, np.nan]),
        np.ma.masked_array([1, 2.5, 7], mask=[False, False, True]),
        [np.int64(1), np.float32(2.5), pd.NA],
        pd.Series([1, 2.5, None]),
        pd.array([1.0, 2.5, None], dtype="Float64"),
        pa.array([1, 2.5, None]),
        (value for value in (1, 2.5, None)),
    ],
)
def test_numbers_of_every_kind(values: object) -> None:
    assert inputs.numbers(values, name="values") == [1.0, 2.5, None]


@pytest.mark.parametrize("value", [float("inf"), -np.inf, 10**400, Fraction(10**400), Decimal("inf")])
def test_numbers_too_large_to_draw_are_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="Fix: give finite numbers, or None"):
        inputs.numbers([value], name="values")


@pytest.mark.parametrize("value", ["3", True, 1j, [1], date(2024, 1, 1)])
def test_what_is_not_a_number_is_refused_without_quoting_it(value: object) -> None:
    with pytest.raises(ParameterTypeError, match="Fix: give values as numbers") as caught:
        inputs.numbers([value], name="values")
    assert str(value) not in str(caught.value)


@pytest.mark.parametrize("values", ["abc", b"abc", 3, None])
def test_what_is_not_a_sequence_is_refused(values: object) -> None:
    with pytest.raises(ParameterTypeError, match="Fix: give labels as a list"):
        inputs.labels(values, name="labels")


def test_nothing_to_draw_is_refused() -> None:
    for values in ([], [None, float("nan")]):
        with pytest.raises(ParameterError, match="Fix: give at least one number"):
            inputs.some_numbers(values, name="values")


def test_margins() -> None:
    assert inputs.margins(None, count=2) == [None, None]
    assert inputs.margins([1, None], count=2) == [1.0, None]
    with pytest.raises(ParameterError, match="Fix: give half-widths"):
        inputs.margins([-1, 2], count=2)
    with pytest.raises(ParameterError, match="values has 3 items, margins has 2"):
        inputs.margins([1, 2], count=3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "(missing)"),
        (float("nan"), "(missing)"),
        (pd.NaT, "(missing)"),
        ("", '""'),
        (3, "3"),
        (np.int32(3), "3"),
        (0.1 + 0.2, "0.3"),
        (2.0, "2"),
        (Fraction(1, 3), "1/3"),
        (True, "True"),
        (date(2024, 2, 1), "2024-02-01"),
        (datetime(2024, 2, 1), "2024-02-01"),
        (np.datetime64("2024-02-01T10:30", "ns"), "2024-02-01 10:30:00"),
        ("Diseases of the circulatory system and others", "Diseases of the circulatory system\nand others"),
        ("x" * 40, "x" * 36 + "\n" + "x" * 4),
    ],
)
def test_labels_read_well(value: object, expected: str) -> None:
    assert inputs.text(value) == expected


def test_the_same_label_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match="Fix: give every item a label of its own"):
        inputs.distinct_labels([1, "1"], name="labels")


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        ([1, 2.5, Fraction(7, 2)], True),
        ([Decimal(1), Decimal(2)], True),
        ([date(2024, 1, 1), date(2024, 1, 2)], True),
        (np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"), True),
        ([2, 1], False),
        ([1, None], False),
        ([False, True], False),
        (["a", "b"], False),
        ([1, date(2024, 1, 1)], False),
    ],
)
def test_which_labels_a_reader_can_fill_in(values: object, ordered: bool) -> None:
    assert inputs.are_ordered(values) is ordered


@pytest.mark.parametrize(
    ("value", "margin", "expected"),
    [
        (47.31, 1.92, "47.3 ± 1.9"),
        (1234567, 120, "1,234,567 ± 120"),
        (1234.5678, 123.4, "1,235 ± 123"),
        (0.5, 0, "0.5 ± 0"),
        (12.25, 1e-9, "12.2500000000 ± 1e\N{MINUS SIGN}09"),
        (-3, None, "\N{MINUS SIGN}3"),
        (45.0, None, "45"),
        (1.23456, None, "1.235"),
        (3.2e17, 1e15, "3.2e+17 ± 1e+15"),
        (2e-9, None, "2e\N{MINUS SIGN}09"),
        (0, None, "0"),
        (None, 3, "no value"),
    ],
)
def test_numbers_have_the_digits_that_their_margin_deserves(
    value: float | None, margin: float | None, expected: str
) -> None:
    assert inputs.number_with_margin(value if value is None else float(value), margin) == expected


def test_moments_are_in_utc() -> None:
    zone = timezone(timedelta(hours=2))
    assert inputs.moment(date(2024, 1, 2)) == "2024-01-02"
    assert inputs.moment(datetime(2024, 1, 2, 3)) == "2024-01-02T03:00:00Z"
    assert inputs.moment(datetime(2024, 1, 2, 3, tzinfo=zone)) == "2024-01-02T01:00:00Z"
    assert inputs.moment(datetime(2024, 1, 2, 3, tzinfo=UTC)) == "2024-01-02T03:00:00Z"
