"""Choosing splits privately: scores that are whole numbers, and a choice by permute-and-flip among public candidates.

A score adds up both children of a split. ``majority`` counts the rows that the larger class of each child explains;
``gini`` is the sum over classes of n_c**2 / n in each child, which is the number of rows less their Gini impurity.

Privacy: claim epsilon-DP for one row added or removed, for all nodes of a level together. A row is in one node of a
level, and in one child of every candidate. In it, ``majority`` grows by 0 or 1 with a row, for all candidates in the
same direction: a monotone score of sensitivity 1. ``gini``: with S the sum of n_c**2, a row of class c moves S / n by
(n (2 n_c + 1) - S) / (n (n + 1)); since n_c**2 <= S <= n**2, that is at most 1 (reached with n_c = n) and more than -1.
So the sensitivity is 1, in steps of 2**-10 exactly 2**10: rounding down to whole steps does not move two numbers that
are at most 2**10 apart farther than that. Only the choice is kept, never a score.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent
from cloister.core.random import RandomSource
from cloister.learn.binning import Integers
from cloister.learn.trees.structure import Candidates, cells_of
from cloister.mechanisms.selection import Select

__all__ = ["CRITERIA", "Splitter", "left_counts"]

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
        wide = counts if counts.max(initial=0) * counts.shape[-1] < _SMALL else counts.astype(object)
        rows = wide.sum(axis=-1)
        return np.asarray((wide * wide).sum(axis=-1) * _STEP // np.maximum(rows, 1))


def left_counts(
    candidates: Candidates,
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
            if candidates.ordered[feature]:
                table = table.cumsum(axis=2)
            left[:, places] = table[:, :, candidates.cell[places]].transpose(0, 2, 1)
    total = cells_of(keys, weights, nodes * classes).reshape(nodes, 1, classes)
    return left, total
