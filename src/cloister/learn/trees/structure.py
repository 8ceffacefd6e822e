"""Complete binary trees over binned features, many of them side by side, as arrays of whole numbers.

The inner nodes of a tree of depth h are numbered level by level: the children of node v are 2v + 1 and 2v + 2. A node
has a candidate split: of a number, whether it lies in one of the first bins; of a category, whether it is one value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource, integers_below
from cloister.learn.binning import Bins, Integers

__all__ = ["Candidates", "candidates_of", "cells_of", "go_right", "leaves_of"]


@dataclass(frozen=True)
class Candidates:
    """All public splits: which feature, at which cell, and whether a feature is a number."""

    feature: Integers
    cell: Integers
    ordered: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.feature)

    @cached_property
    def by_feature(self) -> tuple[Integers, ...]:
        """Return the places of each feature's splits."""
        return tuple(np.flatnonzero(self.feature == place) for place in range(len(self.ordered)))

    def of_features(self, features: Integers) -> Candidates:
        """Return the splits of some features only."""
        kept = np.isin(self.feature, features)
        return Candidates(self.feature[kept], self.cell[kept], self.ordered)

    def taken(self, places: Integers) -> Integers:
        """Return feature and cell of some splits."""
        return np.stack([self.feature[places], self.cell[places]], axis=1)

    def draw(self, source: RandomSource, count: int) -> Integers:
        """Return random splits that have nothing to do with the data: any feature, then any of its splits."""
        present = np.unique(self.feature)
        chosen = present[integers_below(source, len(present), count)]
        splits = np.empty(count, dtype=np.int64)
        for place in np.unique(chosen):
            here = chosen == place
            among = self.by_feature[place]
            splits[here] = among[integers_below(source, len(among), int(here.sum()))]
        return self.taken(splits)


def candidates_of(bins: Bins) -> Candidates:
    """Return every split of every feature: between two bins of a number, or one value of a category from the rest.

    A feature of a single bin has the split that sends everything left.
    """
    features: list[int] = []
    cells: list[int] = []
    for place, feature in enumerate(bins.features):
        count = max(1, feature.cells - 1)
        if not feature.is_ordered and count == 2:  # either value says the same of the other
            count = 1
        features += [place] * count
        cells += range(count)
    ordered = np.array([feature.is_ordered for feature in bins.features])
    return Candidates(np.array(features, dtype=np.int64), np.array(cells, dtype=np.int64), ordered)


def go_right(splits: Integers, ordered: NDArray[np.bool_], codes: Integers) -> NDArray[np.bool_]:
    """Return whether each row goes right at its own split, a feature and a cell."""
    feature, cell = splits[:, 0], splits[:, 1]
    found = codes[np.arange(len(codes)), feature]
    return np.where(ordered[feature], found > cell, found != cell)


def leaves_of(splits: Integers, ordered: NDArray[np.bool_], codes: Integers) -> Integers:
    """Return the leaf of each row, counted from the left, in the tree that has these splits at its inner nodes."""
    node = np.zeros(len(codes), dtype=np.int64)
    while len(node) and node[0] < len(splits):
        node = 2 * node + 1 + go_right(splits[node], ordered, codes)
    return np.asarray(node - len(splits))


def cells_of(keys: Integers, weights: NDArray[np.int64], size: int) -> Integers:
    """Return how many rows have each key below ``size``: exactly, since there are fewer than 2**53 rows."""
    return np.bincount(keys, weights=weights, minlength=size).astype(np.int64)
