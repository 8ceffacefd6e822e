"""Transition matrices: exact rationals, rows that sum to one, and what they promise.

``P[i][j]`` is the probability that the value i is reported as j. The epsilon of a matrix is the logarithm of the
largest ratio of two probabilities in one column, rounded up; a zero beside a non-zero makes it infinite.

Privacy: claim epsilon-DP for one value under the replace relation, whoever draws from the matrix, a curator or the
respondent's own device (local differential privacy); every ratio within a column is at most exp(epsilon), in exact
rationals, for draws that follow the matrix exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.validation import check_count, check_epsilon, check_probability
from cloister.errors import ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.mechanisms.randomized_response import randomized_response_epsilon

__all__ = [
    "Matrix",
    "best_truth",
    "check_matrix",
    "feasible",
    "largest_ratio",
    "matrix_epsilon",
    "ordinal_matrix",
    "response_matrix",
    "two_by_two_matrix",
    "two_coin_matrix",
]

Matrix: TypeAlias = "tuple[tuple[Fraction, ...], ...]"

_LARGEST_EPSILON = 50
_DIGITS = 10**18


def check_matrix(matrix: object) -> Matrix:
    """Return a square matrix of exact probabilities whose rows sum to one.

    Raises:
        ParameterError: if it is not that.
    """
    if isinstance(matrix, np.ndarray):
        matrix = matrix.tolist()
    if not isinstance(matrix, Sequence) or not all(
        isinstance(row, Sequence) and len(row) == len(matrix) for row in matrix
    ):
        raise ParameterTypeError("The matrix is not square.", fix="give one row of probabilities per category.")
    rows = tuple(tuple(check_probability(entry, name="each entry") for entry in row) for row in matrix)
    if len(rows) < 2 or any(sum(row) != 1 for row in rows):
        raise ParameterError(
            "The rows of the matrix do not sum to exactly one, or there are fewer than two.",
            fix='write fractions such as "1/3", or decimals that sum to 1; rows are the true values.',
        )
    return rows


def largest_ratio(matrix: object) -> Fraction | None:
    """Return the largest ratio of two probabilities in one column, exactly, or None when it is infinite.

    >>> largest_ratio([["0.8", "0.2"], ["0.4", "0.6"]])
    Fraction(3, 1)
    """
    worst = Fraction(1)
    for column in zip(*check_matrix(matrix), strict=True):
        low, high = min(column), max(column)
        # A report that one value never gives and another does proves that it was not the first.
        if low == 0 < high:
            return None
        worst = max(worst, high / low if low else Fraction(1))
    return worst


def matrix_epsilon(matrix: object) -> Fraction | None:
    """Return the epsilon of a matrix, rounded up, or None when it is infinite.

    >>> matrix_epsilon([["1/2", "1/2"], [0, 1]]) is None
    True
    """
    ratio = largest_ratio(matrix)
    return None if ratio is None else exact.log_bounds(ratio)[1]


def response_matrix(categories: int, *, epsilon: Number) -> Matrix:
    """Return the matrix that tells the truth as often as epsilon allows (k-ary randomized response).

    Diagonal ``exp(epsilon) / (c - 1 + exp(epsilon))``, elsewhere ``1 / (c - 1 + exp(epsilon))``, rounded
    towards privacy.

    >>> (truth, lie), _ = response_matrix(2, epsilon=1)
    >>> round(float(truth), 6), round(float(lie), 6)
    (0.731059, 0.268941)
    """
    count = check_count(categories, name="categories", at_least=2)
    odds = _odds(check_epsilon(epsilon, allow_zero=True))
    lie = 1 / (count - 1 + odds)
    return tuple(tuple(odds * lie if row == column else lie for column in range(count)) for row in range(count))


def ordinal_matrix(categories: int, *, epsilon: Number) -> Matrix:
    """Return a matrix for ordered values: a lie is more likely to be a neighbor of the truth than any other value.

    Up to a common factor, values two or more steps away weigh 1 and neighbors ``1 + t`` with ``t = (e - 1) / (h + 3)``,
    ``e = exp(epsilon)`` and ``h = exp(epsilon / 2)``; the truth weighs e at both ends and ``e - t`` between them. So
    weights fall about geometrically (e, h, 1) before they level off, the largest ratio in a column is e, and the
    matrix is symmetric. Its eigenvalues but the first are at least ``h / (h + 3)`` of those of `response_matrix`, up to
    the common factor, so that shares can be recovered at every epsilon; with ``t = h - 1`` they could not.

    Compared with `response_matrix` of the same epsilon, a lie is nearer to the truth on average, but there are more
    lies: shares are estimated less precisely, and only with many categories and a small epsilon is the mean distance
    between report and truth the smaller one.

    >>> for row in ordinal_matrix(3, epsilon=1):
    ...     print(*(f"{float(entry):.3f}" for entry in row))
    0.534 0.269 0.197
    0.269 0.462 0.269
    0.197 0.269 0.534
    """
    count = check_count(categories, name="categories", at_least=2)
    if count == 2:
        return response_matrix(count, epsilon=epsilon)
    odds = _odds(check_epsilon(epsilon, allow_zero=True))
    # Any root will do: it shapes the weights, while the largest ratio is that of the odds alone.
    root = Fraction(math.isqrt(int(odds * _DIGITS)), math.isqrt(_DIGITS))
    extra = (odds - 1) / (root + 3)
    # An end has one neighbor and nothing taken off, an inner value two and once the extra: all rows weigh the same.
    total = odds + extra + count - 1
    far, near, end, inside = (weight / total for weight in (Fraction(1), 1 + extra, odds, odds - extra))

    def entry(row: int, column: int) -> Fraction:
        if row != column:
            return near if abs(row - column) == 1 else far
        return end if row in {0, count - 1} else inside

    return tuple(tuple(entry(row, column) for column in range(count)) for row in range(count))


def two_coin_matrix(*, truth: Number, second: Number) -> Matrix:
    """Return the matrix of (no, yes) for two coins: with probability ``truth`` the truth, else yes with ``second``.

    Raises:
        UnsafeMechanismError: if an answer would be certain proof, such as "heads: say yes", whose epsilon is infinite.
    """
    told, yes = check_probability(truth, name="truth"), check_probability(second, name="second")
    if randomized_response_epsilon(told, yes) is None:
        raise UnsafeMechanismError(
            "One of the answers would prove the truth: epsilon is infinite.",
            fix="use truth below 1 and second strictly between 0 and 1, such as truth=0.5, second=0.5.",
        )
    lie_yes, lie_no = (1 - told) * yes, (1 - told) * (1 - yes)
    return ((told + lie_no, lie_yes), (lie_no, told + lie_yes))


def two_by_two_matrix(*, p00: object, p11: object) -> Matrix:
    """Return the matrix that tells 0 truly with probability ``p00`` and 1 truly with ``p11``.

    >>> matrix_epsilon(two_by_two_matrix(p00="1/2", p11=1)) is None
    True
    """
    zero, one = check_probability(p00, name="p00"), check_probability(p11, name="p11")
    return ((zero, 1 - zero), (1 - one, one))


def feasible(p00: object, p11: object, *, epsilon: Number) -> bool:
    """Return whether a two-by-two matrix keeps epsilon, decided exactly.

    ``p00 <= (1-p11) e``, ``p11 <= (1-p00) e``, ``1-p00 <= p11 e`` and ``1-p11 <= p00 e`` with ``e = exp(epsilon)``.

    >>> feasible("3/4", "3/4", epsilon=1.0986), feasible("3/4", "3/4", epsilon=1.0987)
    (False, True)
    """
    loss = check_epsilon(epsilon, allow_zero=True)
    ratio = largest_ratio(two_by_two_matrix(p00=p00, p11=p11))
    return ratio is not None and exact.is_at_most_exp(ratio, loss)


def best_truth(*, epsilon: Number) -> Fraction:
    """Return ``exp(epsilon) / (1 + exp(epsilon))``, rounded down: the corner of what is `feasible`.

    At ``p00 = p11 =`` this neither can grow unless the other falls (the symmetric Pareto optimum).

    >>> round(float(best_truth(epsilon=1)), 6)
    0.731059
    """
    return response_matrix(2, epsilon=epsilon)[0][0]


def _odds(epsilon: Fraction) -> Fraction:
    """Return a rational of few digits that is not above exp(epsilon)."""
    if epsilon > _LARGEST_EPSILON:
        raise UnsafeMechanismError(
            "An epsilon this large tells the truth practically always.", fix=f"use epsilon <= {_LARGEST_EPSILON}."
        )
    return Fraction(int(exact.exp_bounds(epsilon)[0] * _DIGITS), _DIGITS)
