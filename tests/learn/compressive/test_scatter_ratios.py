from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from cloister.errors import ParameterError
from cloister.learn.compressive._scatter_ratios import solve_eigenproblem, with_fixed_signs
from tests.learn.compressive import worked


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [
        ((4, 0), (5, 5), (0.8, 0)),
        ((4, 0), (1, 5), (4, 0)),
        ((5.5, 5.5), (1, 5), (5.5, 1.1)),
        ((4.5, 4.5), (1, 5), (4.5, 0.9)),
        ((4, 0), (5, 9), (0.8, 0)),
    ],
    ids=["DCA", "LDA and MDR", "DCA with rho' above 0", "DCA with rho' below 0", "RUCA"],
)
def test_the_eigenvalues_of_the_worked_example(
    numerator: tuple[float, float], denominator: tuple[float, float], expected: tuple[float, float]
) -> None:
    values, vectors = solve_eigenproblem(np.diag(np.array(numerator, float)), np.diag(np.array(denominator, float)))
    assert values == pytest.approx(expected, abs=1e-12)
    assert vectors / np.linalg.norm(vectors, axis=0) == pytest.approx(np.eye(2), abs=1e-12)


def test_eigenvectors_solve_the_problem_and_are_orthonormal_for_the_denominator() -> None:
    one, other = worked.normal(30, 6), worked.normal(30, 6)
    numerator, denominator = one.T @ one, other.T @ other
    values, vectors = solve_eigenproblem(numerator, denominator)
    assert numerator @ vectors == pytest.approx(denominator @ vectors * values, abs=1e-8)
    assert vectors.T @ denominator @ vectors == pytest.approx(np.eye(6), abs=1e-9)
    assert values == pytest.approx(linalg.eigh(numerator, denominator, eigvals_only=True)[::-1], rel=1e-9)


def test_the_largest_entry_of_each_vector_is_positive() -> None:
    turned = with_fixed_signs(np.array([[1.0, -2.0, 0.0], [-3.0, 2.0, 0.0]]))
    assert turned.tolist() == [[-1, 2, 0], [3, -2, 0]]


def test_equal_eigenvalues_have_one_basis_whatever_the_library_returns() -> None:
    turn, _ = np.linalg.qr(worked.normal(5, 5))
    spread = turn @ np.diag([3.0, 1.0, 1.0, 1.0, 0.5]) @ turn.T
    _, once = solve_eigenproblem(spread, np.eye(5))
    _, again = solve_eigenproblem(spread + 1e-13 * worked.normal(5, 5), np.eye(5))
    assert once == pytest.approx(again, abs=1e-6)
    assert np.abs(spread @ once - once * [3, 1, 1, 1, 0.5]).max() < 1e-9


def test_ties_go_by_the_column() -> None:
    values, vectors = solve_eigenproblem(np.eye(3), np.eye(3), count=2)
    assert values.tolist() == [1, 1]
    assert vectors == pytest.approx(np.eye(3)[:, :2])


@pytest.mark.parametrize("denominator", [np.zeros((2, 2)), np.diag([1.0, -1.0]), np.diag([1.0, 1e-300])])
def test_a_denominator_that_is_not_positive_definite_is_refused(denominator: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="larger rho"):
        solve_eigenproblem(np.eye(2), denominator)
