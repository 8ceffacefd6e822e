"""A filter against poisoned rows: keep those whose neighbors agree with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.models.reading import as_matrix, need_learning
from cloister.core import validation
from cloister.errors import ParameterError

__all__ = ["agreeing_rows"]


def agreeing_rows(features: Any, labels: Any, *, neighbors: int = 5) -> NDArray[np.bool_]:
    """Return which rows to keep: those for which at least half of the nearest neighbors have the same label.

    Flipped labels and rows that were placed inside of another class stand out. Rows that are placed where their label
    is common do not, and honest rows at the border of a class may be lost.

    Args:
        features: rows of numbers, in comparable units.
        labels: one for each row.
        neighbors: how many are asked.

    >>> rows, labels = [[0.0], [0.1], [0.2], [0.15], [5.0], [5.1], [5.2]], [0, 0, 0, 1, 1, 1, 1]
    >>> agreeing_rows(rows, labels, neighbors=2).tolist()
    [True, True, True, False, True, True, True]
    """
    need_learning("The filter of poisoned rows")
    from sklearn.neighbors import NearestNeighbors

    rows, found = as_matrix(features, what="features"), np.asarray(labels)
    asked = validation.check_count(neighbors, name="neighbors", at_least=1)
    if found.shape != (len(rows),):
        raise ParameterError("The labels are not one for each row.", fix="give as many labels as rows.")
    if len(rows) <= asked:
        raise ParameterError("There are not more rows than neighbors.", fix=f"use neighbors={max(1, len(rows) - 1)}.")
    near = NearestNeighbors(n_neighbors=asked).fit(rows).kneighbors(return_distance=False)
    return np.asarray((found[near] == found[:, None]).mean(axis=1) >= 0.5)
