"""Greedy clustering as it is usually described (Byun, Kamra, Bertino and Li 2007), for small tables.

It looks at every pair of rows, so that its time grows with the square of their number.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.clustering.growth import Growth
from cloister.anonymize.cells import Cells
from cloister.anonymize.regions import Values

Counts: TypeAlias = NDArray[np.int64]


def textbook_groups(cells: Cells, owners: Counts, *, k: int, values: Values) -> Counts:
    """Return a class for each row, given its cell: the row farthest from the last start, and its k - 1 nearest.

    Rows that are left over join the class where they cost least.
    """
    growth = Growth(cells, cells.codes[owners].astype(np.int64), values=values)
    groups = np.full(len(owners), -1, dtype=np.int64)
    classes: list[list[int]] = []
    start = 0
    for number in range(len(owners) // k):
        start = _choice(growth, [start], groups, farthest=True)
        groups[start] = number
        classes.append([start])
        for _ in range(k - 1):
            row = _choice(growth, classes[-1], groups, farthest=False)
            groups[row] = number
            classes[-1].append(row)
    for row in np.flatnonzero(groups < 0).tolist() if classes else []:
        groups[row] = _cheapest(growth, classes, row)
        classes[groups[row]].append(row)
    return groups


def _choice(growth: Growth, members: list[int], groups: Counts, *, farthest: bool) -> int:
    """Return the free row with which a class loses most, or least."""
    free = np.flatnonzero(groups < 0)
    tables, _ = growth.tables(np.array([members]))
    losses = growth.joining(free, tables)[:, 0]
    return int(free[losses.argmax() if farthest else losses.argmin()])


def _cheapest(growth: Growth, classes: list[list[int]], row: int) -> int:
    sizes = np.array([len(members) for members in classes])
    longest = int(sizes.max())
    tables, losses = growth.tables(np.array([members + members[:1] * (longest - len(members)) for members in classes]))
    return int((growth.joining(np.array([row]), tables)[0] * (sizes + 1) - losses * sizes).argmin())
