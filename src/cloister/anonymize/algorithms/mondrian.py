"""Cut the table in two, and the halves again, while both halves satisfy the models (Mondrian, LeFevre et al. 2006).

The next cut of a partition is along the quasi-identifier with the largest span, as a share of the whole table's; if a
half would fail, along the next. All partitions of a round are cut at once, in the order of a queue, so classes are
numbered as by the one-at-a-time algorithm.

- An ordered attribute is cut at the median: smaller values go left, the median and larger ones right.
- An attribute with a hierarchy is cut between two children of the lowest node that holds all of the partition, where
  the halves are most even. With ``values="hierarchy"`` that goes for ordered attributes too.
- Any other attribute is cut in the middle of its sorted values.

``split="balanced"`` cuts every attribute without a hierarchy before or behind the median value, whichever is more even:
more cuts succeed. ``mode="relaxed"`` cuts a partition that cannot be cut otherwise at the middle row: rows with equal
values may then be in two classes.

Privacy: every half is checked against every model before a cut is made. Models that compare with the whole table
compare with the one that was given; that is the released one, because outliers are set aside before, see `outliers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.axes import Axes, axes_of
from cloister.anonymize.algorithms.base import Outcome, Task
from cloister.anonymize.algorithms.halving import Halves, Lines, Sorted, cut, sort, spread
from cloister.anonymize.algorithms.outliers import suppresses_outliers
from cloister.anonymize.models import Classes, all_hold, overall_counts
from cloister.anonymize.partition import Partition, whole
from cloister.anonymize.regions import Regions
from cloister.core.guarantees import KAnonymity
from cloister.core.validation import check_choice

__all__ = ["mondrian"]

Counts: TypeAlias = NDArray[np.int64]
Made: TypeAlias = "list[tuple[Counts, Halves]]"
_RELAXED = "Rows with equal quasi-identifiers may be in different classes (relaxed cuts)."


@suppresses_outliers
def mondrian(task: Task) -> Outcome:
    """Return the classes of Mondrian.

    Options: ``mode`` is "strict" (equal rows stay together) or "relaxed"; ``split`` is "median" or "balanced".
    """
    mode = check_choice(task.options.get("mode", "strict"), name="mode", allowed=("strict", "relaxed"))
    split = check_choice(task.options.get("split", "median"), name="split", allowed=("median", "balanced"))
    search = _Search(task=task, is_relaxed=mode == "relaxed", is_balanced=split == "balanced")
    rounds = search.run()
    partition = search.partition()
    notes = (_RELAXED,) if partition.is_split else ()
    return Outcome(partition=partition, values=task.values, notes=notes, facts={"rounds": rounds})


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
        lines = Lines(owners=np.arange(len(rows)), rows=rows, starts=np.zeros(1, np.int64))
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

    def _cuts(self, lines: Lines) -> Made:
        """Return the partitions that can be cut, with their halves."""
        cells = self.task.cells
        ranks = self.axes.ranks[:, cells.record_cells[lines.owners] if self.by_record else lines.owners]
        first = np.minimum.reduceat(ranks, lines.starts, axis=1)
        last = np.maximum.reduceat(ranks, lines.starts, axis=1)
        spans = np.where(first < last, self.axes.spans(first, last, ranks, lines.starts), -1.0)

        def sorted_along(waiting: Counts, axis: Counts) -> Sorted:
            size = self.axes.size
            return sort(lines, ranks=ranks, first=first, last=last, waiting=waiting, axis=axis, size=size)

        waiting = np.flatnonzero(np.add.reduceat(lines.rows, lines.starts) >= 2 * self.task.k)
        made, waiting = self._tried(
            lines, waiting, spans, lambda *at: cut(sorted_along(*at), self.axes, is_balanced=self.is_balanced)
        )
        if self.is_relaxed:
            made += self._tried(lines, waiting, spans, lambda *at: spread(sorted_along(*at)))[0]
        return made

    def _tried(
        self, lines: Lines, waiting: Counts, spans: NDArray[np.float64], halve: Callable[[Counts, Counts], Halves]
    ) -> tuple[Made, Counts]:
        """Try one axis of each waiting partition after the other, and return the cuts and who still waits."""
        made: Made = []
        failed = []
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

    def _hold(self, halves: Halves, lines: Lines, count: int) -> NDArray[np.bool_]:
        """Return which partitions have two halves that satisfy everything."""
        sizes = np.bincount(halves.groups, weights=halves.rows, minlength=2 * count)
        holds: NDArray[np.bool_] = np.all((sizes >= self.task.k).reshape(-1, 2), axis=1)
        if self.by_record and holds.any():
            classes = self._classes(halves.of(holds), lines)
            holds[holds] = all_hold(self.task.checks, classes).reshape(-1, 2).all(axis=1)
        return holds

    def _classes(self, halves: Halves, lines: Lines) -> Classes:
        named: dict[str, Any] = {
            "cells": self.task.cells,
            "records": lines.owners[halves.lines],
            "groups": halves.groups,
            "counts": halves.rows,
        }
        return Classes(
            **named,
            size=int(halves.groups.max()) + 1,
            overall=self.overall,
            fitting=lambda: Regions(partition=Partition(**named), values=self.task.values).population(),
        )

    def _next(self, lines: Lines, made: Made) -> Lines:
        """Finish the partitions that were not cut, and return the halves of the others in the order of the queue."""
        is_cut = np.zeros(len(lines), dtype=bool)
        for which, _ in made:
            is_cut[which] = True
        self._finish(lines, is_cut)
        number = np.cumsum(is_cut) - 1
        none = np.zeros(0, np.int64)
        groups = np.concatenate([none, *(2 * number[which[h.groups // 2]] + h.groups % 2 for which, h in made)])
        order = np.argsort(groups, kind="stable")
        return Lines(
            owners=lines.owners[np.concatenate([none, *(h.lines for _, h in made)])[order]],
            rows=np.concatenate([none, *(h.rows for _, h in made)])[order],
            starts=np.searchsorted(groups[order], np.arange(2 * int(is_cut.sum()))),
        )

    def _finish(self, lines: Lines, is_cut: NDArray[np.bool_]) -> None:
        number, parts = self.classes + np.cumsum(~is_cut) - 1, lines.parts
        mine = ~is_cut[parts]
        self.finished.append((lines.owners[mine], lines.rows[mine], number[parts[mine]]))
        self.classes += int((~is_cut).sum())
