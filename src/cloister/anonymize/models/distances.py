"""Distances of t-closeness: from the sensitive values of each class to those of the table, by rank, tree or equality.

After Li, Li and Venkatasubramanian (2007).

Ground distances lie in [0, 1]. Those that are rational are returned as two whole numbers per class, part and whole, so
that they can be compared exactly; only the Kullback-Leibler divergence is a floating-point number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import Sensitive
from cloister.anonymize.models.equivalence_classes import Histogram

Wholes: TypeAlias = NDArray[Any]
"""Whole numbers: 64 bits, or Python integers where those would not hold them."""
Ratios: TypeAlias = "tuple[Wholes, Wholes]"
_BLOCK = 1 << 22


def equal(histogram: Histogram, sensitive: Sensitive) -> Ratios:
    """Return the variational distance: half the sum of absolute differences of shares."""
    del sensitive
    total = int(histogram.overall.sum())
    counts, overall, sizes = _roomy(histogram, scale=2)
    # Differences of shares add up to zero, so that the positive ones alone are the distance; they are among values
    # that occur.
    excess = counts * total - overall[histogram.values] * sizes[histogram.classes]
    return np.add.reduceat(np.maximum(excess, 0), histogram.starts), sizes * total


def kullback_leibler(histogram: Histogram) -> NDArray[np.float64]:
    """Return the divergence of the class from the table, in nats; infinite for a value the table does not have."""
    share = histogram.counts / histogram.sizes[histogram.classes]
    base = histogram.overall[histogram.values] / histogram.overall.sum()
    with np.errstate(divide="ignore"):
        return np.maximum(histogram.add(share * np.log(share / base)), 0.0)


def ordered(histogram: Histogram, sensitive: Sensitive) -> Ratios:
    """Return the earth mover's distance over the ranks of the values that occur."""
    order = value_order(sensitive, histogram.overall)
    scale, total = max(len(order) - 1, 1), int(histogram.overall.sum())
    _, overall, sizes = _roomy(histogram, scale=scale)
    # Earth is moved between neighbors, so that the cost is the sum of differences of running totals.
    reference = np.cumsum(overall[order])

    def moved(counts: Wholes, sizes: Wholes) -> Wholes:
        reached = np.cumsum(counts[:, order].astype(overall.dtype), axis=1)
        return np.asarray(np.abs(reached * total - reference * sizes[:, None]).sum(axis=1))

    return _in_blocks(histogram, sizes, moved), sizes * (total * scale)


def hierarchical(histogram: Histogram, sensitive: Sensitive) -> Ratios:
    """Return the earth mover's distance in which values meet at their common ancestor, at height over total height."""
    attribute, total = sensitive.attribute, int(histogram.overall.sum())
    height = max(attribute.height, 1)
    _, overall, sizes = _roomy(histogram, scale=height)

    def moved(counts: Wholes, sizes: Wholes) -> Wholes:
        return _tree_cost(counts.astype(overall.dtype) * total - overall * sizes[:, None], attribute)

    return _in_blocks(histogram, sizes, moved), sizes * (total * height)


def _tree_cost(extra: Wholes, attribute: CodedAttribute) -> Wholes:
    """Return what it costs to even out each line, as a multiple of one over the height."""
    cost = np.zeros(len(extra), dtype=extra.dtype)
    below, nodes = extra, attribute.ancestors[0]
    for level in range(1, attribute.height + 1):
        parents = _parents(nodes, attribute.ancestors[level], below.shape[1])
        size = attribute.size(level)
        surplus, lack = (
            _add_to_parents(np.maximum(below, 0), parents, size),
            _add_to_parents(np.maximum(-below, 0), parents, size),
        )
        # What children have too much or too little is evened out below their parent, and only the rest goes on
        # upwards.
        cost = cost + np.minimum(surplus, lack).sum(axis=1) * level
        below, nodes = surplus - lack, attribute.ancestors[level]
    return cost


def _parents(nodes: NDArray[Any], above: NDArray[Any], size: int) -> NDArray[np.int64]:
    parents = np.zeros(size, dtype=np.int64)
    parents[nodes] = above
    return parents


def _add_to_parents(numbers: Wholes, parents: NDArray[np.int64], size: int) -> Wholes:
    total = np.zeros((size, len(numbers)), dtype=numbers.dtype)
    np.add.at(total, parents, numbers.T)
    return total.T


def value_order(sensitive: Sensitive, overall: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the codes of the values that occur, along their scale (missing values last)."""
    positions = sensitive.attribute.positions
    order = np.arange(len(sensitive.values)) if positions is None else np.argsort(positions, kind="stable")
    return np.asarray(order[overall[order] > 0])


def _roomy(histogram: Histogram, *, scale: int) -> tuple[Wholes, Wholes, Wholes]:
    """Return counts, overall counts and sizes in a type that holds products of two of them times the scale."""
    largest = max(int(histogram.overall.sum()), int(histogram.sizes.max(initial=0)))
    kind: Any = np.int64 if largest**2 * scale < 2**62 else object
    return histogram.counts.astype(kind), histogram.overall.astype(kind), histogram.sizes.astype(kind)


def _in_blocks(histogram: Histogram, sizes: Wholes, moved: Callable[[Wholes, Wholes], Wholes]) -> Wholes:
    size, step = len(sizes), max(_BLOCK // max(len(histogram.overall), 1), 1)
    found = [
        moved(histogram.dense(start, min(start + step, size)), sizes[start : start + step])
        for start in range(0, size, step)
    ]
    return np.concatenate(found) if found else sizes
