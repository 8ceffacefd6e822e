from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cloister.core import exact
from cloister.errors import ParameterError, ParameterTypeError
from cloister.mechanisms.transitions import largest_ratio, ordinal_matrix, quantize, quantized_matrix, response_matrix
from tests.mechanisms.transitions.strategies import MATRIX, matrices

WORDS = 2**64


def _check(matrix: Any) -> tuple[Fraction, Fraction]:
    """Return the largest ratios before and after, having compared them exactly."""
    before, after = largest_ratio(matrix), largest_ratio(quantized_matrix(quantize(matrix)))
    assert before is not None
    assert after is not None
    assert after <= before
    return before, after


@given(matrices(size=4, most=10**6))
def test_the_epsilon_is_never_above_and_entries_hardly_move(matrix: Any) -> None:
    before, _ = _check(matrix)
    near = quantized_matrix(quantize(matrix))
    moved = max(abs(a - b) for old, new in zip(matrix, near, strict=True) for a, b in zip(old, new, strict=True))
    allowed = 1 if before == 1 else 1 + 4 * (before + 1) / (before - 1)
    assert moved * WORDS <= allowed + 1


@given(st.sampled_from([response_matrix, ordinal_matrix]), st.integers(2, 7), st.fractions("1/1000", 20))
def test_what_epsilon_makes_is_kept_to_a_billionth(make: Any, categories: int, epsilon: Fraction) -> None:
    _, after = _check(make(categories, epsilon=epsilon))
    assert exact.log_bounds(after)[0] >= epsilon - Fraction(1, 10**9)


@given(st.sampled_from([response_matrix, ordinal_matrix]), st.integers(2, 7), st.fractions(0, 50))
def test_any_epsilon_is_kept(make: Any, categories: int, epsilon: Fraction) -> None:
    _check(make(categories, epsilon=epsilon))


def test_plain_rounding_would_have_raised_the_epsilon() -> None:
    third = Fraction(1, 3)
    matrix = [[third, third, third], ["2/3", "1/6", "1/6"], [third, third, third]]
    assert Fraction(round(WORDS * Fraction(2, 3)), round(WORDS * third)) > 2
    before, after = _check(matrix)
    assert before == 2
    assert after > 2 - Fraction(1, 10**17)


def test_ratios_too_small_for_words_become_none() -> None:
    tiny = Fraction(1, 2**80)
    half = Fraction(1, 2)
    _, after = _check([[half, half], [half + tiny, half - tiny]])
    assert after == 1


def test_entries_too_small_for_words_become_larger() -> None:
    tiny = Fraction(1, 2**80)
    near = quantized_matrix(quantize([[1 - tiny, tiny], [tiny, 1 - tiny]]))
    assert 0 < near[0][1] < Fraction(10, WORDS)


def test_equal_rows_stay_equal() -> None:
    third = Fraction(1, 3)
    first, second, last = quantize([[third, third, third]] * 3)
    assert first == second == last
    assert abs(first[0] - WORDS // 3) <= 1


def test_what_is_never_reported_stays_so() -> None:
    matrix = [["1/3", "2/3", 0], ["2/3", "1/3", 0], ["1/2", "1/2", 0]]
    _check(matrix)
    assert [row[1] for row in quantize(matrix)] == [WORDS] * 3


def test_an_infinite_epsilon_is_only_rounded() -> None:
    assert quantize([["1/2", "1/2"], [0, 1]]) == ((2**63,), (0,))
    assert quantized_matrix([[2**63], [0]]) == ((Fraction(1, 2), Fraction(1, 2)), (0, 1))


def test_thresholds_are_cumulative() -> None:
    for row, bounds in zip(MATRIX, quantize(MATRIX), strict=True):
        assert bounds[0] / WORDS == pytest.approx(float(row[0]))
        assert bounds[1] / WORDS == pytest.approx(float(row[0] + row[1]))


@pytest.mark.parametrize("bounds", [[[2, 1], [1, 2], [1, 2]], [[1], [1, 2], [1, 2]], [[WORDS + 1], [1]]])
def test_thresholds_that_fit_no_matrix_are_refused(bounds: Any) -> None:
    with pytest.raises(ParameterError, match=r"take them from quantize\(\)"):
        quantized_matrix(bounds)


def test_thresholds_are_integers() -> None:
    with pytest.raises(ParameterTypeError, match="as an integer"):
        quantized_matrix([[0.5], [0.5]])  # type: ignore[list-item]
