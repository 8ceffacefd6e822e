"""Released cells as numbers that a learner can use, so that a model trained on labels works on raw values.

A label of an unordered column becomes the share that each node of the hierarchy has under it, coarse levels first; a
raw value is the same with all the weight in one place. A node is left out where no label lies wholly inside it: a model
could not learn what a raw value there means. A label of an ordered column becomes its middle and its two ends; a raw
value has all three at one place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.labels import ReadLabels

__all__ = ["encode", "encode_raw"]

_MOST_NODES = 64
_SURE = 1 - 1e-9


def encode(column: ReadLabels) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the features of each label and of each raw value of a column, in one scale."""
    attribute = column.attribute
    if attribute.is_ordered:
        return _on_scale(attribute, column.member, column.numbers), encode_raw(attribute)
    nodes = encode_raw(attribute)
    shown = column.shares @ nodes
    sure = np.asarray((shown >= _SURE).any(axis=0))
    sure[0] |= not sure.any()  # a column that says nothing still has a feature
    return shown[:, sure], nodes[:, sure]


def encode_raw(attribute: Attribute) -> NDArray[np.float64]:
    """Return the features of each raw value for a model that learns from raw values."""
    size = len(attribute.leaves)
    if attribute.is_ordered:
        return _on_scale(attribute, np.eye(size, dtype=bool), np.full(size, np.nan))
    return np.hstack([np.eye(attribute.size(level))[attribute.ancestors[level]] for level in _levels(attribute)])


def _levels(attribute: Attribute) -> list[int]:
    """Return the levels with few enough nodes, coarse ones first; the one below the root at the least."""
    below = range(max(attribute.height, 1))
    few = [level for level in below if attribute.size(level) <= _MOST_NODES]
    return (few or [below[-1]])[::-1]


def _on_scale(attribute: Attribute, member: NDArray[np.bool_], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the middle and the ends of each label; a central value that is no raw value is its own middle."""
    places = np.nan_to_num(attribute.positions if attribute.positions is not None else np.zeros(member.shape[1]))
    middle = member @ places / member.sum(axis=1)
    exact = np.isfinite(numbers) & (member.sum(axis=1) == 1) & ~attribute.has_hierarchy
    low = np.where(member, places, np.inf).min(axis=1)
    high = np.where(member, places, -np.inf).max(axis=1)
    return np.column_stack([np.where(exact, numbers, middle), low, high])
