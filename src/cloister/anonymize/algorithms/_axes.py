"""Quasi-identifiers as axes that a partition can be cut along.

On an axis every cell has a rank. Ranks follow the scale of an ordered attribute and the tree of a hierarchy (the leaves
below any node are neighbors), and otherwise the sorted values: never the order in which values happen to appear.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Values

Ranks: TypeAlias = NDArray[np.int64]


class Cutting(IntEnum):
    """Where an axis is cut: at the median row, between two halves of the values, between children of a node."""

    MEDIAN = 0
    HALVES = 1
    TREE = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Axes:
    """All quasi-identifiers as axes.

    Attributes:
        cuttings: how each axis is cut.
        ranks: the rank of each cell (column) on each axis (row).
        size: a number above every rank.
        places: for each axis (row) and level (column), where in `low` and `high` its ranks start.
        low: the first rank of the node above each rank, axis by axis and level by level.
        high: the same for one more than the last rank.
        positions: for each axis and rank, its place on an ordered scale; NaN for a missing value.
        scales: what spans are divided by on each axis.
        weights: how much each axis matters.
        values: how classes are written down.
    """

    cuttings: NDArray[np.int64]
    ranks: Ranks
    size: int
    places: Ranks
    low: Ranks
    high: Ranks
    positions: NDArray[np.float64]
    scales: NDArray[np.float64]
    weights: NDArray[np.float64]
    values: Values

    def levels(self, axis: Any, first: Ranks, last: Ranks) -> Ranks:
        """Return the level of the lowest node that holds both ranks."""
        level = np.zeros(len(first), np.int64)
        # Where the node of the first rank ends before the last one, both meet at a higher level.
        for places in self.places.T[:-1]:
            level += self.high[places[axis] + first] <= last
        return level

    def edges(self, axis: Any, level: Ranks, rank: Ranks) -> tuple[Ranks, Ranks]:
        """Return the first and past-last rank of the nodes that hold ranks at given levels."""
        place = self.places[axis, level] + rank
        return self.low[place], self.high[place]

    def spans(self, first: Ranks, last: Ranks, lines: Ranks, starts: Ranks) -> NDArray[np.float64]:
        """Return the weighted, normalized span of each axis (row) in each partition (column).

        Args:
            first: the smallest rank of each partition on each axis.
            last: the largest.
            lines: the ranks of all lines on each axis, partition by partition.
            starts: where the lines of each partition start.
        """
        spans = np.empty(first.shape)
        for axis, cutting in enumerate(self.cuttings):
            if self.values is Values.HIERARCHY:
                spans[axis] = self._leaves(axis, first[axis], last[axis])
            elif cutting == Cutting.MEDIAN:
                spans[axis] = self._width(axis, first[axis], last[axis])
            else:
                spans[axis] = _distinct(lines[axis], starts, self.size)
        return np.asarray(spans / self.scales[:, None] * self.weights[:, None])

    def _width(self, axis: int, first: Ranks, last: Ranks) -> NDArray[np.float64]:
        width = self.positions[axis, last] - self.positions[axis, first]
        # A missing value has no position: with another value it spans the whole scale.
        whole = np.where(first == last, 0.0, self.scales[axis])
        return np.where(np.isnan(width), whole, width)

    def _leaves(self, axis: int, first: Ranks, last: Ranks) -> NDArray[np.float64]:
        low, high = self.edges(axis, self.levels(axis, first, last), first)
        return np.asarray(high - low - 1, dtype=np.float64)


def axes_of(cells: CodedCells, values: Values) -> Axes:
    """Return the axes of a table."""
    attributes = cells.attributes
    cuttings = [_cutting(attribute, values) for attribute in attributes]
    orders = [_order(item, cutting) for item, cutting in zip(attributes, cuttings, strict=True)]
    size = max(len(order) for order in orders)
    ranks = np.empty((len(orders), len(cells)), np.int64)
    positions = np.full((len(orders), size), np.nan)
    for axis, (attribute, order) in enumerate(zip(attributes, orders, strict=True)):
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        ranks[axis] = place[cells.codes[:, axis]]
        if attribute.positions is not None:
            positions[axis, : len(order)] = attribute.positions[order]
    trees = [_tree(*item) for item in zip(attributes, orders, cuttings, strict=True)]
    return Axes(
        cuttings=np.array(cuttings),
        ranks=ranks,
        size=size,
        places=_places([[len(level) for level, _ in tree] for tree in trees]),
        low=np.concatenate([low for tree in trees for low, _ in tree]),
        high=np.concatenate([high for tree in trees for _, high in tree]),
        positions=positions,
        scales=_scales(attributes, cuttings, ranks, positions, values),
        weights=np.array([attribute.weight for attribute in attributes]),
        values=values,
    )


def _cutting(attribute: CodedAttribute, values: Values) -> Cutting:
    if attribute.is_ordered:
        return Cutting.TREE if values is Values.HIERARCHY else Cutting.MEDIAN
    return Cutting.TREE if attribute.has_hierarchy else Cutting.HALVES


def _order(attribute: CodedAttribute, cutting: Cutting) -> Ranks:
    """Return the leaf codes by rank: nodes of every level in the order of their first leaves."""
    leaves = np.arange(len(attribute.leaves))
    if cutting is not Cutting.TREE:
        return leaves
    keys = [leaves]
    # The coarsest level is the last key, by which lexsort sorts first: the leaves of every node become neighbors.
    for codes in attribute.ancestors[1:]:
        first = np.full(int(codes.max()) + 1, len(leaves))
        np.minimum.at(first, codes, leaves)
        keys.append(first[codes])
    return np.lexsort(keys)


def _tree(attribute: CodedAttribute, order: Ranks, cutting: Cutting) -> list[tuple[Ranks, Ranks]]:
    """Return, level by level, the first and past-last rank of the node above each rank; only leaves without a tree."""
    ranks = np.arange(len(order))
    found = []
    for codes in attribute.ancestors if cutting is Cutting.TREE else (attribute.ancestors[0], attribute.ancestors[-1]):
        nodes = codes[order]
        first, last = np.full(int(codes.max()) + 1, len(order)), np.zeros(int(codes.max()) + 1, np.int64)
        np.minimum.at(first, nodes, ranks)
        np.maximum.at(last, nodes, ranks + 1)
        found.append((first[nodes], last[nodes]))
    return found


def _places(sizes: list[list[int]]) -> Ranks:
    """Return where each level of each axis starts; levels above an axis' root are its root."""
    height = max(map(len, sizes))
    starts = np.cumsum([0, *(size for levels in sizes for size in levels)])
    first = np.cumsum([0, *map(len, sizes)])
    return np.array([[starts[first[a] + min(b, len(sizes[a]) - 1)] for b in range(height)] for a in range(len(sizes))])


def _scales(
    attributes: tuple[CodedAttribute, ...],
    cuttings: list[Cutting],
    ranks: Ranks,
    positions: NDArray[Any],
    values: Values,
) -> NDArray[np.float64]:
    """Return what the spans of each axis are divided by: the span of the whole table, never zero."""
    scales = np.ones(len(attributes))
    for axis, (attribute, cutting) in enumerate(zip(attributes, cuttings, strict=True)):
        if values is Values.HIERARCHY:
            scales[axis] = len(attribute.leaves) - 1
        elif cutting is Cutting.MEDIAN:
            places = positions[axis, ranks[axis]]
            known = places[~np.isnan(places)]
            scales[axis] = np.ptp(known) if len(known) else 0.0
        else:
            scales[axis] = len(np.unique(ranks[axis]))
    return np.where(scales > 0, scales, 1.0)


def _distinct(ranks: Ranks, starts: Ranks, size: int) -> NDArray[np.float64]:
    """Return how many different ranks each partition has."""
    number = np.zeros(len(ranks), np.int64)
    number[starts[1:]] = 1
    keys = np.cumsum(number) * size + ranks
    # A table of all pairs is quicker than a sort as long as it is small.
    if len(starts) * size <= 64 * len(ranks) + 1024:
        seen = np.zeros(len(starts) * size, dtype=bool)
        seen[keys] = True
        return np.asarray(seen.reshape(len(starts), size).sum(axis=1), dtype=np.float64)
    return np.bincount(np.unique(keys) // size, minlength=len(starts)).astype(np.float64)
