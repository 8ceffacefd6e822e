from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.attacks.auditing.exact_check import check_exactly
from cloister.core import exact
from cloister.errors import ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.mechanisms import BinaryRandomizedResponse
from cloister.mechanisms.transitions import (
    best_truth,
    check_matrix,
    feasible,
    largest_ratio,
    matrix_epsilon,
    ordinal_matrix,
    response_matrix,
    two_by_two_matrix,
    two_coin_matrix,
)
from tests.mechanisms.transitions.strategies import MATRIX, matrices

inner = st.fractions(min_value="1/100", max_value="99/100", max_denominator=100)
epsilons = st.fractions(0, 20, max_denominator=100)


@given(st.integers(2, 8), epsilons)
def test_the_best_matrix_keeps_its_epsilon_and_nearly_uses_it(categories: int, epsilon: Fraction) -> None:
    matrix = response_matrix(categories, epsilon=epsilon)
    spent = matrix_epsilon(matrix)
    assert spent is not None
    assert all(sum(row) == 1 for row in matrix)
    law = lambda true: dict(enumerate(matrix[true]))  # noqa: E731
    check_exactly(law, [(0, 1), (1, 0)], epsilon=epsilon).verify()
    assert float(epsilon) - 1e-12 <= float(spent)
    diagonal = math.exp(epsilon) / (categories - 1 + math.exp(epsilon))
    assert float(matrix[0][0]) == pytest.approx(diagonal, rel=1e-12)


@given(st.integers(2, 9), st.fractions(0, 50, max_denominator=10**6))
def test_the_ordinal_matrix_keeps_its_epsilon_and_uses_it(categories: int, epsilon: Fraction) -> None:
    ratio = largest_ratio(ordinal_matrix(categories, epsilon=epsilon))
    assert ratio is not None
    assert exact.is_at_most_exp(ratio, epsilon)
    assert exact.log_bounds(ratio)[0] >= epsilon - Fraction(1, 10**9)


@given(st.integers(3, 9), st.fractions("1/10", 20, max_denominator=100))
def test_neighbors_are_more_likely_than_others_and_less_than_the_truth(categories: int, epsilon: Fraction) -> None:
    matrix = ordinal_matrix(categories, epsilon=epsilon)
    assert check_matrix(matrix) == matrix == tuple(zip(*matrix, strict=True))
    for true, row in enumerate(matrix):
        near = {row[place] for place in (true - 1, true + 1) if 0 <= place < categories}
        far = {row[place] for place in range(categories) if abs(place - true) > 1}
        assert len(near) == 1
        assert len(far) <= 1
        assert row[true] > max(near) > max(far, default=Fraction(0))


@given(st.integers(3, 12), st.fractions("1/10", 10, max_denominator=100))
def test_shares_can_be_recovered_from_ordinal_reports_at_every_epsilon(categories: int, epsilon: Fraction) -> None:
    root = math.exp(epsilon / 2)
    extra = (root**2 - 1) / (root + 3)
    spectrum = np.linalg.eigvalsh(np.array(ordinal_matrix(categories, epsilon=epsilon), dtype=float))
    assert spectrum[0] * (root**2 + extra + categories - 1) >= (root**2 - 1) * root / (root + 3) * (1 - 1e-9)


def test_a_steeper_ordinal_matrix_could_lose_the_shares() -> None:
    """With neighbors at exp(epsilon / 2) themselves, four categories at epsilon = ln 2 have no inverse."""
    root, odds = math.sqrt(2), 2.0
    weights = np.array(
        [
            [odds, root, 1, 1],
            [root, odds + 1 - root, root, 1],
            [1, root, odds + 1 - root, root],
            [1, 1, root, odds],
        ]
    )
    assert np.ptp(weights.sum(axis=1)) == pytest.approx(0)
    assert np.linalg.det(weights) == pytest.approx(0)


@given(inner, inner, st.fractions("1/100", 5, max_denominator=100))
def test_two_by_two_is_feasible_exactly_when_the_four_inequalities_hold(p00: Any, p11: Any, epsilon: Fraction) -> None:
    low, high = exact.exp_bounds(epsilon)
    pairs = [(p00, 1 - p11), (p11, 1 - p00), (1 - p00, p11), (1 - p11, p00)]
    spent = matrix_epsilon(two_by_two_matrix(p00=p00, p11=p11))
    assert spent is not None
    if all(left <= right * low for left, right in pairs):
        assert feasible(p00, p11, epsilon=epsilon)
        assert spent <= epsilon + Fraction(1, 10**30)
    if any(left > right * high for left, right in pairs):
        assert not feasible(p00, p11, epsilon=epsilon)
        assert spent > epsilon


def test_what_proves_a_value_is_never_feasible() -> None:
    assert not feasible("1/2", 1, epsilon=50)
    assert feasible("1/3", "2/3", epsilon=0)
    assert not feasible("1/2", "501/1000", epsilon=0)


@given(st.fractions("1/100", 20, max_denominator=100), st.fractions(0, "1/1000", max_denominator=10**6).filter(bool))
def test_the_best_truth_is_a_corner(epsilon: Fraction, more: Fraction) -> None:
    corner = best_truth(epsilon=epsilon)
    assert float(corner) == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)), rel=1e-12)
    assert feasible(corner, corner, epsilon=epsilon)
    larger = min(corner + more, Fraction(1))
    assert not feasible(larger, corner, epsilon=epsilon)
    assert not feasible(corner, larger, epsilon=epsilon)
    assert not feasible(larger, larger, epsilon=epsilon)


def test_two_by_two_has_the_true_values_in_rows() -> None:
    expected = ((Fraction(9, 10), Fraction(1, 10)), (Fraction(2, 5), Fraction(3, 5)))
    assert two_by_two_matrix(p00=0.9, p11=0.6) == expected


@given(matrices(least=0))
def test_a_zero_beside_a_nonzero_is_infinite(matrix: Any) -> None:
    columns = list(zip(*matrix, strict=True))
    is_infinite = any(min(column) == 0 < max(column) for column in columns)
    assert (matrix_epsilon(matrix) is None) == (largest_ratio(matrix) is None) == is_infinite


def test_a_category_that_is_never_released_costs_nothing() -> None:
    assert matrix_epsilon([[1, 0], [1, 0]]) == 0


def test_arrays_are_matrices() -> None:
    assert check_matrix(np.array([[0.5, 0.5], [0.25, 0.75]])) == (
        (Fraction(1, 2), Fraction(1, 2)),
        (Fraction(1, 4), Fraction(3, 4)),
    )


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        ([[1, 0]], ParameterTypeError),
        ([1, 0], ParameterTypeError),
        (None, ParameterTypeError),
        ([[1]], ParameterError),
        ([[0.6, 0.6], [0.5, 0.5]], ParameterError),
        ([[-1, 2], [0.5, 0.5]], ParameterError),
        ([[math.nan, 1], [0.5, 0.5]], ParameterError),
    ],
)
def test_what_is_no_matrix_is_refused(matrix: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="give|write"):
        check_matrix(matrix)


@pytest.mark.parametrize("make", [response_matrix, ordinal_matrix])
def test_matrices_need_two_categories_and_an_epsilon_that_protects(make: Any) -> None:
    with pytest.raises(ParameterError, match="categories=2"):
        make(1, epsilon=1)
    for categories in (2, 3):
        with pytest.raises(UnsafeMechanismError, match="epsilon <= 50"):
            make(categories, epsilon=51)
        with pytest.raises(ParameterError, match="smaller is more private"):
            make(categories, epsilon=-1)


@pytest.mark.parametrize("second", [0, 1])
def test_the_coin_that_forces_an_answer_is_refused(second: int) -> None:
    with pytest.raises(UnsafeMechanismError, match="strictly between 0 and 1"):
        two_coin_matrix(truth=0.5, second=second)


@given(inner, inner)
def test_the_matrix_of_two_coins_agrees_with_the_mechanism(truth: Fraction, second: Fraction) -> None:
    law = BinaryRandomizedResponse(truth=truth, second=second)
    matrix = two_coin_matrix(truth=truth, second=second)
    assert {(told, true): matrix[true][told] for told in (0, 1) for true in (0, 1)} == law.transition()
    assert matrix_epsilon(matrix) == law.epsilon


def test_a_checked_matrix_stays_as_it_is() -> None:
    assert check_matrix(MATRIX) == MATRIX
