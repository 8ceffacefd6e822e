"""Cut a table into neighborhoods of like classes, and improve each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.clustering.exchanging import Neighborhood
from cloister.anonymize.algorithms.clustering.growth import Growth
from cloister.anonymize.algorithms.clustering.nearness import Nearness
from cloister.anonymize.cells import Cells
from cloister.anonymize.regions import Values

Counts: TypeAlias = NDArray[np.int64]

_ROWS = 1024
_LARGE_SHARE = 0.5
_ROUNDS = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Dealt:
    """The rows that are in a class with others: the cell of each, and its class, numbered without gaps.

    All rows of large cells that are not listed stay exact.
    """

    cells: Counts
    groups: Counts

    @property
    def size(self) -> int:
        """Return the number of classes."""
        return int(self.groups.max(initial=-1)) + 1


def polished(cells: Cells, dealt: Dealt, nearness: Nearness, *, k: int, values: Values, turn: int) -> Dealt:
    """Return the rows in classes that lose less, or no more."""
    if not dealt.size:
        return dealt
    lent = np.bincount(dealt.cells, minlength=len(cells))
    spare = np.where(cells.weights >= k, cells.weights - k - lent, 0)
    large = np.flatnonzero(spare > 0)
    first = dealt.cells[np.unique(dealt.groups, return_index=True)[1]]
    ranks = nearness.ranks(np.concatenate([first, large]), turn=turn)
    hoods = _hoods(ranks, np.concatenate([np.bincount(dealt.groups), np.full(len(large), _LARGE_SHARE)]))
    place = np.argsort(hoods[: len(first)][dealt.groups], kind="stable")
    ends = np.cumsum(np.bincount(hoods[: len(first)][dealt.groups], minlength=int(hoods.max()) + 1))
    found, size = [], 0
    for hood, rows in enumerate(np.split(place, ends[:-1])):
        if len(rows):
            mine = Dealt(cells=dealt.cells[rows], groups=dealt.groups[rows])
            better = _improved(cells, mine, large[hoods[len(first) :] == hood], spare, k=k, values=values)
            found.append(Dealt(cells=better.cells, groups=better.groups + size))
            size += better.size
    return Dealt(cells=np.concatenate([part.cells for part in found]), groups=np.concatenate([p.groups for p in found]))


def _hoods(ranks: Counts, weights: NDArray[np.float64]) -> Counts:
    """Return the neighborhood of each item: neighbors in the order, up to a total weight."""
    order = np.argsort(ranks)
    reached = np.cumsum(weights[order])
    hoods = np.empty(len(ranks), dtype=np.int64)
    count = max(round(reached[-1] / _ROWS), 1)
    hoods[order] = np.minimum((reached - weights[order]) * count / reached[-1], count - 1).astype(np.int64)
    return hoods


def _improved(cells: Cells, dealt: Dealt, large: Counts, spare: Counts, *, k: int, values: Values) -> Dealt:
    _, group = np.unique(dealt.groups, return_inverse=True)
    owners = np.concatenate([dealt.cells, large])
    growth = Growth(cells, cells.codes[owners].astype(np.int64), values=values)
    is_lent = cells.weights[dealt.cells] >= k
    hood = Neighborhood(growth, group.ravel().astype(np.int64), is_lent=is_lent, spare=spare[large], k=k)
    hood.improve(_ROUNDS)
    _, group = np.unique(hood.group, return_inverse=True)
    return Dealt(cells=owners[hood.owner], groups=group.ravel().astype(np.int64))
