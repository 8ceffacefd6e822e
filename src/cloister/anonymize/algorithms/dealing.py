"""Deal the rows of cells out to classes, record by record."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import Cells
from cloister.anonymize.partition import Partition

__all__ = ["deal"]

Counts: TypeAlias = NDArray[np.int64]


def deal(cells: Cells, *, owners: Counts, groups: Counts, counts: Counts) -> Partition:
    """Return the partition in which ``counts[i]`` rows of cell ``owners[i]`` are in class ``groups[i]``.

    The rows of a cell are taken in the order of its records and go to its classes in the order of their numbers.
    """
    by_cell, by_record = np.lexsort((groups, owners)), np.argsort(cells.record_cells, kind="stable")
    dealt, held = np.cumsum(counts[by_cell]), np.cumsum(cells.record_weights[by_record])
    ends = np.union1d(dealt, held)
    lines = by_cell[np.searchsorted(dealt, ends)]
    records = by_record[np.searchsorted(held, ends)]
    order = np.lexsort((groups[lines], records))
    rows = np.diff(ends, prepend=0)
    return Partition(cells=cells, records=records[order], groups=groups[lines][order], counts=rows[order])
