"""Rows that large cells lend to a class that is too small."""

from __future__ import annotations

import numpy as np

from cloister.anonymize.algorithms.clustering.growth import Growth
from cloister.anonymize.algorithms.clustering.nearness import Nearness
from cloister.anonymize.algorithms.clustering.polishing import Dealt
from cloister.anonymize.cells import Cells
from cloister.anonymize.regions import Values

_CANDIDATES = 1024


def filled(cells: Cells, dealt: Dealt, nearness: Nearness, *, k: int, values: Values) -> Dealt:
    """Return the rows with an only class that has fewer than k of them filled up, if a large cell can lend them."""
    missing = k - len(dealt.cells)
    large = np.flatnonzero(cells.weights >= k + missing)
    if missing <= 0 or not len(large):
        return dealt
    ranks = nearness.ranks(np.concatenate([dealt.cells[:1], large]))
    near = large[np.argsort(np.abs(ranks[1:] - ranks[0]), kind="stable")[:_CANDIDATES]]
    owners = np.concatenate([dealt.cells, near])
    growth = Growth(cells, cells.codes[owners].astype(np.int64), values=values)
    tables, _ = growth.tables(np.arange(len(dealt.cells))[None, :])
    lender = near[growth.joining(np.arange(len(dealt.cells), len(owners)), tables).ravel().argmin()]
    return Dealt(
        cells=np.concatenate([dealt.cells, np.full(missing, lender)]),
        groups=np.concatenate([dealt.groups, np.zeros(missing, dtype=np.int64)]),
    )
