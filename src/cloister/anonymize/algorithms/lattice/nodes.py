"""The lattice of full-domain generalizations: one level per quasi-identifier, ordered from fine to coarse.

A node is a tuple of levels. It lies below another node when none of its levels is higher. Facts about all nodes are
arrays with one axis per quasi-identifier, so that "everything below" is one slice (Samarati 2001; LeFevre, DeWitt and
Ramakrishnan 2005).

The classes of a node are one integer per cell, quickly for many nodes of the same table. Quasi-identifiers are split
into two halves. For each combination of levels of a half the codes that occur are numbered once and kept, so that the
key of a node is one multiplication and one addition per cell. Small key ranges are counted in place, large ones after
sorting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.errors import LatticeTooLargeError

Node: TypeAlias = tuple[int, ...]

DEFAULT_NODE_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class GeneralizationLattice:
    """All vectors of levels from 0 to the height of each hierarchy.

    Attributes:
        top: the coarsest node, the height of each hierarchy.
    """

    top: Node

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of levels of each quasi-identifier."""
        return tuple(height + 1 for height in self.top)

    @property
    def size(self) -> int:
        """Return the number of nodes."""
        return prod(self.shape)

    @property
    def bottom(self) -> Node:
        """Return the node that changes nothing."""
        return (0,) * len(self.top)

    def check_size(self, limit: int) -> None:
        """Raise when there are more nodes than a limit."""
        if self.size > limit:
            raise LatticeTooLargeError(nodes=self.size, limit=limit)

    def sums(self, parts: Sequence[NDArray[np.float64]], *, top: Node | None = None) -> NDArray[np.float64]:
        """Return, for every node up to ``top``, the sum over quasi-identifiers of a number that a level has."""
        top = self.top if top is None else top
        total: NDArray[np.float64] = np.zeros((1,) * len(top))
        for axis, (part, level) in enumerate(zip(parts, top, strict=True)):
            # One more axis each time: broadcasting adds up all combinations without a list of nodes.
            total = total + part[: level + 1].reshape((-1,) + (1,) * (len(top) - axis - 1))
        return total

    def parents(self, node: Node) -> list[Node]:
        """Return the nodes that generalize one quasi-identifier by one level."""
        return [raise_level(node, axis) for axis, height in enumerate(self.top) if node[axis] < height]

    def children(self, node: Node) -> list[Node]:
        """Return the nodes that specialize one quasi-identifier by one level."""
        return [raise_level(node, axis, by=-1) for axis, level in enumerate(node) if level > 0]

    def chain(self, node: Node, *, costs: Sequence[Sequence[float]]) -> list[Node]:
        """Return a path from a node to the top that always takes the cheapest step.

        Args:
            node: where the path begins.
            costs: for each quasi-identifier what it costs to climb from each level but the last.
        """
        path, levels = [node], list(node)
        while path[-1] != self.top:
            open_axes = [axis for axis, height in enumerate(self.top) if levels[axis] < height]
            levels[min(open_axes, key=lambda axis: costs[axis][levels[axis]])] += 1
            path.append(tuple(levels))
        return path


def raise_level(node: Node, axis: int, *, by: int = 1) -> Node:
    """Return a node with one level changed."""
    return (*node[:axis], node[axis] + by, *node[axis + 1 :])


def below(node: Node) -> tuple[slice, ...]:
    """Return the slice of a node and all that are finer."""
    return tuple(slice(0, level + 1) for level in node)


def above(node: Node) -> tuple[slice, ...]:
    """Return the slice of a node and all that are coarser."""
    return tuple(slice(level, None) for level in node)


def rank(node: Node) -> tuple[int, Node]:
    """Return what decides between nodes of equal loss: the height, then the levels one by one."""
    return sum(node), node


_DENSE = 16
"""Keys are counted in place when their range is at most this many times the number of cells."""

_KEPT = 2**25
"""Keys of halves that are kept in memory, over all cells: at most 256 MiB."""


@dataclass(frozen=True, slots=True)
class Keys:
    """A key per cell below ``size``; two cells have the same key exactly when they are in the same class."""

    values: NDArray[np.int64]
    size: int

    def join(self, other: Keys) -> Keys:
        """Return keys that tell apart what one of the two tells apart."""
        if self.size == 1:
            return other
        if other.size == 1:
            return self
        # Both ranges are of the order of the number of cells, so that the product stays far below 2**63.
        return Keys(self.values * other.size + other.values, self.size * other.size)

    def renumber(self) -> Keys:
        """Return the keys without gaps."""
        # A table of a wide range would be mostly empty, and slower than a sort.
        if self.size > _DENSE * len(self.values):
            distinct, values = np.unique(self.values, return_inverse=True)
            return Keys(values, len(distinct))
        seen = np.zeros(self.size, dtype=bool)
        seen[self.values] = True
        number = np.cumsum(seen) - 1
        return Keys(number[self.values], int(number[-1]) + 1)

    def compact(self) -> Keys:
        """Return keys whose range is small enough to count in place."""
        return self.renumber() if self.size > _DENSE * len(self.values) else self


def sum_weights(values: NDArray[np.integer], weights: NDArray[np.float64], *, size: int) -> NDArray[np.float64]:
    """Return the sum of the weights of each value; whole numbers are exact up to 2**53."""
    return np.asarray(np.bincount(values, weights=weights, minlength=size), dtype=np.float64)


class NodeKeys:
    """The keys of any node of a table's lattice."""

    def __init__(self, attributes: Sequence[CodedAttribute], codes: NDArray[np.integer]) -> None:
        half = _find_balanced_half(attributes)
        self._half = half
        self._first = _Half(attributes[:half], codes[:, :half])
        self._second = _Half(attributes[half:], codes[:, half:])

    def at(self, node: Node) -> Keys:
        """Return the keys of a node; their range is small enough to count in place."""
        return self._first.at(node[: self._half]).join(self._second.at(node[self._half :])).compact()


class _Half:
    """Some of the quasi-identifiers: few distinct combinations, of which levels are numbered once and kept."""

    def __init__(self, attributes: Sequence[CodedAttribute], codes: NDArray[np.integer]) -> None:
        self._attributes = attributes
        self._place = _join_columns(list(codes.T), [len(item.leaves) for item in attributes], len(codes))
        combinations = np.zeros((self._place.size, len(attributes)), dtype=np.int64)
        # Any cell of a combination may write it: all of them have the same codes.
        combinations[self._place.values] = codes
        self._combinations = combinations
        self._kept: dict[Node, Keys] = {}

    def at(self, levels: Node) -> Keys:
        """Return numbers without gaps of the combinations at some levels."""
        kept = self._kept.get(levels)
        if kept is None:
            if len(self._kept) * len(self._place.values) > _KEPT:
                self._kept.clear()
            kept = self._kept[levels] = self._number(levels)
        return kept

    def _number(self, levels: Node) -> Keys:
        pairs = list(zip(self._attributes, levels, strict=True))
        columns = [item.ancestors[level][self._combinations[:, place]] for place, (item, level) in enumerate(pairs)]
        few = _join_columns(columns, [item.size(level) for item, level in pairs], self._place.size)
        return Keys(few.values[self._place.values], few.size)


def _join_columns(columns: Sequence[NDArray[np.integer]], sizes: Sequence[int], rows: int) -> Keys:
    """Return one number without gaps for each combination of codes."""
    keys = Keys(np.zeros(rows, dtype=np.int64), 1)
    for column, size in zip(columns, sizes, strict=True):
        keys = keys.join(Keys(column.astype(np.int64), size)).compact()
    return keys.renumber() if keys.size > 1 else keys


def _find_balanced_half(attributes: Sequence[CodedAttribute]) -> int:
    """Return where to split the attributes so that both halves have about as many leaf combinations."""
    # Logarithms, since products of many leaves would overflow.
    logs = np.cumsum([np.log(max(len(item.leaves), 1)) for item in attributes])
    return int(np.argmin(np.abs(logs - logs[-1] / 2))) + 1 if len(logs) else 0
