"""Scatter matrices: how rows spread in all, inside of classes, and between classes.

For rows x with mean m, and classes l of n_l rows with mean m_l: the total scatter is the sum of (x-m)(x-m)', the
within scatter the sum of (x-m_l)(x-m_l)', and the between scatter the sum over classes of n_l (m_l-m)(m_l-m)'. The
total is the sum of the other two, and the between scatter has rank at most (number of classes - 1). Some texts
print the between scatter with the term for the overall mean inside of the sum over classes; that matrix is not positive
semidefinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.learn.rows import Floats

__all__ = ["association", "between_scatter", "class_means", "total_scatter", "within_scatter"]

Codes = NDArray[np.int64]


def total_scatter(X: Floats) -> Floats:
    """Return the scatter of rows about their mean.

    >>> total_scatter(np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    centered = X - X.mean(axis=0)
    return np.asarray(centered.T @ centered)


def within_scatter(X: Floats, codes: Codes) -> Floats:
    """Return the scatter of rows about the means of their classes, the classes being 0, 1, ..."""
    means, _ = class_means(X, codes)
    centered = X - means[codes]
    return np.asarray(centered.T @ centered)


def between_scatter(X: Floats, codes: Codes) -> Floats:
    """Return the scatter of class means about the mean, each class counting as often as it has rows."""
    means, counts = class_means(X, codes)
    spread = means - X.mean(axis=0)
    return np.asarray((counts[:, None] * spread).T @ spread)


def class_means(X: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """Return the mean of each class, and how many rows it has."""
    counts = np.bincount(codes).astype(np.float64)
    indicators = (codes[:, None] == np.arange(len(counts))).astype(np.float64)
    return np.asarray(indicators.T @ X / counts[:, None]), counts


def association(one: Codes, other: Codes) -> float:
    """Return Cramér's V of two labels of the same rows: 0 for independent ones, 1 if one determines the other.

    >>> association(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    0.0
    """
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1.0)
    expected: Any = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    chi_squared = ((table - expected) ** 2 / expected).sum()
    return float(np.sqrt(chi_squared / (table.sum() * (min(table.shape) - 1))))
