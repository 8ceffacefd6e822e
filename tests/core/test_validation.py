from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.core import validation
from cloister.errors import ParameterError, ParameterTypeError, PrivacyParameterWarning


@pytest.mark.parametrize("bad", [0, -1, -0.5])
def test_epsilon_must_be_positive(bad: float) -> None:
    with pytest.raises(ParameterError, match="epsilon=0.5"):
        validation.check_epsilon(bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf, "much"])
def test_epsilon_must_be_finite(bad: object) -> None:
    with pytest.raises(ParameterError, match="finite number"):
        validation.check_epsilon(bad)


def test_epsilon_zero_where_allowed() -> None:
    assert validation.check_epsilon(0, allow_zero=True) == 0
    with pytest.raises(ParameterError, match="at least 0"):
        validation.check_epsilon(-1, allow_zero=True)


@pytest.mark.parametrize("bad", [-1e-9, 1, 2])
def test_delta_range(bad: float) -> None:
    with pytest.raises(ParameterError, match="delta=1e-6"):
        validation.check_delta(bad)


def test_delta_zero_only_where_allowed() -> None:
    assert validation.check_delta(0) == 0
    with pytest.raises(ParameterError, match="above 0 and below 1"):
        validation.check_delta(0, allow_zero=False)


def test_delta_above_one_over_rows_warns() -> None:
    with pytest.warns(PrivacyParameterWarning, match="publishing a random row"):
        assert validation.check_delta(0.01, rows=100) == Fraction(1, 100)
    assert validation.check_delta(0.0099, rows=100) < Fraction(1, 100)


def test_signs() -> None:
    assert validation.check_positive(0.5, name="sensitivity") == Fraction(1, 2)
    assert validation.check_non_negative(0, name="rho") == 0
    with pytest.raises(ParameterError, match="positive sensitivity"):
        validation.check_positive(0, name="sensitivity")
    with pytest.raises(ParameterError, match="not negative"):
        validation.check_non_negative(-1, name="rho")


def test_limits_are_included() -> None:
    for given in (1e-6, 1, 1e6):
        assert validation.check_between(given, name="clip", lowest=1e-6, highest=1e6) == Fraction(str(given))
    for given in (0, 1e7, -1):
        with pytest.raises(ParameterError, match="use clip from 1e-06 to 1e\\+06"):
            validation.check_between(given, name="clip", lowest=1e-6, highest=1e6)


def test_probability_and_confidence() -> None:
    assert validation.check_probability(1, name="p") == 1
    assert validation.check_confidence(0.95) == Fraction(19, 20)
    with pytest.raises(ParameterError, match="such as 0.05"):
        validation.check_probability(1.1, name="p")
    for bad in (0, 1, 95):
        with pytest.raises(ParameterError, match="confidence=0.95"):
            validation.check_confidence(bad)


def test_counts() -> None:
    assert validation.check_count(np.int64(5), name="k") == 5
    with pytest.raises(ParameterError, match="k=2"):
        validation.check_count(1, name="k", at_least=2)
    for bad in (True, 2.0, "2"):
        with pytest.raises(ParameterTypeError, match="as an integer"):
            validation.check_count(bad, name="k")


@pytest.mark.parametrize("bad", [(10, 0), [1, 0]])
def test_reversed_bounds_are_refused_with_the_right_order(bad: Any) -> None:
    with pytest.raises(ParameterError, match="smaller number first"):
        validation.check_bounds(bad)


def test_empty_bounds_are_refused() -> None:
    with pytest.raises(ParameterError, match="leave room"):
        validation.check_bounds((0, 0))


@pytest.mark.parametrize("bad", [5, "01", (1,), (1, 2, 3), None])
def test_bounds_are_a_pair(bad: object) -> None:
    with pytest.raises(ParameterTypeError, match=r"bounds=\(0, 110\)"):
        validation.check_bounds(bad)


def test_bounds_may_be_any_pair_of_numbers() -> None:
    assert validation.check_bounds(np.array([0.1, 0.7])) == (Fraction(1, 10), Fraction(7, 10))
    with pytest.raises(ParameterError, match="finite"):
        validation.check_bounds((0, math.inf))


def test_choices_suggest_the_nearest() -> None:
    assert validation.check_choice("a", name="mode", allowed=("a", "b")) == "a"
    with pytest.raises(ParameterError, match='Did you mean "analytic"'):
        validation.check_choice("analytik", name="calibration", allowed=("analytic", "classic"))
