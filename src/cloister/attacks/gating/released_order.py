"""Whose row is whose in a release in two tables that was read from files.

Anatomy shows exact quasi-identifiers in random order. People whose quasi-identifiers are nobody else's are found again
by them; for others the order stays open, and where these are many the attack cannot be scored from files.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cloister.anonymize.algorithms.anatomy import COUNT, GROUP
from cloister.attacks.gating.row_keys import WRITTEN, read_pair
from cloister.attacks.gating.subjects import Subject
from cloister.data.table import Table
from cloister.errors import DataError

__all__ = ["in_released_order"]

_MOST_OPEN = 0.05


def in_released_order(subject: Subject) -> Table | pa.Table:
    """Return the rows of the original in the order of the released quasi-identifiers.

    Raises:
        DataError: if too many people look alike, so that nobody can tell whose row is whose.
    """
    original, quasi = subject.original, subject.release[0]
    names = [name for name in quasi.columns if name in original.columns and name not in (GROUP, COUNT)]
    pair = read_pair(original, quasi, names, resolution=WRITTEN)
    ours, theirs = (part.sum(axis=1, dtype=np.uint64) for part in pair.hashed())
    if np.array_equal(ours, theirs) or not np.array_equal(np.sort(ours), np.sort(theirs)):
        return original  # in order already, or other rows, which the attack refuses
    counts = np.unique(ours, return_counts=True)[1]
    if counts[counts > 1].sum() > _MOST_OPEN * len(ours):
        raise DataError(
            "Too many people look alike to tell whose row is whose in the two files.",
            fix="give the release itself, cl.attacks.gate(release), or the original in the order of the file.",
        )
    order = np.empty(len(ours), dtype=np.int64)
    order[np.argsort(theirs, kind="stable")] = np.argsort(ours, kind="stable")
    return original.to_arrow().take(pa.array(order))
