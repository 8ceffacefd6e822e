"""What a class would lose if it got one more row: a table over the leaves, for each class and attribute.

With these tables the loss of every class together with every single row is one product of matrices.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Values

Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float32]


class _Growing(Protocol):
    def grown(self, codes: Counts) -> Losses:
        """Return the loss of each class (row) with each leaf (column) added; ``codes`` holds a class per row."""


class ClassGrowth:
    """The tables of the leaves that occur in some rows.

    Attributes:
        columns: the column of the tables for each row's leaf in each attribute.
        width: the number of columns.
    """

    def __init__(self, cells: CodedCells, leaves: Counts, *, values: Values) -> None:
        self._parts: list[tuple[slice, _Growing]] = []
        self.codes = np.empty_like(leaves)
        self.columns = np.empty_like(leaves)
        self.width = 0
        for place, (attribute, weight) in enumerate(zip(cells.attributes, cells.weights_of_attributes, strict=True)):
            present, inverse = np.unique(leaves[:, place], return_inverse=True)
            self.codes[:, place] = inverse.ravel()
            self.columns[:, place] = self.codes[:, place] + self.width
            part = _growing(attribute, present, float(weight), values)
            self._parts.append((slice(self.width, self.width + len(present)), part))
            self.width += len(present)

    def tables(self, members: Counts) -> tuple[Losses, Losses]:
        """Return the table of each class and its present loss.

        Args:
            members: the rows of each class, one class per line, filled up by repeating any of its rows.
        """
        grown = np.empty((len(members), self.width), dtype=np.float32)
        for place, (columns, part) in enumerate(self._parts):
            grown[:, columns] = part.grown(self.codes[members, place])
        own = self.columns[members[:, 0]]
        # With a row that it has already, a class loses what it loses now.
        return grown, np.take_along_axis(grown, own, axis=1).sum(axis=1)

    def joining(self, rows: Counts, tables: Losses) -> Losses:
        """Return the loss of every class (column, by its table) together with every row (line).

        This is the product of the rows' one-hot codes with the tables, as a sum of table columns: for the few hundred
        classes of a neighborhood that is as fast as a product of matrices, and needs no threads.
        """
        # Rows of the transpose are contiguous, which makes picking them fast.
        by_leaf = np.ascontiguousarray(tables.T)
        total = by_leaf[self.columns[rows, 0]]
        for place in range(1, self.columns.shape[1]):
            total += by_leaf[self.columns[rows, place]]
        return np.asarray(total)

    def joined(self, tables: Losses, which: Counts, rows: Counts) -> Losses:
        """Return the loss of one table's class together with one row, for pairs of both."""
        return np.asarray(tables[which[:, None], self.columns[rows]].sum(axis=1))


def _growing(attribute: CodedAttribute, present: Counts, weight: float, values: Values) -> _Growing:
    if values is Values.HIERARCHY:
        return _Nodes(attribute, present, weight)
    if attribute.positions is not None:
        return _Intervals(attribute, present, weight)
    return _Sets(attribute, present, weight)


class _Nodes:
    def __init__(self, attribute: CodedAttribute, present: Counts, weight: float) -> None:
        ancestors = np.stack(attribute.ancestors)[:, present]
        losses = (attribute.leaf_losses[:, present] * weight).astype(np.float32)
        # Ancestors that differ at a level differ at all levels below it.
        self.meeting = (ancestors[:, :, None] != ancestors[:, None, :]).sum(axis=0, dtype=np.int8)
        self.node = np.empty(ancestors.shape, dtype=np.int64)
        tables: list[Losses] = []
        for level, codes in enumerate(ancestors):
            _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
            self.node[level] = inverse.ravel() + sum(map(len, tables))
            # A class at this node stays there for leaves below it, and climbs for others.
            levels = np.maximum(self.meeting[first], level)
            tables.append(losses[levels, first[:, None]])
        self.table = np.concatenate(tables)

    def grown(self, codes: Counts) -> Losses:
        first = codes[:, 0]
        level = self.meeting[first[:, None], codes].max(axis=1)
        return np.asarray(self.table[self.node[level, first]])


class _Sets:
    def __init__(self, attribute: CodedAttribute, present: Counts, weight: float) -> None:
        self.size = len(present)
        self.scale = np.float32(weight / max(len(attribute.leaves) - 1, 1))

    def grown(self, codes: Counts) -> Losses:
        member = np.zeros((len(codes), self.size), dtype=np.float32)
        np.put_along_axis(member, codes, 1.0, axis=1)
        return np.asarray((member.sum(axis=1, keepdims=True) - member) * self.scale)


class _Intervals:
    def __init__(self, attribute: CodedAttribute, present: Counts, weight: float) -> None:
        positions = np.zeros(len(present)) if attribute.positions is None else attribute.positions[present]
        self.weight = np.float32(weight)
        missing = np.isnan(positions)
        known = positions[~missing]
        start = float(known.min()) if len(known) else 0.0
        # Beyond the scale of known values, which have a width of at most 1.
        self.places = np.where(missing, 2.0, (positions - start) / (attribute.span or 1.0)).astype(np.float32)
        self.whole = np.float32(1.0)

    def grown(self, codes: Counts) -> Losses:
        """Return the widths; a missing value lies beyond the scale, and with another value it costs everything."""
        mine = self.places[codes]
        low = np.minimum(mine.min(axis=1, keepdims=True), self.places)
        high = np.maximum(mine.max(axis=1, keepdims=True), self.places)
        return np.asarray(np.minimum(high - low, self.whole) * self.weight)
