"""Trees over binned features: their splits, the private choice of them, and the counts in the leaves.

Trees are complete and binary, many of them side by side, as arrays of whole numbers. The inner nodes of a tree of depth
h are numbered level by level: the children of node v are 2v + 1 and 2v + 2. A node has a candidate split: of a number,
whether it lies in one of the first bins; of a category, whether it is one value.

Splits are chosen level by level, or at random. A private choice is by permute-and-flip among public candidates, with
scores that are whole numbers. A score adds up both children of a split. ``majority`` counts the rows that the larger
class of each child explains; ``gini`` is the sum over classes of n_c**2 / n in each child, which is the number of rows
less their Gini impurity.

Privacy of a choice: claim epsilon-DP for one row added or removed, for all nodes of a level together. A row is in one
node of a level, and in one child of every candidate. In it, ``majority`` grows by 0 or 1 with a row, for all candidates
in the same direction: a monotone score of sensitivity 1. ``gini``: with S the sum of n_c**2, a row of class c moves
S / n by (n (2 n_c + 1) - S) / (n (n + 1)); since n_c**2 <= S <= n**2, that is at most 1 (reached with n_c = n) and more
than -1. So the sensitivity is 1, in steps of 2**-10 exactly 2**10: rounding down to whole steps does not move two
numbers that are at most 2**10 apart farther than that. Only the choice is kept, never a score.

Privacy of a tree: with private choices, each level costs the epsilon of its splitter, all nodes of the level together,
since a row is in one of them; random splits cost nothing. A row is in one leaf and one class, so it moves one count by
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent
from cloister.core.random import RandomSource, integers_below
from cloister.learn._encoding import FeatureBins, Integers
from cloister.mechanisms.selection import Select

__all__ = [
    "CRITERIA",
    "Sample",
    "SplitCandidates",
    "Splitter",
    "TreeGrowth",
    "candidates_of",
    "cells_of",
    "go_right",
    "leaves_of",
    "left_counts",
]


@dataclass(frozen=True)
class SplitCandidates:
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

    def of_features(self, features: Integers) -> SplitCandidates:
        """Return the splits of some features only."""
        kept = np.isin(self.feature, features)
        return SplitCandidates(self.feature[kept], self.cell[kept], self.ordered)

    def look_up(self, places: Integers) -> Integers:
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
        return self.look_up(splits)


def candidates_of(bins: FeatureBins) -> SplitCandidates:
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
    return SplitCandidates(np.array(features, dtype=np.int64), np.array(cells, dtype=np.int64), ordered)


def go_right(splits: Integers, ordered: NDArray[np.bool_], codes: Integers) -> NDArray[np.bool_]:
    """Return whether each row goes right at its own split, a feature and a cell."""
    feature, cell = splits[:, 0], splits[:, 1]
    found = codes[np.arange(len(codes)), feature]
    return np.where(ordered[feature], found > cell, found != cell)


def leaves_of(splits: Integers, ordered: NDArray[np.bool_], codes: Integers) -> Integers:
    """Return the leaf of each row, counted from the left, in the tree that has these splits at its inner nodes."""
    node = np.zeros(len(codes), dtype=np.int64)
    # All rows are on the same level, so that the first one tells when the leaves are reached.
    while len(node) and node[0] < len(splits):
        node = 2 * node + 1 + go_right(splits[node], ordered, codes)
    return np.asarray(node - len(splits))


def cells_of(keys: Integers, weights: NDArray[np.int64], size: int) -> Integers:
    """Return how many rows have each key below ``size``: exactly, since there are fewer than 2**53 rows."""
    return np.bincount(keys, weights=weights, minlength=size).astype(np.int64)


CRITERIA = ("gini", "majority")

_STEP = 2**10
_SMALL = 2**26
"""So many rows can be squared and multiplied by a step in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitter:
    """A private choice of one split for every node of a level."""

    criterion: str
    epsilon: Fraction

    @property
    def event(self) -> Event:
        """Return what the choices of one level are for the accountants."""
        return PureEvent(epsilon=self.epsilon)

    def select(self, count: int) -> Select:
        """Return the choice among so many candidates."""
        monotone = self.criterion == "majority"
        return Select(
            candidates=tuple(range(count)),
            score_sensitivity=Fraction(1 if monotone else _STEP),
            epsilon=self.epsilon,
            monotone=monotone,
        )

    def scores(self, left: NDArray[Any], total: NDArray[Any]) -> NDArray[Any]:
        """Return the score of each candidate, from class counts of left children and of the node."""
        return np.asarray(self._of(left) + self._of(total - left))

    def choose(self, left: NDArray[Any], total: NDArray[Any], source: RandomSource) -> Integers:
        """Return the place of the chosen candidate of each node.

        Args:
            left: (nodes, candidates, classes), rows that would go left.
            total: (nodes, 1, classes), rows in the node.
            source: where the random bits come from.
        """
        selection = self.select(left.shape[1])
        scores = self.scores(left, total)
        return np.array([selection.release(row, random_state=source).index for row in scores], dtype=np.int64)

    def _of(self, counts: NDArray[Any]) -> NDArray[Any]:
        if self.criterion == "majority":
            return np.asarray(counts.max(axis=-1))
        # Larger squares need Python's own integers: one that wraps around could move a score by any amount.
        wide = counts if counts.max(initial=0) * counts.shape[-1] < _SMALL else counts.astype(object)
        rows = wide.sum(axis=-1)
        return np.asarray((wide * wide).sum(axis=-1) * _STEP // np.maximum(rows, 1))


def left_counts(
    candidates: SplitCandidates,
    cells: tuple[int, ...],
    codes: Integers,
    keys: Integers,
    weights: NDArray[np.int64],
    *,
    nodes: int,
    classes: int,
) -> tuple[Integers, Integers]:
    """Return how many rows of each class would go left, for every node and candidate, and how many there are.

    Args:
        candidates: the splits.
        cells: how many cells each feature has.
        codes: the cell of each feature in each row.
        keys: node * classes + class of each row.
        weights: how often each row occurs.
        nodes: how many nodes the level has.
        classes: how many classes there are.
    """
    left = np.empty((nodes, len(candidates), classes), dtype=np.int64)
    for feature, places in enumerate(candidates.by_feature):
        if len(places):
            size = nodes * classes * cells[feature]
            counts = cells_of(keys * cells[feature] + codes[:, feature], weights, size)
            table = counts.reshape(nodes, classes, cells[feature])
            # A number goes left with all bins up to the split, a category with one value alone.
            if candidates.ordered[feature]:
                table = table.cumsum(axis=2)
            left[:, places] = table[:, :, candidates.cell[places]].transpose(0, 2, 1)
    total = cells_of(keys, weights, nodes * classes).reshape(nodes, 1, classes)
    return left, total


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Binned rows, their classes and how often each occurs. Protected."""

    codes: Integers
    classes: Integers
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Sample(features={self.codes.shape[1]})"

    def of(self, weights: NDArray[np.int64]) -> Sample:
        """Return those rows that occur with other weights, more than zero."""
        kept = weights > 0
        return Sample(self.codes[kept], self.classes[kept], weights[kept])


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeGrowth:
    """How a tree is grown: all of it public."""

    depth: int
    classes: int
    cells: tuple[int, ...]
    splitter: Splitter | None

    def splits(self, sample: Sample, candidates: SplitCandidates, source: RandomSource) -> Integers:
        """Return the split of each inner node, private choices where there is a splitter."""
        if self.splitter is None:
            return candidates.draw(source, 2**self.depth - 1)
        levels: list[Integers] = []
        place = np.zeros(len(sample.codes), dtype=np.int64)
        for level in range(self.depth):
            left, total = left_counts(
                candidates,
                self.cells,
                sample.codes,
                place * self.classes + sample.classes,
                sample.weights,
                nodes=2**level,
                classes=self.classes,
            )
            chosen = candidates.look_up(self.splitter.choose(left, total, source))
            # The children of place p are at 2p and 2p + 1 of the next level.
            place = 2 * place + go_right(chosen[place], candidates.ordered, sample.codes)
            levels.append(chosen)
        return np.concatenate(levels)

    def leaf_counts(self, sample: Sample, splits: Integers, ordered: NDArray[np.bool_]) -> Integers:
        """Return how many rows of each class are in each leaf."""
        keys = leaves_of(splits, ordered, sample.codes) * self.classes + sample.classes
        return cells_of(keys, sample.weights, 2**self.depth * self.classes).reshape(-1, self.classes)
