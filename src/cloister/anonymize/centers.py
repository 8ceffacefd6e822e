"""Central values of classes: the mean of numbers, the median of an order, the mode of names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.data.values import text_of

__all__ = ["class_centers"]


def class_centers(
    attribute: Attribute, codes: NDArray[np.int32], counts: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.object_]:
    """Return the center of each class, whose lines lie from its start to the next."""
    classes = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(codes))))
    if attribute.is_numeric:
        return _means(attribute, codes, counts, classes)
    places = _medians(codes, counts, classes) if attribute.is_ordered else _modes(attribute, codes, counts, classes)
    names = np.array([None if leaf is None else text_of(leaf) for leaf in attribute.leaves], dtype=object)
    return np.asarray(names[places])


def _means(attribute: Attribute, codes: Any, counts: Any, classes: Any) -> NDArray[np.object_]:
    numbers = np.array([np.nan if leaf is None else float(leaf) for leaf in attribute.leaves])[codes]
    known = ~np.isnan(numbers)
    size = int(classes.max(initial=-1)) + 1
    totals = np.bincount(classes[known], weights=(numbers * counts)[known], minlength=size)
    rows = np.bincount(classes[known], weights=counts[known], minlength=size)
    means = np.full(size, None, dtype=object)
    means[rows > 0] = totals[rows > 0] / rows[rows > 0]
    return means


def _medians(codes: Any, counts: Any, classes: Any) -> NDArray[np.int64]:
    """Return the lower median code of each class."""
    order = np.lexsort((codes, classes))
    ordered, weights, owner = codes[order], counts[order], classes[order]
    reached = np.cumsum(weights)
    size = int(classes.max(initial=-1)) + 1
    totals = np.bincount(owner, weights=weights, minlength=size).astype(np.int64)
    before = np.cumsum(totals) - totals
    return np.asarray(ordered[np.searchsorted(reached, before + (totals + 1) // 2)])


def _modes(attribute: Attribute, codes: Any, counts: Any, classes: Any) -> NDArray[np.int64]:
    """Return the most frequent code of each class, the smallest of equals."""
    size = len(attribute.leaves)
    keys, inverse = np.unique(classes * size + codes, return_inverse=True)
    totals = np.bincount(inverse.ravel(), weights=counts)
    order = np.lexsort((keys % size, -totals, keys // size))
    first = np.flatnonzero(np.diff(keys[order] // size, prepend=-1))
    return np.asarray(keys[order][first] % size)
