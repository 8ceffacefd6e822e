from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, strategies as st

from cloister.queries.inference_control import _linear_audit as modular

P = modular.PRIME
elements = st.integers(0, P - 1) | st.sampled_from([0, 1, 2, P - 1, P - 2, 2**31, 2**31 - 1, 2**60, 2**30])


def array(*numbers: int) -> modular.Elements:
    return np.array(numbers, dtype=np.uint64)


@given(elements, elements)
def test_products_and_differences_are_those_of_whole_numbers(a: int, b: int) -> None:
    assert modular.multiply(array(a), array(b)).tolist() == [a * b % P]
    assert modular.subtract(array(a), array(b)).tolist() == [(a - b) % P]
    assert modular.scale(array(a, 1), b).tolist() == [a * b % P, b]


@given(st.lists(elements, max_size=40))
def test_totals_do_not_overflow(numbers: list[int]) -> None:
    rows = np.array(numbers, dtype=np.uint64).reshape(-1, 1)
    assert modular.sum_columns(rows).tolist() == [sum(numbers) % P]


def test_totals_of_many_of_the_largest() -> None:
    assert modular.sum_columns(np.full((10_000, 1), P - 1, dtype=np.uint64)).tolist() == [-10_000 % P]


@given(st.integers(1, P - 1))
def test_an_inverse_is_one(a: int) -> None:
    assert modular.inverse(a) * a % P == 1


@given(st.integers(-(2**30) + 1, 2**30 - 1), st.integers(1, 2**30 - 1))
def test_small_fractions_are_found_again(numerator: int, denominator: int) -> None:
    element = numerator * modular.inverse(denominator) % P
    assert modular.as_fraction(element) == Fraction(numerator, denominator)


@given(st.integers(0, P - 1))
def test_a_fraction_stands_for_its_element(element: int) -> None:
    found = modular.as_fraction(element)
    if found is not None:
        assert found.numerator * modular.inverse(found.denominator) % P == element


def test_some_elements_are_no_small_fraction() -> None:
    start = 1_425_089_352_415_399_815
    missing = [number for number in range(start, start + 1000) if modular.as_fraction(number) is None]
    assert 100 < len(missing) < 900
