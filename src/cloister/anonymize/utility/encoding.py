"""Released cells as numbers that a learner can use, so that a model trained on labels works on raw values.

A label of an unordered column becomes the share that each raw value (or each node of the lowest level with few enough
nodes) has under it; a raw value is the same with all the weight in one place. A label of an ordered column becomes its
middle and its two ends; a raw value has all three at one place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.labels import ReadLabels

__all__ = ["encode_labels", "encode_leaves"]

_MOST_SHARES = 64


def encode_labels(column: ReadLabels) -> NDArray[np.float64]:
    """Return the features of each label of a column (rows)."""
    return _encoded(column.attribute, column.member, column.numbers)


def encode_leaves(column: ReadLabels) -> NDArray[np.float64]:
    """Return the features of each raw value of a column (rows), in the same scale as those of its labels."""
    size = len(column.attribute.leaves)
    return _encoded(column.attribute, np.eye(size, dtype=bool), np.full(size, np.nan))


def _encoded(attribute: Attribute, member: NDArray[np.bool_], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    shares = member / member.sum(axis=1, keepdims=True)
    if attribute.is_ordered:
        return _on_scale(attribute, member, shares, numbers)
    level = _level(attribute)
    if level == 0:
        return np.asarray(shares)
    nodes = np.eye(attribute.size(level))[attribute.ancestors[level]]
    return np.asarray(shares @ nodes)


def _level(attribute: Attribute) -> int:
    """Return the lowest level with few enough nodes, the one below the root at the latest."""
    levels = range(max(attribute.height, 1))
    return next((level for level in levels if attribute.size(level) <= _MOST_SHARES), levels[-1])


def _on_scale(
    attribute: Attribute, member: NDArray[np.bool_], shares: NDArray[np.float64], numbers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the middle and the ends of each label; a central value that is no raw value is its own middle."""
    places = np.nan_to_num(attribute.positions if attribute.positions is not None else np.zeros(member.shape[1]))
    middle = shares @ places
    exact = np.isfinite(numbers) & (member.sum(axis=1) == 1) & ~attribute.has_hierarchy
    middle = np.where(exact, numbers, middle)
    low = np.where(member, places, np.inf).min(axis=1)
    high = np.where(member, places, -np.inf).max(axis=1)
    return np.column_stack([middle, low, high])
