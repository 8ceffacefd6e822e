"""Transition matrices that leave the shares of a column as they are, made from those shares."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cloister.core.validation import check_probability
from cloister.errors import ParameterError
from cloister.mechanisms.transitions import Matrix, check_matrix

_MOST_EXACT = 100


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


def _bayes_row(arrivals: Sequence[Fraction], prior: Sequence[Fraction], released: int) -> list[Fraction]:
    joint = [arrival * share for arrival, share in zip(arrivals, prior, strict=True)]
    total = sum(joint, Fraction(0))
    if total == 0:
        return [Fraction(int(place == released)) for place in range(len(prior))]
    return [part / total for part in joint]
