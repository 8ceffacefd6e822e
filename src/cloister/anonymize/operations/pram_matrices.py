"""Transition matrices for post-randomization: exact rationals, rows that sum to one, and what they promise.

``P[i][j]`` is the probability that the value i is released as j. The epsilon of a matrix is the logarithm of the
largest ratio of two probabilities in one column, rounded up; a zero beside a non-zero makes it infinite. The released
shares are ``o = transpose(P) pi``, so they are corrected with the inverse of the *transpose*; ``P`` itself would be
right for symmetric matrices only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cloister.anonymize.operations.cells import Floats
from cloister.core import exact
from cloister.core.validation import check_count, check_epsilon, check_probability
from cloister.errors import ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.mechanisms.randomized_response import randomized_response_epsilon

Matrix: TypeAlias = "tuple[tuple[Fraction, ...], ...]"

_LARGEST_EPSILON = 50
_DIGITS = 10**18
_MOST_EXACT = 100


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


def response_matrix(categories: int, *, epsilon: object) -> Matrix:
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


def two_coin_matrix(*, truth: object, second: object) -> Matrix:
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


def matrix_epsilon(matrix: object) -> Fraction | None:
    """Return the epsilon of a matrix, rounded up, or None when it is infinite.

    >>> matrix_epsilon([["1/2", "1/2"], [0, 1]]) is None
    True
    """
    worst = Fraction(1)
    for column in zip(*check_matrix(matrix), strict=True):
        low, high = min(column), max(column)
        if low == 0 < high:
            return None
        worst = max(worst, high / low if low else Fraction(1))
    return exact.log_bounds(worst)[1]


def invariant_matrix(matrix: object, shares: Sequence[object]) -> Matrix:
    """Return a matrix R with ``transpose(R) pi = pi``, so that released shares need no correction.

    The matrix is followed by its own Bayes inversion under the shares (Gouweleeuw et al. 1998): ``R = P Q`` with
    ``Q[k][l] = P[l][k] pi[l] / sum over m of P[m][k] pi[m]``. Where the shares are those of the data, R depends on the
    data and promises nothing.
    """
    first = check_matrix(matrix)
    prior = [check_probability(share, name="each share") for share in shares]
    if len(prior) != len(first) or sum(prior) != 1 or len(first) > _MOST_EXACT:
        raise ParameterError(
            "The shares do not sum to exactly one, or are not one per category of at most 100.",
            fix="give counts divided by their sum as fractions, for at most 100 categories.",
        )
    back = [_bayes_row([row[k] for row in first], prior, k) for k in range(len(first))]
    columns = list(zip(*back, strict=True))
    return tuple(
        tuple(sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in columns)
        for row in first
    )


def estimate_shares(observed: ArrayLike, *, matrix: object) -> Floats:
    """Return the estimated true shares from released counts or shares: the inverse transpose, then the simplex.

    Raises:
        ParameterError: if the matrix has no inverse, or the counts do not fit it.
    """
    transition = np.array([[float(entry) for entry in row] for row in check_matrix(matrix)])
    counts = np.asarray(observed, dtype=np.float64)
    if counts.shape != (len(transition),) or not (counts >= 0).all() or not counts.sum() > 0:
        raise ParameterError("The counts are not one number >= 0 per category.", fix="count every category.")
    if np.linalg.matrix_rank(transition) < len(transition):
        raise ParameterError(
            "The matrix has no inverse: different shares would look the same.", fix="tell the truth more often."
        )
    return project_to_simplex(np.linalg.solve(transition.T, counts / counts.sum()))


def project_to_simplex(values: ArrayLike) -> Floats:
    """Return the nearest probabilities to some numbers (Euclidean projection; Duchi et al. 2008)."""
    numbers = np.asarray(values, dtype=np.float64)
    falling = np.sort(numbers)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(numbers - excess[np.flatnonzero(falling > excess)[-1]], 0))


def estimate_yes_share(told_yes: object, *, truth: object, second: object) -> Fraction:
    """Return the estimated true share of yes from the told one: ``(o - (1 - p) p') / p``, exactly.

    Any coins may be given, also "heads: say yes" (``second=1``) of surveys that were held; it is not private.

    >>> estimate_yes_share("55/100", truth="1/2", second=1)
    Fraction(1, 10)
    """
    told, yes = check_probability(truth, name="truth"), check_probability(second, name="second")
    if told == 0:
        raise ParameterError("Nobody told the truth, so nothing can be estimated.", fix="give truth above 0.")
    return (check_probability(told_yes, name="told_yes") - (1 - told) * yes) / told


def _odds(epsilon: Fraction) -> Fraction:
    """Return a rational of few digits that is not above exp(epsilon)."""
    if epsilon > _LARGEST_EPSILON:
        raise UnsafeMechanismError(
            "An epsilon this large tells the truth practically always.", fix=f"use epsilon <= {_LARGEST_EPSILON}."
        )
    return Fraction(int(exact.exp_bounds(epsilon)[0] * _DIGITS), _DIGITS)


def _bayes_row(arrivals: Sequence[Fraction], prior: Sequence[Fraction], released: int) -> list[Fraction]:
    joint = [arrival * share for arrival, share in zip(arrivals, prior, strict=True)]
    total = sum(joint, Fraction(0))
    if total == 0:
        return [Fraction(int(place == released)) for place in range(len(prior))]
    return [part / total for part in joint]
