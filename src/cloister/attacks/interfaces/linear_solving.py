"""Solving for secret values from noisy sums over known sets: by least squares, or by a linear program.

Both start from the same system: one row for each answered question, one column for each person, and numbers that are
off by an unknown error. Least squares is fast and forgives noise of any shape. The linear program keeps every value
within its public bounds and minimizes the total of the errors, so that it needs fewer answers than there are people,
and forgives some answers that are badly wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from cloister.attacks.confidence import Floats

__all__ = ["METHODS", "least_squares", "linear_program"]


def least_squares(members: NDArray[np.bool_], answers: Floats, *, bounds: tuple[float, float]) -> Floats:
    """Return the values whose sums are nearest to the answers; of several, those nearest to the middle of the bounds.

    >>> sets = np.array([[True, True, False], [False, True, True], [True, False, True]])
    >>> least_squares(sets, np.array([1.0, 1.0, 2.0]), bounds=(0, 1)).round(3).astype(int).tolist()
    [1, 0, 1]
    """
    middle = sum(bounds) / 2
    matrix = members.astype(np.float64)
    deviations, *_ = np.linalg.lstsq(matrix, answers - middle * matrix.sum(axis=1), rcond=None)
    return middle + np.asarray(deviations, dtype=np.float64)


def linear_program(members: NDArray[np.bool_], answers: Floats, *, bounds: tuple[float, float]) -> Floats:
    """Return values within bounds that minimize the sum of absolute errors; NaN should the solver fail.

    >>> sets = np.array([[True, True, False], [False, True, True]])
    >>> linear_program(sets, np.array([2.0, 1.0]), bounds=(0, 1)).round(9).tolist()
    [1.0, 1.0, 0.0]
    """
    asked, people = members.shape
    slack = sparse.eye(asked, format="csr")
    matrix: Any = sparse.hstack([sparse.csr_matrix(members.astype(np.float64)), slack, -slack], format="csr")
    found = optimize.linprog(
        np.concatenate([np.zeros(people), np.ones(2 * asked)]),
        A_eq=matrix,
        b_eq=answers,
        bounds=[bounds] * people + [(0, None)] * (2 * asked),
        method="highs",
    )
    return np.full(people, np.nan) if found.x is None else np.asarray(found.x[:people], dtype=np.float64)


METHODS = {"least_squares": least_squares, "linear_program": linear_program}
"""The ways to solve, by name."""
