from __future__ import annotations

from fractions import Fraction

from hypothesis import given, strategies as st

from cloister.core.exact import LARGEST_DENOMINATOR_BITS, sum_above


@given(st.lists(st.fractions(min_value=0, max_value=10), max_size=8))
def test_short_sums_are_exact_and_all_are_upper_bounds(values: list[Fraction]) -> None:
    total, exact = sum_above(values), sum(values, Fraction(0))
    assert total >= exact
    assert total == exact or exact.denominator.bit_length() > LARGEST_DENOMINATOR_BITS


def test_long_sums_stay_small_and_close() -> None:
    values = [Fraction(1, 10**6 + 2 * i + 1) for i in range(500)]
    total, exact = sum_above(values), sum(values, Fraction(0))
    assert 0 < total - exact < Fraction(1, 10**50)
    assert total.denominator.bit_length() <= LARGEST_DENOMINATOR_BITS
