"""How far the released table's distributions are from the original's, each label spread evenly over what it allows."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.comparison import Comparison

__all__ = ["association_difference", "marginal_distances"]

_LARGEST = 4_000_000


def marginal_distances(comparison: Comparison) -> dict[str, float]:
    """Return the total variation distance between original and released shares of each column."""
    return {name: _distance(comparison, place) for place, name in enumerate(comparison.names)}


def _distance(comparison: Comparison, place: int) -> float:
    released = comparison.label_rows(place) @ comparison.columns[place].shares
    original = comparison.leaf_rows(place)
    return float(np.abs(released / max(released.sum(), 1) - original / original.sum()).sum() / 2)


def association_difference(comparison: Comparison) -> float | None:
    """Return the mean absolute difference of Cramer's V over all pairs of columns; None for fewer than two columns."""
    found = [
        abs(_association(_original(comparison, *pair)) - _association(_released(comparison, *pair)))
        for pair in itertools.combinations(range(len(comparison.columns)), 2)
        if _cells(comparison, *pair) <= _LARGEST
    ]
    return float(np.mean(found)) if found else None


def _cells(comparison: Comparison, first: int, second: int) -> int:
    attributes = comparison.original.attributes
    columns = comparison.columns
    raw = len(attributes[first].leaves) * len(attributes[second].leaves)
    return max(raw, len(columns[first].losses) * len(columns[second].losses))


def _original(comparison: Comparison, first: int, second: int) -> NDArray[np.float64]:
    attributes = comparison.original.attributes
    shape = len(attributes[first].leaves), len(attributes[second].leaves)
    return _counts(comparison.original.codes, comparison.original.weights, (first, second), shape)


def _released(comparison: Comparison, first: int, second: int) -> NDArray[np.float64]:
    left, right = comparison.columns[first], comparison.columns[second]
    shape = len(left.losses), len(right.losses)
    return np.asarray(left.shares.T @ _counts(comparison.codes, comparison.rows, (first, second), shape) @ right.shares)


def _counts(
    codes: NDArray[np.int32], weights: NDArray[np.int64], pair: tuple[int, int], shape: tuple[int, int]
) -> NDArray[np.float64]:
    key = codes[:, pair[0]].astype(np.int64) * shape[1] + codes[:, pair[1]]
    return np.bincount(key, weights=weights, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _association(counts: NDArray[np.float64]) -> float:
    """Return Cramer's V of a table of counts."""
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    counts = counts[rows > 0][:, columns > 0]
    freedom = min(counts.shape) - 1
    total = counts.sum()
    if freedom < 1 or total <= 0:
        return 0.0
    expected = np.outer(rows[rows > 0], columns[columns > 0]) / total
    return float(np.sqrt(max(((counts**2) / expected).sum() - total, 0.0) / (total * freedom)))
