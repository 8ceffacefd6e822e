"""What a log-linear model expects of each class, from the shares of single values and of pairs.

The model is the tree of the strongest pairs (Chow and Liu 1968), the simplest log-linear model with interactions. A
class does not count towards its own expectation: otherwise classes that were drawn by chance would seem likely.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.risk.population.intensities import Array

_LARGEST_PAIR = 2**22
_HALF = 0.5
_SHRINKAGE = 2.0


def expected_logarithms(codes: NDArray[np.integer], counts: NDArray[np.int64]) -> Array:
    """Return the logarithm of each class's expected share.

    Args:
        codes: the value codes of each class, one column per attribute, from 0.
        counts: how many rows each class has.
    """
    total = float(counts.sum())
    columns = [_compact(codes[:, place]) for place in range(codes.shape[1])]
    sums = [np.bincount(column, weights=counts)[column].astype(np.float64) for column in columns]
    others = [np.maximum(own - counts, 0) + _HALF for own in sums]
    result = np.zeros(len(counts))
    for own in others:
        result += np.log(own / total)
    for first, second in _strongest_tree(columns, sums, counts):
        together = np.maximum(_pair_sums(columns[first], columns[second], counts) - counts, 0)
        independent = others[first] * others[second] / total
        result += np.log((together + _SHRINKAGE) / (independent + _SHRINKAGE))
    return result


def _strongest_tree(
    columns: list[NDArray[np.int64]], sums: list[Array], counts: NDArray[np.int64]
) -> list[tuple[int, int]]:
    """Return the pairs of the tree with the largest mutual information, those without any left out."""
    pairs = list(itertools.combinations(range(len(columns)), 2))
    strength = {(a, b): _information(columns[a], columns[b], sums[a], sums[b], counts) for a, b in pairs}
    group = list(range(len(columns)))
    chosen = []
    for first, second in sorted(pairs, key=strength.__getitem__, reverse=True):
        if strength[first, second] > 0 and group[first] != group[second]:
            chosen.append((first, second))
            old, new = group[first], group[second]
            group = [new if item == old else item for item in group]
    return chosen


def _information(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    first_sums: Array,
    second_sums: Array,
    counts: NDArray[np.int64],
) -> float:
    """Return the mutual information of two columns, less what chance alone would show (Miller 1955)."""
    total = float(counts.sum())
    together = _pair_sums(first, second, counts)
    observed = float((counts * np.log(together * total / (first_sums * second_sums))).sum()) / total
    freedom = min(float(first.max()) * float(second.max()), float(len(counts)))
    return observed - freedom / (2 * total)


def _pair_sums(first: NDArray[np.int64], second: NDArray[np.int64], counts: NDArray[np.int64]) -> Array:
    width = int(second.max()) + 1
    key = first * width + second
    if (int(first.max()) + 1) * width > _LARGEST_PAIR:
        key = _compact(key)
    return np.asarray(np.bincount(key, weights=counts)[key])


def _compact(column: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return codes without gaps where gaps would cost memory."""
    column = column.astype(np.int64) - int(column.min())
    if int(column.max()) < max(2 * len(column), 2**16):
        return column
    return np.unique(column, return_inverse=True)[1].astype(np.int64)
