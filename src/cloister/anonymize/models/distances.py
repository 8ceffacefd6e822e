"""Distances between the sensitive values of each class and those of the whole table (Li, Li, Venkatasubramanian 2007).

Ground distances lie in [0, 1]. Whole numbers are compared exactly where the distance allows it: the functions that end
in ``_scaled`` return numerators over ``size of the class * size of the table * scale``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.cells import Sensitive
from cloister.anonymize.models.classes import Histogram

Counts: TypeAlias = NDArray[np.int64]
_BLOCK = 1 << 22


def equal(histogram: Histogram, sensitive: Sensitive) -> NDArray[np.float64]:
    """Return the variational distance: half the sum of absolute differences of shares."""
    del sensitive
    total = histogram.overall.sum()
    excess = histogram.counts * total - histogram.overall[histogram.values] * histogram.sizes[histogram.classes]
    return histogram.add(np.maximum(excess, 0)) / (histogram.sizes * float(total))


def kullback_leibler(histogram: Histogram, sensitive: Sensitive) -> NDArray[np.float64]:
    """Return the divergence of the class from the table, in nats; infinite for a value the table does not have."""
    del sensitive
    share = histogram.counts / histogram.sizes[histogram.classes]
    base = histogram.overall[histogram.values] / histogram.overall.sum()
    with np.errstate(divide="ignore"):
        return np.maximum(histogram.add(share * np.log(share / base)), 0.0)


def ordered(histogram: Histogram, sensitive: Sensitive) -> NDArray[np.float64]:
    """Return the earth mover's distance over the ranks of the values that occur."""
    order = value_order(sensitive, histogram.overall)
    total = float(histogram.overall.sum())
    reference = np.cumsum(histogram.overall[order])

    def distance(counts: Counts, sizes: Counts) -> NDArray[np.float64]:
        reached = np.cumsum(counts[:, order], axis=1)
        moved = np.abs(reached * int(total) - reference * sizes[:, None]).sum(axis=1, dtype=np.float64)
        return np.asarray(moved / (sizes * total) / max(len(order) - 1, 1))

    return _in_blocks(histogram, distance)


def hierarchical(histogram: Histogram, sensitive: Sensitive) -> NDArray[np.float64]:
    """Return the earth mover's distance in which values meet at their common ancestor, at height over total height."""
    attribute, total = sensitive.attribute, float(histogram.overall.sum())

    def distance(counts: Counts, sizes: Counts) -> NDArray[np.float64]:
        extra = counts * int(total) - histogram.overall * sizes[:, None]
        return np.asarray(_tree_cost(extra, attribute) / (sizes * total))

    return _in_blocks(histogram, distance)


def _tree_cost(extra: Counts, attribute: Attribute) -> NDArray[np.float64]:
    cost = np.zeros(len(extra))
    below, nodes = extra, attribute.ancestors[0]
    for level in range(1, attribute.height + 1):
        parents = _parents(nodes, attribute.ancestors[level], below.shape[1])
        size = attribute.size(level)
        surplus, lack = _added(np.maximum(below, 0), parents, size), _added(np.maximum(-below, 0), parents, size)
        cost += np.minimum(surplus, lack).sum(axis=1) * (level / attribute.height)
        below, nodes = surplus - lack, attribute.ancestors[level]
    return cost


def _parents(nodes: NDArray[Any], above: NDArray[Any], size: int) -> NDArray[np.int64]:
    parents = np.zeros(size, dtype=np.int64)
    parents[nodes] = above
    return parents


def _added(numbers: Counts, parents: NDArray[np.int64], size: int) -> Counts:
    total = np.zeros((size, len(numbers)), dtype=np.int64)
    np.add.at(total, parents, numbers.T)
    return total.T


def value_order(sensitive: Sensitive, overall: Counts) -> NDArray[np.int64]:
    """Return the codes of the values that occur, along their scale (missing values last)."""
    positions = sensitive.attribute.positions
    order = np.arange(len(sensitive.values)) if positions is None else np.argsort(positions, kind="stable")
    return np.asarray(order[overall[order] > 0])


def _in_blocks(histogram: Histogram, distance: Callable[[Counts, Counts], NDArray[np.float64]]) -> NDArray[np.float64]:
    size, step = len(histogram.sizes), max(_BLOCK // max(len(histogram.overall), 1), 1)
    found = [
        distance(histogram.dense(start, min(start + step, size)), histogram.sizes[start : start + step])
        for start in range(0, size, step)
    ]
    return np.concatenate(found) if found else np.zeros(0)
