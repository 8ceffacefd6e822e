"""The classes of a node as one integer per cell, quickly for many nodes of the same table.

Quasi-identifiers are split into two halves. For each combination of levels of a half the codes that occur are numbered
once and kept, so that the key of a node is one multiplication and one addition per cell. Small key ranges are counted
in place, large ones after sorting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.lattice.nodes import Node
from cloister.anonymize.attributes import Attribute

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
        return Keys(self.values * other.size + other.values, self.size * other.size)

    def numbered(self) -> Keys:
        """Return the keys without gaps."""
        if self.size > _DENSE * len(self.values):
            distinct, values = np.unique(self.values, return_inverse=True)
            return Keys(values, len(distinct))
        seen = np.zeros(self.size, dtype=bool)
        seen[self.values] = True
        number = np.cumsum(seen) - 1
        return Keys(number[self.values], int(number[-1]) + 1)

    def compact(self) -> Keys:
        """Return keys whose range is small enough to count in place."""
        return self.numbered() if self.size > _DENSE * len(self.values) else self


def counted(values: NDArray[np.integer], weights: NDArray[np.float64], *, size: int) -> NDArray[np.float64]:
    """Return the sum of the weights of each value; whole numbers are exact up to 2**53."""
    return np.asarray(np.bincount(values, weights=weights, minlength=size), dtype=np.float64)


class NodeKeys:
    """The keys of any node of a table's lattice."""

    def __init__(self, attributes: Sequence[Attribute], codes: NDArray[np.integer]) -> None:
        half = _balanced_half(attributes)
        self._half = half
        self._first = _Half(attributes[:half], codes[:, :half])
        self._second = _Half(attributes[half:], codes[:, half:])

    def at(self, node: Node) -> Keys:
        """Return the keys of a node; their range is small enough to count in place."""
        return self._first.at(node[: self._half]).join(self._second.at(node[self._half :])).compact()


class _Half:
    """Some of the quasi-identifiers: few distinct combinations, of which levels are numbered once and kept."""

    def __init__(self, attributes: Sequence[Attribute], codes: NDArray[np.integer]) -> None:
        self._attributes = attributes
        self._place = _joined(list(codes.T), [len(item.leaves) for item in attributes], len(codes))
        combinations = np.zeros((self._place.size, len(attributes)), dtype=np.int64)
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
        few = _joined(columns, [item.size(level) for item, level in pairs], self._place.size)
        return Keys(few.values[self._place.values], few.size)


def _joined(columns: Sequence[NDArray[np.integer]], sizes: Sequence[int], rows: int) -> Keys:
    """Return one number without gaps for each combination of codes."""
    keys = Keys(np.zeros(rows, dtype=np.int64), 1)
    for column, size in zip(columns, sizes, strict=True):
        keys = keys.join(Keys(column.astype(np.int64), size)).compact()
    return keys.numbered() if keys.size > 1 else keys


def _balanced_half(attributes: Sequence[Attribute]) -> int:
    """Return where to split the attributes so that both halves have about as many leaf combinations."""
    logs = np.cumsum([np.log(max(len(item.leaves), 1)) for item in attributes])
    return int(np.argmin(np.abs(logs - logs[-1] / 2))) + 1 if len(logs) else 0
