"""Growing one tree: splits chosen level by level, or at random, then the class counts of its leaves.

Privacy: with private choices, each level costs the epsilon of its splitter, all nodes of the level together, since a
row is in one of them; random splits cost nothing. A row is in one leaf and one class, so it moves one count by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.learn.binning import Integers
from cloister.learn.trees.splitting import Splitter, left_counts
from cloister.learn.trees.structure import Candidates, cells_of, go_right, leaves_of

__all__ = ["Growth", "Sample"]


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
class Growth:
    """How a tree is grown: all of it public."""

    depth: int
    classes: int
    cells: tuple[int, ...]
    splitter: Splitter | None

    def splits(self, sample: Sample, candidates: Candidates, source: RandomSource) -> Integers:
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
            chosen = candidates.taken(self.splitter.choose(left, total, source))
            place = 2 * place + go_right(chosen[place], candidates.ordered, sample.codes)
            levels.append(chosen)
        return np.concatenate(levels)

    def leaf_counts(self, sample: Sample, splits: Integers, ordered: NDArray[np.bool_]) -> Integers:
        """Return how many rows of each class are in each leaf."""
        keys = leaves_of(splits, ordered, sample.codes) * self.classes + sample.classes
        return cells_of(keys, sample.weights, 2**self.depth * self.classes).reshape(-1, self.classes)
