"""Partitions: which cells of quasi-identifiers, and so which rows, are in which equivalence class.

A `Partition` deals the rows of every record out to classes: line ``i`` says that ``counts[i]`` rows of record
``records[i]`` are in class ``groups[i]``; class -1 is suppressed. Most algorithms keep the rows of a cell together
(`whole`); one that does not (relaxed recoding) gives a record several lines, and may `deal` out rows by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import CodedCells
from cloister.errors import InternalError

__all__ = ["deal"]


Counts: TypeAlias = NDArray[np.int64]
SUPPRESSED = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """Classes of rows.

    Attributes:
        cells: what is partitioned.
        records: the record of each line.
        groups: the class of each line, numbered from 0 without gaps; -1 is suppressed.
        counts: the rows of each line.
        levels: the level of every attribute when the recoding is full-domain, else None.
    """

    cells: CodedCells
    records: Counts
    groups: Counts
    counts: Counts
    levels: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        return f"Partition({self.cells.names}, {self.size} classes)"

    @cached_property
    def size(self) -> int:
        """Return the number of classes."""
        return int(self.groups.max(initial=-1)) + 1

    @cached_property
    def line_cells(self) -> Counts:
        """Return the cell of each line."""
        return self.cells.record_cells[self.records]

    @cached_property
    def suppressed(self) -> int:
        """Return the number of suppressed rows."""
        return int(self.counts[self.groups == SUPPRESSED].sum())

    @cached_property
    def shown(self) -> dict[tuple[str, int], NDArray[np.object_]]:
        """Return what was found to be shown by each class, by the way of showing and the attribute."""
        return {}

    @property
    def is_split(self) -> bool:
        """Return whether rows of one record are in different classes."""
        return len(self.records) > len(self.cells.record_weights)

    def without(self, failing: NDArray[np.bool_]) -> Partition:
        """Return the partition with some classes suppressed, the others renumbered."""
        number = np.where(failing, SUPPRESSED, np.cumsum(~failing) - 1)
        # Suppressed lines have the number -1 and would pick the last class.
        groups = np.where(self.groups == SUPPRESSED, SUPPRESSED, number[self.groups])
        return Partition(cells=self.cells, records=self.records, groups=groups, counts=self.counts, levels=self.levels)


def whole(cells: CodedCells, groups: NDArray[np.integer], *, levels: tuple[int, ...] | None = None) -> Partition:
    """Return the partition in which all rows of a cell are in one class."""
    return Partition(
        cells=cells,
        records=np.arange(len(cells.record_weights)),
        groups=np.asarray(groups, dtype=np.int64)[cells.record_cells],
        counts=cells.record_weights,
        levels=levels,
    )


def verify(partition: Partition) -> None:
    """Return nothing when every row is in exactly one class, else raise.

    Raises:
        InternalError: if an algorithm lost or invented rows.
    """
    dealt = np.bincount(partition.records, weights=partition.counts, minlength=len(partition.cells.record_weights))
    numbered = np.bincount(partition.groups[partition.groups >= 0], minlength=partition.size)
    # Checked whatever the algorithm claims: counts must be positive, complete, and leave no class empty.
    if (
        (partition.counts <= 0).any()
        or not np.array_equal(dealt.astype(np.int64), partition.cells.record_weights)
        or (numbered == 0).any()
    ):
        raise InternalError("An anonymization algorithm lost or invented rows.")


def deal(cells: CodedCells, *, owners: Counts, groups: Counts, counts: Counts) -> Partition:
    """Return the partition in which ``counts[i]`` rows of cell ``owners[i]`` are in class ``groups[i]``.

    The rows of a cell are taken in the order of its records and go to its classes in the order of their numbers.
    """
    # Both orders go cell by cell, so that their running totals meet at the end of each cell.
    by_cell, by_record = np.lexsort((groups, owners)), np.argsort(cells.record_cells, kind="stable")
    dealt, held = np.cumsum(counts[by_cell]), np.cumsum(cells.record_weights[by_record])
    # Wherever a class or a record ends a line ends: between two ends there is one class and one record.
    ends = np.union1d(dealt, held)
    lines = by_cell[np.searchsorted(dealt, ends)]
    records = by_record[np.searchsorted(held, ends)]
    order = np.lexsort((groups[lines], records))
    rows = np.diff(ends, prepend=0)
    return Partition(cells=cells, records=records[order], groups=groups[lines][order], counts=rows[order])
