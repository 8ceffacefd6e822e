"""Random parts of rows in which every class has its share, for evaluations that are repeated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource, permutation

__all__ = ["stratified_folds"]

Codes = NDArray[np.int64]


def stratified_folds(codes: Codes, count: int, source: RandomSource) -> list[tuple[Codes, Codes]]:
    """Return ``count`` pairs (the others, a part) of row numbers; the parts are disjoint and together all rows."""
    order = permutation(source, len(codes))
    sorted_ = order[np.argsort(codes[order], kind="stable")]
    part = np.empty(len(codes), dtype=np.int64)
    part[sorted_] = np.arange(len(codes)) % count
    return [(np.flatnonzero(part != place), np.flatnonzero(part == place)) for place in range(count)]
