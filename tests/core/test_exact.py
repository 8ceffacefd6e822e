from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.core import exact
from cloister.errors import ParameterError, ParameterTypeError

rationals = st.fractions(min_value=-200, max_value=200, max_denominator=10**6)
positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6)


def test_a_float_is_read_as_the_decimal_that_a_person_typed() -> None:
    assert exact.number(0.1) == Fraction(1, 10)
    assert sum(exact.number(0.1) for _ in range(10)) == 1


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        (3, Fraction(3)),
        ("1/3", Fraction(1, 3)),
        (Decimal("0.25"), Fraction(1, 4)),
        (np.float64(1e-6), Fraction(1, 10**6)),
        (np.int64(7), Fraction(7)),
        (Fraction(2, 7), Fraction(2, 7)),
    ],
)
def test_numbers_of_every_kind_are_exact(given_value: object, expected: Fraction) -> None:
    assert exact.number(given_value) == expected


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "one", "1/0", Decimal("NaN")])
def test_what_is_not_finite_is_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="give budget as a finite number"):
        exact.number(bad, name="budget")


@pytest.mark.parametrize("bad", ["1e5000", "1e-99999999999", Decimal("1e5000")])
def test_absurd_exponents_are_refused_quickly(bad: object) -> None:
    with pytest.raises(ParameterError, match="finite number"):
        exact.number(bad)


@pytest.mark.parametrize("bad", [10**5000, Fraction(1, 10**5000), "1/" + "9" * 4000], ids=["large", "small", "text"])
def test_numbers_of_endless_digits_are_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="at most 1000 digits"):
        exact.number(bad)


@pytest.mark.parametrize("bad", [True, np.True_, None, [1], np.array([1.0, 2.0])])
def test_what_is_not_a_number_is_refused(bad: object) -> None:
    with pytest.raises(ParameterTypeError, match="as a number"):
        exact.number(bad)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_upper_and_lower_enclose_a_float(value: float) -> None:
    assert exact.lower(value) < Fraction(value) < exact.upper(value)


@given(rationals)
def test_directed_floats_enclose_a_rational(value: Fraction) -> None:
    below, above = exact.float_below(value), exact.float_above(value)
    assert Fraction(below) <= value <= Fraction(above)
    assert above <= math.nextafter(below, math.inf)


@given(rationals)
def test_exp_bounds_enclose_and_are_tight(value: Fraction) -> None:
    low, high = exact.exp_bounds(value, digits=30)
    finer_low, finer_high = exact.exp_bounds(value, digits=60)
    assert 0 < low <= finer_low <= finer_high <= high
    assert (high - low) / low < Fraction(1, 10**28)


def test_exp_bounds_know_a_published_value() -> None:
    low, high = exact.exp_bounds(Fraction(1))
    e = Fraction("2.718281828459045235360287471352662497757247")
    assert low <= e <= high


def test_extreme_exponents() -> None:
    assert exact.exp_bounds(Fraction(0)) == (1, 1)
    low, high = exact.exp_bounds(Fraction(-30_000))
    assert low == 0 < high < Fraction(1, 10**8000)
    with pytest.raises(ParameterError, match="keep exponents below"):
        exact.exp_bounds(Fraction(30_000))


@given(positive)
def test_log_bounds_enclose_and_invert_exp(value: Fraction) -> None:
    low, high = exact.log_bounds(value)
    assert low <= high
    assert exact.exp_bounds(low)[0] <= value <= exact.exp_bounds(high)[1]
    assert high - low < Fraction(1, 10**30)


def test_log_bounds_of_one_and_of_nothing() -> None:
    assert exact.log_bounds(Fraction(1)) == (0, 0)
    with pytest.raises(ParameterError, match="above 0"):
        exact.log_bounds(Fraction(0))


@given(st.fractions(min_value=0, max_value=10**12, max_denominator=10**12))
def test_sqrt_bounds_enclose(value: Fraction) -> None:
    low, high = exact.sqrt_bounds(value)
    assert low * low <= value <= high * high
    assert high - low <= Fraction(1, 10**30)


def test_sqrt_bounds_of_squares_are_exact() -> None:
    assert exact.sqrt_bounds(Fraction(9, 4)) == (Fraction(3, 2), Fraction(3, 2))
    with pytest.raises(ParameterError, match=">= 0"):
        exact.sqrt_bounds(Fraction(-1))


@given(positive)
def test_power_of_two_below_is_the_largest(value: Fraction) -> None:
    power = exact.power_of_two_below(value)
    assert power <= value < 2 * power
    assert (power.numerator & (power.numerator - 1), power.denominator & (power.denominator - 1)) == (0, 0)


def test_power_of_two_needs_a_positive_number() -> None:
    with pytest.raises(ParameterError, match="above 0"):
        exact.power_of_two_below(Fraction(0))


@given(rationals, positive)
def test_ceil_div_is_the_smallest(value: Fraction, step: Fraction) -> None:
    count = exact.ceil_div(value, step)
    assert (count - 1) * step < value <= count * step


@given(rationals)
def test_text_round_trips(value: Fraction) -> None:
    assert exact.number(exact.text(value)) == value


@given(st.fractions(-20, 20, max_denominator=1000).filter(bool), st.integers(20, 90))
def test_a_number_is_compared_with_an_exponential_however_close(exponent: Fraction, digits: int) -> None:
    low, high = exact.exp_bounds(exponent, digits=digits)
    assert exact.is_at_most_exp(low, exponent)
    assert not exact.is_at_most_exp(high, exponent)


def test_the_exponential_of_zero_is_one() -> None:
    assert exact.is_at_most_exp(Fraction(1), Fraction(0))
    assert not exact.is_at_most_exp(Fraction(10**40 + 1, 10**40), Fraction(0))
