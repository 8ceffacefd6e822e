"""Groups of at least k similar rows, each released as its center (MDAV, Domingo-Ferrer and Mateo-Sanz 2002).

While 3k rows are left: the row farthest from the center of all, and the one farthest from that row, each make a group
with their k - 1 nearest rows. What is left at the end is one group, or two. Equal rows are one point with a
multiplicity; if the row that starts a group has k equals or more, they are a group of their own (it loses nothing),
less those that the last group needs to have k rows. Other groups have k rows, the last up to 2k - 1.

The work grows with the square of the number of different rows: above 50,000 of them the table is first cut into blocks
by Mondrian, so that groups do not cross blocks (``block_size`` rows or more each). Groups that satisfy k but not
another model are merged with their nearest groups until all do.

A center is true of no single row. Rows are protected when all quasi-identifiers are aggregated together, as here; each
column by itself, or only some of them, is not k-anonymity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.base import Outcome, Task
from cloister.anonymize.algorithms.dealing import deal
from cloister.anonymize.algorithms.merging import merge_failing
from cloister.anonymize.algorithms.mondrian import mondrian
from cloister.anonymize.algorithms.points import Points, points_of
from cloister.anonymize.models import check_of
from cloister.anonymize.partition import Partition
from cloister.core.guarantees import KAnonymity
from cloister.core.validation import check_count

__all__ = ["mdav"]

Counts: TypeAlias = NDArray[np.int64]
_LARGEST = 50_000
_BLOCK = 20_000


def mdav(task: Task) -> Outcome:
    """Return the groups of MDAV.

    Options: ``block_size`` is the smallest number of rows of a block; without it, tables of more than 50,000 different
    rows are cut into blocks of at least 20,000.
    """
    size = task.options.get("block_size", _BLOCK if len(task.cells) > _LARGEST else None)
    blocks = _blocks(task, size)
    points, lines = points_of(task.cells), _Dealt([], [], [])
    for number, block in enumerate(blocks):
        for cells, rows in _groups(points.take(block), task.cells.weights[block], task.k):
            lines.add(block[cells], rows)
        task.progress((number + 1) / len(blocks), "grouping")
    partition = merge_failing(lines.partition(task), task, points=points)
    notes = [] if len(blocks) == 1 else [f"Groups were sought in {len(blocks)} blocks of the table separately."]
    return Outcome(
        partition=partition, values=task.values, notes=tuple(notes), facts={"blocks": len(blocks), "groups": lines.size}
    )


@dataclass(eq=False)
class _Dealt:
    """Which rows of which cells are in which group."""

    cells: list[Counts]
    groups: list[Counts]
    rows: list[Counts]
    size: int = 0

    def add(self, cells: Counts, rows: Counts) -> None:
        self.cells.append(cells)
        self.rows.append(rows)
        self.groups.append(np.full(len(cells), self.size))
        self.size += 1

    def partition(self, task: Task) -> Partition:
        cells, groups, rows = (np.concatenate(parts) for parts in (self.cells, self.groups, self.rows))
        return deal(task.cells, owners=cells, groups=groups, counts=rows)


def _blocks(task: Task, size: int | None) -> list[Counts]:
    """Return the cells of each block."""
    if size is None:
        return [np.arange(len(task.cells))]
    smallest = max(check_count(size, name="block_size", at_least=1), task.k)
    cut = mondrian(replace(task, checks=(check_of(KAnonymity(k=smallest)),), options={})).partition
    order = np.argsort(cut.line_cells, kind="stable")
    cells, first = np.unique(cut.line_cells[order], return_index=True)
    groups = cut.groups[order][first]
    return np.split(cells[np.argsort(groups, kind="stable")], np.cumsum(np.bincount(groups))[:-1])


def _groups(points: Points, rows: Counts, k: int) -> Iterator[tuple[Counts, Counts]]:
    """Yield the groups of a block: places of points, and how many rows of each."""
    pool = _Pool(points=points, rows=rows.copy(), places=np.arange(len(points)))
    while pool.left >= 3 * k:
        pool.shrink()
        start = pool.farthest(pool.points.center(pool.rows))
        around = pool.points.at(start)
        yield pool.group(start, k)
        if pool.left >= 2 * k:
            yield pool.group(pool.farthest(around), k)
    if pool.left >= 2 * k:
        yield pool.group(pool.farthest(pool.points.center(pool.rows)), k)
    if pool.left:
        yield pool.everything()


@dataclass(eq=False, kw_only=True)
class _Pool:
    """The rows that are in no group yet; points without rows are dropped when they are half of all."""

    points: Points
    rows: Counts
    places: Counts

    @property
    def left(self) -> int:
        return int(self.rows.sum())

    def farthest(self, center: tuple[NDArray[np.float64], Counts]) -> int:
        """Return the point with rows that is farthest from a center, the first of equals."""
        return int(np.where(self.rows > 0, self.points.distances(center), -1.0).argmax())

    def group(self, start: int, k: int) -> tuple[Counts, Counts]:
        """Take the nearest k rows of a point, itself included, or its equals if they are more; leave none or k."""
        if self.rows[start] >= k:
            equals = self.rows[[start]]
            return self._take(
                np.array([start]), equals if equals[0] == self.left else np.minimum(equals, self.left - k)
            )
        distances = np.where(self.rows > 0, self.points.distances(self.points.at(start)), np.inf)
        distances[start] = -1.0
        nearest = np.partition(distances, min(k, len(distances)) - 1)[min(k, len(distances)) - 1]
        chosen = np.flatnonzero((distances <= nearest) & (self.rows > 0))
        chosen = chosen[np.argsort(distances[chosen], kind="stable")]
        before = np.cumsum(self.rows[chosen]) - self.rows[chosen]
        taken = np.minimum(self.rows[chosen], k - before)
        return self._take(chosen[taken > 0], taken[taken > 0])

    def everything(self) -> tuple[Counts, Counts]:
        """Take all that is left."""
        chosen = np.flatnonzero(self.rows)
        return self._take(chosen, self.rows[chosen])

    def _take(self, chosen: Counts, taken: Counts) -> tuple[Counts, Counts]:
        places = self.places[chosen]
        self.rows[chosen] -= taken
        return places, taken

    def shrink(self) -> None:
        """Forget points without rows."""
        kept = np.flatnonzero(self.rows)
        if 2 * len(kept) < len(self.rows):
            self.points, self.rows, self.places = self.points.take(kept), self.rows[kept], self.places[kept]
