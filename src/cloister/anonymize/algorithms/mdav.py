"""Microaggregation: groups of k similar rows, released as their centers (MDAV, Domingo-Ferrer and Mateo-Sanz 2002).

While 3k rows are left: the row farthest from the center of all, and the one farthest from that row, each make a group
with their k - 1 nearest rows. What is left at the end is one group, or two. Equal rows are one point with a
multiplicity; if the row that starts a group has k equals or more, they are a group of their own (it loses nothing),
less those that the last group needs to have k rows. Other groups have k rows, the last up to 2k - 1.

Cells are points. The squared distance of two cells is a sum over quasi-identifiers, each times its weight: the squared
difference of standardized values of an ordered attribute (a missing value has the mean, and differs by one more); the
squared LM loss of the lowest common node of two leaves of a hierarchy; or else 0 for equal and 1 for different values.
The center of a set of rows has means of ordered attributes and most frequent values of the others.

The work grows with the square of the number of different rows: above 50,000 of them the table is first cut into blocks
by Mondrian, so that groups do not cross blocks (``block_size`` rows or more each). Groups that satisfy k but not
another model are merged with their nearest groups until all do.

A center is true of no single row. Rows are protected when all quasi-identifiers are aggregated together, as here; each
column by itself, or only some of them, is not k-anonymity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import Partition, deal
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.algorithms.mondrian import mondrian
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import all_hold, check_of, classes_of
from cloister.core.guarantees import KAnonymity
from cloister.core.validation import check_count

__all__ = ["Points", "mdav", "merge_failing", "points_of"]


Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Center: TypeAlias = "tuple[Floats, Codes]"


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """Points, one per cell.

    Attributes:
        numbers: standardized coordinates (one row per coordinate), scaled by the weights of their attributes.
        codes: leaf codes of the unordered attributes (one row per attribute).
        names: those attributes.
    """

    numbers: Floats
    codes: Codes
    names: tuple[CodedAttribute, ...]
    tables: tuple[dict[int, Floats], ...] = field(repr=False)

    def __len__(self) -> int:
        return int(self.numbers.shape[1])

    def take(self, chosen: Codes) -> Points:
        """Return some of the points."""
        return Points(
            numbers=np.ascontiguousarray(self.numbers[:, chosen]),
            codes=np.ascontiguousarray(self.codes[:, chosen]),
            names=self.names,
            tables=self.tables,
        )

    def at(self, place: int) -> Center:
        """Return one point as a center."""
        return self.numbers[:, place], self.codes[:, place]

    def center(self, rows: Codes) -> Center:
        """Return the center of the points, each as often as it has rows; of equally frequent values the first."""
        means = np.einsum("ij,j->i", self.numbers, rows.astype(np.float64)) / rows.sum()
        modes = [np.bincount(codes, weights=rows).argmax() for codes in self.codes]
        return means, np.array(modes, dtype=np.int64)

    def distances(self, center: Center) -> Floats:
        """Return the squared distance of every point from a center."""
        numbers, modes = center
        total = np.zeros(len(self))
        for coordinate, number in zip(self.numbers, numbers, strict=True):
            total += (coordinate - number) ** 2
        for place, (codes, mode) in enumerate(zip(self.codes, modes, strict=True)):
            total += self._from(place, int(mode)).take(codes)
        return total

    def _from(self, place: int, leaf: int) -> Floats:
        """Return the squared distance of every leaf of an attribute from one leaf."""
        table = self.tables[place]
        if leaf not in table:
            table[leaf] = _leaf_distances(self.names[place], leaf)
        return table[leaf]


def points_of(cells: CodedCells) -> Points:
    """Return the cells as points."""
    numbers = [line for place, item in enumerate(cells.attributes) for line in _coordinates(item, cells, place)]
    unordered = [place for place, item in enumerate(cells.attributes) if not item.is_ordered]
    return Points(
        numbers=np.array(numbers, dtype=np.float64).reshape(len(numbers), len(cells)),
        codes=np.ascontiguousarray(cells.codes[:, unordered].T, dtype=np.int64),
        names=tuple(cells.attributes[place] for place in unordered),
        tables=tuple({} for _ in unordered),
    )


def _coordinates(attribute: CodedAttribute, cells: CodedCells, place: int) -> list[Floats]:
    """Return the coordinates of an ordered attribute: its standardized values, and whether they are missing."""
    if attribute.positions is None:
        return []
    values = attribute.positions[cells.codes[:, place]]
    known = ~np.isnan(values)
    # Coordinates are squared, so that the root makes an attribute count by its weight.
    scale = float(np.sqrt(attribute.weight))
    rows = cells.weights[known]
    mean = np.average(values[known], weights=rows) if known.any() else 0.0
    deviation = np.sqrt(np.average((values[known] - mean) ** 2, weights=rows)) if known.any() else 0.0
    standardized = np.where(known, values - mean, 0.0) / (deviation or 1.0)
    return [standardized * scale] if known.all() else [standardized * scale, ~known * scale]


def _leaf_distances(attribute: CodedAttribute, leaf: int) -> Floats:
    if not attribute.has_hierarchy:
        return np.asarray((np.arange(len(attribute.leaves)) != leaf) * attribute.weight)
    # Ancestors that differ at a level differ at all below: their number is the level of the lowest common node.
    level = np.sum([codes != codes[leaf] for codes in attribute.ancestors], axis=0)
    return np.asarray(attribute.leaf_losses[level, leaf] ** 2 * attribute.weight)


Partners: TypeAlias = NDArray[np.int64]


def merge_failing(partition: Partition, task: Task, *, points: Points) -> Partition:
    """Return the partition with failing classes merged with the classes whose centers are nearest, two by two.

    Monotone models hold in the end, if the whole table satisfies them. Classes keep the order of their first members.
    """
    while partition.size > 1:
        fails = np.flatnonzero(~all_hold(task.checks, classes_of(partition, values=task.values)))
        if not len(fails):
            break
        partner = _pairs(fails, _nearest(partition, points, fails), partition.size)
        # Both partners take the smaller of their numbers, which keeps the order of first members.
        _, number = np.unique(np.minimum(partner, np.arange(partition.size)), return_inverse=True)
        partition = replace(partition, groups=number.ravel()[partition.groups])
    return partition


def _pairs(fails: Partners, nearest: Partners, size: int) -> Partners:
    """Return the partner of each class, itself if it has none; in a round a class has at most one."""
    partner = np.arange(size)
    for one, other in zip(fails, nearest, strict=True):
        if partner[one] == one and partner[other] == other:
            partner[one], partner[other] = other, one
    return partner


def _nearest(partition: Partition, points: Points, fails: Partners) -> Partners:
    """Return the other class whose center is nearest to the center of each failing class."""
    order = np.argsort(partition.groups, kind="stable")
    ends = np.cumsum(np.bincount(partition.groups))
    members = np.split(order, ends[:-1])
    cells, counts = partition.line_cells, partition.counts
    centers = [points.take(cells[lines]).center(counts[lines]) for lines in members]
    among = replace(
        points,
        numbers=np.array([numbers for numbers, _ in centers]).reshape(len(centers), -1).T,
        codes=np.array([codes for _, codes in centers], dtype=np.int64).reshape(len(centers), -1).T,
    )
    found = []
    for number in fails:
        distances = among.distances(centers[number])
        # A class is not its own neighbor.
        distances[number] = np.inf
        found.append(int(distances.argmin()))
    return np.array(found)


Counts: TypeAlias = NDArray[np.int64]
_LARGEST = 50_000
_BLOCK = 20_000


def mdav(task: Task) -> AlgorithmOutcome:
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
    return AlgorithmOutcome(
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
    # A cell is one point: the block of its first line counts for all of it.
    groups = cut.groups[order][first]
    return np.split(cells[np.argsort(groups, kind="stable")], np.cumsum(np.bincount(groups))[:-1])


def _groups(points: Points, rows: Counts, k: int) -> Iterator[tuple[Counts, Counts]]:
    """Yield the groups of a block: places of points, and how many rows of each."""
    pool = _Pool(points=points, rows=rows.copy(), places=np.arange(len(points)))
    while pool.left >= 3 * k:
        # Points without rows are skipped in bulk: dropping them each time would cost more than it saves.
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
            # At least k rows have to be left for the last group, unless nothing is left at all.
            return self._take(
                np.array([start]), equals if equals[0] == self.left else np.minimum(equals, self.left - k)
            )
        distances = np.where(self.rows > 0, self.points.distances(self.points.at(start)), np.inf)
        distances[start] = -1.0
        # k points have at least k rows, so that none farther away is needed.
        nearest = np.partition(distances, min(k, len(distances)) - 1)[min(k, len(distances)) - 1]
        chosen = np.flatnonzero((distances <= nearest) & (self.rows > 0))
        chosen = chosen[np.argsort(distances[chosen], kind="stable")]
        before = np.cumsum(self.rows[chosen]) - self.rows[chosen]
        # The last point gives only the rows that are missing; the rest of it stays in the pool.
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
