from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from cloister.data.bins import BinInterval
from cloister.errors import ParameterError, ParameterTypeError
from cloister.queries.inference_control import Ranges, Rounded
from cloister.queries.inference_control.controls import treatment_from_dict

numbers = st.fractions(min_value=-1000, max_value=1000)
steps = st.fractions(min_value=Fraction(1, 10), max_value=100)


@given(numbers, steps)
def test_rounded_numbers_are_near_and_on_the_grid(number: Fraction, step: Fraction) -> None:
    shown = Rounded(to=step).treat(number)
    assert isinstance(shown, int | float)
    assert abs(shown - number) <= step / 2 + Fraction(1, 10**9)


@given(numbers, steps)
def test_a_range_holds_its_number(number: Fraction, step: Fraction) -> None:
    shown = Ranges(width=step).treat(number)
    assert isinstance(shown, BinInterval)
    assert shown.low - 1e-9 <= float(number) <= shown.high + 1e-9
    assert Ranges(width=step).treat(number) == shown


def test_an_age_of_26_is_shown_as_20_to_30() -> None:
    assert str(Ranges(width=10).treat(Fraction(26))) == "[20, 30)"
    assert str(Ranges(width=10).treat(Fraction(30))) == "[30, 40)"
    assert str(Ranges(width=10).treat(Fraction(-1))) == "[-10, 0)"


def test_decimal_steps_are_exact() -> None:
    assert Rounded(to=0.1).treat(Fraction(3, 10)) == 0.3


@pytest.mark.parametrize("treatment", [None, Rounded(to="1/3"), Ranges(width=10)])
def test_treatments_are_written_and_read(treatment: Rounded | Ranges | None) -> None:
    assert treatment_from_dict(None if treatment is None else treatment.to_dict()) == treatment


@pytest.mark.parametrize("bad", [5, "rounded", {}, {"kind": "rounded"}, {"kind": "ranges", "to": "5"}, []])
def test_other_values_are_no_treatment(bad: object) -> None:
    with pytest.raises(ParameterError, match='"kind": "rounded"'):
        treatment_from_dict(bad)


@pytest.mark.parametrize("bad", [0, -5, float("nan"), "five"])
def test_steps_are_above_zero(bad: object) -> None:
    with pytest.raises(ParameterError):
        Rounded(to=bad)
    with pytest.raises(ParameterError):
        Ranges(width=bad)


def test_steps_are_numbers() -> None:
    with pytest.raises(ParameterTypeError):
        Rounded(to=True)
