"""Cut the table in two, and the halves again, while both halves satisfy the models (Mondrian, LeFevre et al. 2006).

The next cut of a partition is along the quasi-identifier with the largest span, as a share of the whole table's; if a
half would fail, along the next. All partitions of a round are cut at once (each is sorted along its own axis, then it
is found where to cut and who goes where), in the order of a queue, so classes are numbered as by the one-at-a-time
algorithm.

- An ordered attribute is cut at the median: smaller values go left, the median and larger ones right.
- An attribute with a hierarchy is cut between two children of the lowest node that holds all of the partition, where
  the halves are most even. With ``values="hierarchy"`` that goes for ordered attributes too.
- Any other attribute is cut in the middle of its sorted values.

``split="balanced"`` cuts every attribute without a hierarchy before or behind the median value, whichever is more even:
more cuts succeed. ``mode="relaxed"`` cuts a partition that cannot be cut otherwise at the middle row: rows with equal
values may then be in two classes.

Privacy: every half is checked against every model before a cut is made. Models that compare with the whole table
compare with the one that was given; that is the released one, because outliers are set aside before, see `_outliers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import Partition, whole
from cloister.anonymize.algorithms._axes import Axes, Cutting, axes_of
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.algorithms._outliers import suppresses_outliers
from cloister.anonymize.models import EquivalenceClasses, all_hold, overall_counts
from cloister.anonymize.regions import Regions
from cloister.core.guarantees import KAnonymity
from cloister.core.validation import check_choice

__all__ = ["mondrian"]


Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionLines:
    """Rows of partitions, partition by partition; a line is a number of equal rows of one owner."""

    owners: Integers
    rows: Integers
    starts: Integers

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def parts(self) -> Integers:
        """Return the partition of each line."""
        return np.repeat(np.arange(len(self)), np.diff(np.append(self.starts, len(self.owners))))


@dataclass(frozen=True, eq=False, kw_only=True)
class Halves:
    """Proposed halves: which lines, how many rows of each, and which half: 2i is left of partition i, 2i + 1 right."""

    lines: Integers
    rows: Integers
    groups: Integers

    def of(self, chosen: NDArray[np.bool_]) -> Halves:
        """Return the halves of some partitions, numbered anew."""
        number = np.cumsum(chosen) - 1
        mine = chosen[self.groups // 2]
        groups = self.groups[mine]
        return Halves(lines=self.lines[mine], rows=self.rows[mine], groups=2 * number[groups // 2] + groups % 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sorted:
    """Partitions that wait for a cut, each sorted along its axis.

    Attributes:
        axis: the axis of each partition.
        first: the smallest rank of each partition.
        last: the largest.
        lines: the lines, partition by partition.
        rows: their rows.
        keys: partition and rank of each line in one number, ascending.
        starts: where each partition starts, and where the last one ends.
        reached: the rows before each line, and all rows.
    """

    axis: Integers
    first: Integers
    last: Integers
    lines: Integers
    rows: Integers
    keys: Integers
    starts: Integers
    reached: Integers

    @property
    def begin(self) -> Integers:
        """Return the rows before each partition."""
        return self.reached[self.starts[:-1]]

    @property
    def sizes(self) -> Integers:
        """Return the rows of each partition."""
        return np.diff(self.reached[self.starts])

    @property
    def middle(self) -> Integers:
        """Return the line with the middle row (of two, the upper one) of each partition."""
        return np.searchsorted(self.reached, self.begin + self.sizes // 2, side="right") - 1

    @property
    def middle_values(self) -> Integers:
        """Return the key at which the second half of each partition's distinct values starts."""
        # Keys ascend, so that a change is a new value, or a new partition.
        is_new = np.concatenate(([True], np.diff(self.keys) != 0))
        number, distinct = np.cumsum(is_new) - 1, self.keys[is_new]
        begin, end = number[self.starts[:-1]], number[self.starts[1:] - 1] + 1
        return np.asarray(distinct[begin + (end - begin) // 2])


def sort(
    lines: PartitionLines,
    *,
    ranks: Integers,
    first: Integers,
    last: Integers,
    waiting: Integers,
    axis: Integers,
    size: int,
) -> Sorted:
    """Return the waiting partitions, each sorted along its own axis.

    Args:
        lines: the rows of all partitions.
        ranks: the rank of each line (column) on each axis (row).
        first: the smallest rank of each partition (column) on each axis (row).
        last: the largest.
        waiting: the partitions that wait.
        axis: the axis of each of them.
        size: a number above every rank.
    """
    number = np.full(len(lines), -1)
    number[waiting] = np.arange(len(waiting))
    mine = number[lines.parts]
    chosen = np.flatnonzero(mine >= 0)
    mine = mine[chosen]
    # Partition and rank in one number: one sort orders all partitions, each along its own axis.
    keys = mine * size + ranks[axis[mine], chosen]
    order = np.argsort(keys, kind="stable")
    rows = lines.rows[chosen[order]]
    return Sorted(
        axis=axis,
        first=first[axis, waiting],
        last=last[axis, waiting],
        lines=chosen[order],
        rows=rows,
        keys=keys[order],
        starts=np.searchsorted(keys[order], np.arange(len(waiting) + 1) * size),
        reached=np.concatenate(([0], np.cumsum(rows))),
    )


def cut(ordered: Sorted, axes: Axes, *, is_balanced: bool) -> Halves:
    """Return the halves on both sides of one cut per partition; equal values stay together."""
    part = ordered.keys // axes.size
    groups = 2 * part + (np.arange(len(part)) >= _bounds(ordered, axes, is_balanced=is_balanced)[part])
    return Halves(lines=ordered.lines, rows=ordered.rows, groups=groups)


def _bounds(ordered: Sorted, axes: Axes, *, is_balanced: bool) -> Integers:
    """Return the line at which the right half of each partition starts."""
    cutting, base = axes.cuttings[ordered.axis], np.arange(len(ordered.axis)) * axes.size
    # The median row of most axes; the middle of the distinct values where values have no order.
    keys = np.where(cutting == Cutting.HALVES, ordered.middle_values, ordered.keys[ordered.middle])
    bounds = np.searchsorted(ordered.keys, keys)
    free = np.flatnonzero((cutting == Cutting.TREE) | is_balanced)
    if len(free):
        axis = ordered.axis[free]
        # One level below the lowest node that holds all of a partition are the children to cut between.
        level = axes.levels(axis, ordered.first[free], ordered.last[free]) - 1
        level = np.where(cutting[free] == Cutting.TREE, level, 0)
        median = (ordered.keys[ordered.middle] - base)[free]
        before, behind = (np.searchsorted(ordered.keys, base[free] + edge) for edge in axes.edges(axis, level, median))
        bounds[free] = _more_even(ordered, free, before, behind)
    return bounds


def _more_even(ordered: Sorted, which: Integers, before: Integers, behind: Integers) -> Integers:
    """Return the more even of two places to cut each partition; a cut that leaves a half empty is the least even."""
    begin, sizes = ordered.begin[which], ordered.sizes[which]
    # Rows left of the cut against half of all; an empty half has the largest difference.
    uneven = [np.abs(2 * (ordered.reached[bound] - begin) - sizes) for bound in (before, behind)]
    return np.where(uneven[1] < uneven[0], behind, before)


def spread(ordered: Sorted) -> Halves:
    """Return halves of equal size: the rows of the middle line go to both sides."""
    middle, taken = ordered.middle, ordered.begin + ordered.sizes // 2
    # So many rows of the middle line belong to the left half.
    taken = taken - ordered.reached[middle]
    part = np.repeat(np.arange(len(middle)), np.diff(ordered.starts))
    rows = ordered.rows.copy()
    rows[middle] -= taken
    shared = np.flatnonzero(taken)
    return Halves(
        lines=np.concatenate([ordered.lines, ordered.lines[middle[shared]]]),
        rows=np.concatenate([rows, taken[shared]]),
        groups=np.concatenate([2 * part + (np.arange(len(part)) >= middle[part]), 2 * shared]),
    )


Counts: TypeAlias = NDArray[np.int64]
Made: TypeAlias = "list[tuple[Counts, Halves]]"
_RELAXED = "Rows with equal quasi-identifiers may be in different classes (relaxed cuts)."


@suppresses_outliers
def mondrian(task: Task) -> AlgorithmOutcome:
    """Return the classes of Mondrian.

    Options: ``mode`` is "strict" (equal rows stay together) or "relaxed"; ``split`` is "median" or "balanced".
    """
    mode = check_choice(task.options.get("mode", "strict"), name="mode", allowed=("strict", "relaxed"))
    split = check_choice(task.options.get("split", "median"), name="split", allowed=("median", "balanced"))
    search = _Search(task=task, is_relaxed=mode == "relaxed", is_balanced=split == "balanced")
    rounds = search.run()
    partition = search.partition()
    notes = (_RELAXED,) if partition.is_split else ()
    return AlgorithmOutcome(partition=partition, values=task.values, notes=notes, facts={"rounds": rounds})


@dataclass(eq=False, kw_only=True)
class _Search:
    """The queue and what has left it. Owners of lines are cells, or records where a model looks inside cells."""

    task: Task
    is_relaxed: bool
    is_balanced: bool
    axes: Axes = field(init=False)
    by_record: bool = field(init=False)
    overall: Mapping[str, Counts] = field(init=False)
    finished: list[tuple[Counts, Counts, Counts]] = field(default_factory=list)
    classes: int = 0

    def __post_init__(self) -> None:
        only_sizes = all(type(check.model) is KAnonymity and check.model.unit == "row" for check in self.task.checks)
        self.by_record = self.is_relaxed or not only_sizes
        self.axes = axes_of(self.task.cells, self.task.values)
        self.overall = overall_counts(self.task.cells)

    def run(self) -> int:
        """Cut until nothing can be cut, and return the number of rounds."""
        cells, rounds = self.task.cells, 0
        rows = cells.record_weights if self.by_record else cells.weights
        lines = PartitionLines(owners=np.arange(len(rows)), rows=rows, starts=np.zeros(1, np.int64))
        while len(lines):
            lines = self._next(lines, self._cuts(lines))
            rounds += 1
            self.task.progress(1 - float(lines.rows.sum() / cells.total), "cutting")
        return rounds

    def partition(self) -> Partition:
        """Return the finished classes."""
        owners, rows, groups = (np.concatenate(parts) for parts in zip(*self.finished, strict=True))
        order = np.lexsort((groups, owners))
        if not self.by_record:
            return whole(self.task.cells, groups[order])
        return Partition(cells=self.task.cells, records=owners[order], groups=groups[order], counts=rows[order])

    def _cuts(self, lines: PartitionLines) -> Made:
        """Return the partitions that can be cut, with their halves."""
        cells = self.task.cells
        ranks = self.axes.ranks[:, cells.record_cells[lines.owners] if self.by_record else lines.owners]
        first = np.minimum.reduceat(ranks, lines.starts, axis=1)
        last = np.maximum.reduceat(ranks, lines.starts, axis=1)
        # An axis along which all rows are equal is no candidate.
        spans = np.where(first < last, self.axes.spans(first, last, ranks, lines.starts), -1.0)

        def sorted_along(waiting: Counts, axis: Counts) -> Sorted:
            size = self.axes.size
            return sort(lines, ranks=ranks, first=first, last=last, waiting=waiting, axis=axis, size=size)

        # With fewer than 2k rows one half would be too small wherever it is cut.
        waiting = np.flatnonzero(np.add.reduceat(lines.rows, lines.starts) >= 2 * self.task.k)
        made, waiting = self._try_cuts(
            lines, waiting, spans, lambda *at: cut(sorted_along(*at), self.axes, is_balanced=self.is_balanced)
        )
        if self.is_relaxed:
            made += self._try_cuts(lines, waiting, spans, lambda *at: spread(sorted_along(*at)))[0]
        return made

    def _try_cuts(
        self,
        lines: PartitionLines,
        waiting: Counts,
        spans: NDArray[np.float64],
        halve: Callable[[Counts, Counts], Halves],
    ) -> tuple[Made, Counts]:
        """Try one axis of each waiting partition after the other, and return the cuts and who still waits."""
        made: Made = []
        failed = []
        # The k-th line holds the k-th best axis of each partition: all waiting ones try one axis in each round.
        for axes in np.argsort(-spans, axis=0, kind="stable"):
            can = spans[axes[waiting], waiting] >= 0
            failed.append(waiting[~can])
            waiting = waiting[can]
            if not len(waiting):
                break
            halves = halve(waiting, axes[waiting])
            holds = self._hold(halves, lines, len(waiting))
            made.append((waiting[holds], halves.of(holds)))
            waiting = waiting[~holds]
        has_axis: NDArray[np.bool_] = np.any(spans >= 0, axis=0)
        left = np.sort(np.concatenate([*failed, waiting]))
        return made, left[has_axis[left]]

    def _hold(self, halves: Halves, lines: PartitionLines, count: int) -> NDArray[np.bool_]:
        """Return which partitions have two halves that satisfy everything."""
        sizes = np.bincount(halves.groups, weights=halves.rows, minlength=2 * count)
        holds: NDArray[np.bool_] = np.all((sizes >= self.task.k).reshape(-1, 2), axis=1)
        # Where only sizes count, they have been checked already.
        if self.by_record and holds.any():
            classes = self._classes(halves.of(holds), lines)
            holds[holds] = all_hold(self.task.checks, classes).reshape(-1, 2).all(axis=1)
        return holds

    def _classes(self, halves: Halves, lines: PartitionLines) -> EquivalenceClasses:
        named: dict[str, Any] = {
            "cells": self.task.cells,
            "records": lines.owners[halves.lines],
            "groups": halves.groups,
            "counts": halves.rows,
        }
        return EquivalenceClasses(
            **named,
            size=int(halves.groups.max()) + 1,
            overall=self.overall,
            fitting=lambda: Regions(partition=Partition(**named), values=self.task.values).population(),
        )

    def _next(self, lines: PartitionLines, made: Made) -> PartitionLines:
        """Finish the partitions that were not cut, and return the halves of the others in the order of the queue."""
        is_cut = np.zeros(len(lines), dtype=bool)
        for which, _ in made:
            is_cut[which] = True
        self._finish(lines, is_cut)
        number = np.cumsum(is_cut) - 1
        none = np.zeros(0, np.int64)
        # Halves go to the places that their partitions had in the queue, whichever axis they were cut along.
        groups = np.concatenate([none, *(2 * number[which[h.groups // 2]] + h.groups % 2 for which, h in made)])
        order = np.argsort(groups, kind="stable")
        return PartitionLines(
            owners=lines.owners[np.concatenate([none, *(h.lines for _, h in made)])[order]],
            rows=np.concatenate([none, *(h.rows for _, h in made)])[order],
            starts=np.searchsorted(groups[order], np.arange(2 * int(is_cut.sum()))),
        )

    def _finish(self, lines: PartitionLines, is_cut: NDArray[np.bool_]) -> None:
        number, parts = self.classes + np.cumsum(~is_cut) - 1, lines.parts
        mine = ~is_cut[parts]
        self.finished.append((lines.owners[mine], lines.rows[mine], number[parts[mine]]))
        self.classes += int((~is_cut).sum())
