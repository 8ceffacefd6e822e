"""Exact linear algebra in whole numbers: which unit vectors lie in the span of some rows.

Elimination without fractions (after Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian
elimination", 1968): every number on the way is a minor of the matrix, so that each division has no remainder and
nothing is rounded. It takes time with the cube of the matrix, in numbers that grow: seconds for two hundred rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["reduced", "unit_vectors"]


def reduced(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the reduced rows of a matrix of whole numbers, each up to a factor; as many as its rank.

    >>> reduced(np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]])).tolist()
    [[1, 1, 0], [0, 0, 1]]
    """
    rows: NDArray[Any] = np.array([list(map(int, row)) for row in matrix], dtype=object).reshape(matrix.shape)
    before, rank = 1, 0
    for column in range(matrix.shape[1]):
        usable = np.flatnonzero(rows[rank:, column])
        if not len(usable):
            continue
        chosen = rank + usable[0]
        rows[[rank, chosen]] = rows[[chosen, rank]]
        pivot, others = rows[rank, column], np.arange(len(rows)) != rank
        rows[others] = (rows[others] * pivot - rows[others, column][:, None] * rows[rank]) // before
        before, rank = pivot, rank + 1
    return rows[:rank]


def unit_vectors(matrix: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return the columns whose unit vector is a combination of the rows, and the rank.

    >>> columns, rank = unit_vectors(np.array([[1, 1, 0], [1, 1, 1]]))
    >>> columns.tolist(), rank
    ([2], 2)
    """
    rows = reduced(matrix)
    alone = rows[(rows != 0).sum(axis=1) == 1] if len(rows) else rows
    return np.sort(np.flatnonzero((alone != 0).any(axis=0))).astype(np.int64), len(rows)
