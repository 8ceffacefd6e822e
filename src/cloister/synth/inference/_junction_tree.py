"""Junction trees: how a set of marginals is held together by cliques that can be summed one after the other.

Columns are positions, and sets of columns are bit masks, so that thousands of candidate trees can be sized in a
moment. Columns are eliminated greedily, the one with the smallest clique first.

Sum-product on a tree goes from the log potentials of cliques to their marginals and the log partition.
One exponential per cell: on the way to the root each clique becomes its conditional distribution given what it shares
with its parent, on the way back that is multiplied by the parent's marginal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Beliefs", "Floats", "JunctionTree", "TreeSizes", "junction_tree"]


_WIDEST = 40
"""How many columns a clique may have: an array has 64 axes at most, also where every column has one value only."""
_TOO_WIDE = 2**62


@dataclass(frozen=True)
class JunctionTree:
    """Cliques from the root on, each with its parent; a clique shares with the earlier ones only what its parent has.

    Attributes:
        sizes: the number of values of each column.
        cliques: the columns of each clique, in order.
        parents: the position of each clique's parent, -1 for the root.
    """

    sizes: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]

    @cached_property
    def separators(self) -> tuple[tuple[int, ...], ...]:
        """Return what each clique shares with its parent."""
        return tuple(
            () if parent < 0 else tuple(column for column in clique if column in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @property
    def cells(self) -> int:
        """Return the number of cells of all cliques."""
        return sum(math.prod(self.shape(place)) for place in range(len(self.cliques)))

    @property
    def is_sound(self) -> bool:
        """Return whether the cliques that have a column are connected: each but one has it from its parent."""
        return all(
            sum(
                column in clique and column not in shared
                for clique, shared in zip(self.cliques, self.separators, strict=True)
            )
            == 1
            for column in range(len(self.sizes))
        )

    def shape(self, place: int) -> tuple[int, ...]:
        """Return the number of values of each column of a clique."""
        return tuple(self.sizes[column] for column in self.cliques[place])

    def home(self, columns: Iterable[int]) -> int | None:
        """Return the position of the smallest clique that has all of some columns, if one does."""
        wanted = frozenset(columns)
        homes = [place for place, clique in enumerate(self.cliques) if wanted.issubset(clique)]
        return min(homes, key=lambda place: math.prod(self.shape(place)), default=None)


class TreeSizes:
    """Predicts how many cells a junction tree has, before it is built."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = tuple(sizes)
        self._cells: dict[int, int] = {}

    def cells(self, mask: int) -> int:
        """Return the number of combinations of some columns, more than any limit for more columns than can be held."""
        found = self._cells.get(mask)
        if found is None:
            found = math.prod(size for column, size in enumerate(self._sizes) if mask >> column & 1)
            found = _TOO_WIDE if mask.bit_count() > _WIDEST else found
            self._cells[mask] = found
        return found

    def total(self, neighbors: Sequence[int], extra: int = 0) -> int:
        """Return the cells of the maximal cliques of a graph in which a further set of columns is joined."""
        return sum(map(self.cells, self.cliques(neighbors, extra)))

    def cliques(self, neighbors: Sequence[int], extra: int = 0) -> list[int]:
        """Return the maximal cliques of the triangulated graph, as masks, the last eliminated first."""
        around = [mask | extra if extra >> column & 1 else mask for column, mask in enumerate(neighbors)]
        left = (1 << len(around)) - 1
        found: list[int] = []
        costs = [self.cells(mask) for mask in around]
        while left:
            column = min(_columns(left), key=costs.__getitem__)
            clique = around[column]
            # A clique inside an earlier one adds nothing that has to be stored.
            if not any(clique & other == clique for other in found):
                found.append(clique)
            left &= ~(1 << column)
            # All neighbors of an eliminated column are joined: these are the edges that make the graph a tree
            # of cliques.
            rest = clique & left
            for other in _columns(rest):
                joined = (around[other] | rest) & left
                if joined != around[other]:
                    around[other] = joined
                    costs[other] = self.cells(joined)
        return found[::-1]


def neighbor_masks(count: int, groups: Iterable[Iterable[int]]) -> list[int]:
    """Return for each column the mask of the columns it shares a group with, itself included."""
    neighbors = [1 << column for column in range(count)]
    for group in groups:
        mask = mask_of(group)
        for column in _columns(mask):
            neighbors[column] |= mask
    return neighbors


def mask_of(columns: Iterable[int]) -> int:
    """Return a set of columns as a bit mask."""
    mask = 0
    for column in columns:
        mask |= 1 << column
    return mask


def junction_tree(sizes: Sequence[int], groups: Iterable[Iterable[int]]) -> JunctionTree:
    """Return a tree in which every group of columns lies in some clique, and every column in at least one."""
    masks = TreeSizes(sizes).cliques(neighbor_masks(len(sizes), groups))
    order, parents = [masks.pop(0)], [-1]
    while masks:  # Prim's algorithm: the largest shared part first gives the running intersection
        # Negative positions prefer the earliest among equals, so that the same groups give the same tree
        # everywhere.
        _, place, parent = max(
            ((candidate & inside).bit_count(), -place, -parent)
            for place, candidate in enumerate(masks)
            for parent, inside in enumerate(order)
        )
        order.append(masks.pop(-place))
        parents.append(-parent)
    return JunctionTree(tuple(sizes), tuple(tuple(_columns(mask)) for mask in order), tuple(parents))


def _columns(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Beliefs:
    """The passes over one tree; what depends on the tree alone is worked out once."""

    tree: JunctionTree

    def marginals(self, potentials: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the log partition and the probabilities of each clique's cells; the potentials are used up."""
        cliques = list(potentials)
        log_partition = 0.0
        # Children come after their parents, so that backwards every message is there before its receiver is
        # summed.
        for place in reversed(range(len(cliques))):
            clique, (summed, _, kept) = cliques[place], self._seams[place]
            # With the largest taken out nothing can overflow in exp; a slice that is impossible throughout has
            # no finite largest and stays impossible.
            top = clique.max(axis=summed, keepdims=True)
            top[~np.isfinite(top)] = 0.0
            clique -= top
            np.exp(clique, out=clique)
            total = clique.sum(axis=summed, keepdims=True)
            # An impossible slice has nothing to be divided by, and stays zero.
            clique /= np.where(total > 0, total, 1.0)
            with np.errstate(divide="ignore"):
                message = np.log(total) + top
            parent = self.tree.parents[place]
            if parent < 0:
                log_partition += float(message.reshape(()))
            else:
                cliques[parent] += message.reshape(kept)
        # Forwards, a parent is final by the time that its children take over what it has of the shared columns.
        for place, parent in enumerate(self.tree.parents):
            if parent >= 0:
                _, gone, kept = self._seams[place]
                cliques[place] *= cliques[parent].sum(axis=gone).reshape(self._inside[place])
        return log_partition, cliques

    @cached_property
    def _seams(self) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        """Per clique: its axes that its parent lacks, the parent's axes that it lacks, its shape in the parent."""
        seams = []
        for place, (clique, parent) in enumerate(zip(self.tree.cliques, self.tree.parents, strict=True)):
            shared = self.tree.separators[place]
            above = self.tree.cliques[parent] if parent >= 0 else ()
            seams.append(
                (
                    tuple(axis for axis, column in enumerate(clique) if column not in shared),
                    tuple(axis for axis, column in enumerate(above) if column not in shared),
                    tuple(self.tree.sizes[column] if column in shared else 1 for column in above),
                )
            )
        return seams

    @cached_property
    def _inside(self) -> list[tuple[int, ...]]:
        """Per clique: the shape of what it shares with its parent, among its own axes."""
        return [
            tuple(self.tree.sizes[column] if column in shared else 1 for column in clique)
            for clique, shared in zip(self.tree.cliques, self.tree.separators, strict=True)
        ]
