"""Cutting many partitions in two at once: sort each along its own axis, find where to cut, say who goes where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.axes import Axes, Cutting

Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Lines:
    """Rows of partitions, partition by partition; a line is a number of equal rows of one owner."""

    owners: Counts
    rows: Counts
    starts: Counts

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def parts(self) -> Counts:
        """Return the partition of each line."""
        return np.repeat(np.arange(len(self)), np.diff(np.append(self.starts, len(self.owners))))


@dataclass(frozen=True, eq=False, kw_only=True)
class Halves:
    """Proposed halves: which lines, how many rows of each, and which half: 2i is left of partition i, 2i + 1 right."""

    lines: Counts
    rows: Counts
    groups: Counts

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

    axis: Counts
    first: Counts
    last: Counts
    lines: Counts
    rows: Counts
    keys: Counts
    starts: Counts
    reached: Counts

    @property
    def begin(self) -> Counts:
        """Return the rows before each partition."""
        return self.reached[self.starts[:-1]]

    @property
    def sizes(self) -> Counts:
        """Return the rows of each partition."""
        return np.diff(self.reached[self.starts])

    @property
    def middle(self) -> Counts:
        """Return the line with the middle row (of two, the upper one) of each partition."""
        return np.searchsorted(self.reached, self.begin + self.sizes // 2, side="right") - 1

    @property
    def middle_values(self) -> Counts:
        """Return the key at which the second half of each partition's distinct values starts."""
        is_new = np.concatenate(([True], np.diff(self.keys) != 0))
        number, distinct = np.cumsum(is_new) - 1, self.keys[is_new]
        begin, end = number[self.starts[:-1]], number[self.starts[1:] - 1] + 1
        return np.asarray(distinct[begin + (end - begin) // 2])


def sort(
    lines: Lines, *, ranks: Counts, first: Counts, last: Counts, waiting: Counts, axis: Counts, size: int
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


def _bounds(ordered: Sorted, axes: Axes, *, is_balanced: bool) -> Counts:
    """Return the line at which the right half of each partition starts."""
    cutting, base = axes.cuttings[ordered.axis], np.arange(len(ordered.axis)) * axes.size
    keys = np.where(cutting == Cutting.HALVES, ordered.middle_values, ordered.keys[ordered.middle])
    bounds = np.searchsorted(ordered.keys, keys)
    free = np.flatnonzero((cutting == Cutting.TREE) | is_balanced)
    if len(free):
        axis = ordered.axis[free]
        level = axes.levels(axis, ordered.first[free], ordered.last[free]) - 1
        level = np.where(cutting[free] == Cutting.TREE, level, 0)
        median = (ordered.keys[ordered.middle] - base)[free]
        before, behind = (np.searchsorted(ordered.keys, base[free] + edge) for edge in axes.edges(axis, level, median))
        bounds[free] = _more_even(ordered, free, before, behind)
    return bounds


def _more_even(ordered: Sorted, which: Counts, before: Counts, behind: Counts) -> Counts:
    """Return the more even of two places to cut each partition; a cut that leaves a half empty is the least even."""
    begin, sizes = ordered.begin[which], ordered.sizes[which]
    uneven = [np.abs(2 * (ordered.reached[bound] - begin) - sizes) for bound in (before, behind)]
    return np.where(uneven[1] < uneven[0], behind, before)


def spread(ordered: Sorted) -> Halves:
    """Return halves of equal size: the rows of the middle line go to both sides."""
    middle, taken = ordered.middle, ordered.begin + ordered.sizes // 2
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
