"""The lattice of full-domain generalizations: one level per quasi-identifier, ordered from fine to coarse.

A node is a tuple of levels. It lies below another node when none of its levels is higher. Facts about all nodes are
arrays with one axis per quasi-identifier, so that "everything below" is one slice (Samarati 2001; LeFevre, DeWitt and
Ramakrishnan 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.errors import LatticeTooLargeError

Node: TypeAlias = tuple[int, ...]

DEFAULT_NODE_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Lattice:
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

    def nodes_per_height(self) -> tuple[int, ...]:
        """Return how many nodes have levels that sum to 0, 1, and so on up to the top."""
        counts = np.ones(1, dtype=np.int64)
        for levels in self.shape:
            counts = np.convolve(counts, np.ones(levels, dtype=np.int64))
        return tuple(int(count) for count in counts)

    def sums(self, parts: Sequence[NDArray[np.float64]], *, top: Node | None = None) -> NDArray[np.float64]:
        """Return, for every node up to ``top``, the sum over quasi-identifiers of a number that a level has."""
        top = self.top if top is None else top
        total: NDArray[np.float64] = np.zeros((1,) * len(top))
        for axis, (part, level) in enumerate(zip(parts, top, strict=True)):
            total = total + part[: level + 1].reshape((-1,) + (1,) * (len(top) - axis - 1))
        return total

    def parents(self, node: Node) -> list[Node]:
        """Return the nodes that generalize one quasi-identifier by one level."""
        return [raised(node, axis) for axis, height in enumerate(self.top) if node[axis] < height]

    def children(self, node: Node) -> list[Node]:
        """Return the nodes that specialize one quasi-identifier by one level."""
        return [raised(node, axis, by=-1) for axis, level in enumerate(node) if level > 0]

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


def raised(node: Node, axis: int, *, by: int = 1) -> Node:
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
