"""Which of the classes that could be gathered are taken."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.base import Task
from cloister.anonymize.algorithms.clustering.gathering import Candidates, Judge
from cloister.anonymize.algorithms.clustering.measuring import SetLosses
from cloister.anonymize.cells import Cells
from cloister.anonymize.models import Classes, all_hold, overall_counts

Counts: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]


def set_judge(cells: Cells, leaves: Counts) -> Judge:
    """Return a judge of sets and intervals: none may lose more than the visit allows."""
    losses = SetLosses(cells, leaves)

    def judge(candidates: Candidates) -> Truths:
        if candidates.bound == np.inf:
            return np.ones(len(candidates.starts), dtype=bool)
        places = np.flatnonzero(candidates.node)
        return losses.of(candidates.pieces, candidates.starts, places.tolist()) <= candidates.bound

    return judge


def model_judge(task: Task) -> Judge:
    """Return a judge that takes classes of whole cells that satisfy the models (those about a population aside)."""
    cells, overall = task.cells, overall_counts(task.cells)
    checks = [check for check in task.checks if not check.needs_population]
    records = np.argsort(cells.record_cells, kind="stable")
    counts = np.bincount(cells.record_cells, minlength=len(cells))
    firsts = np.cumsum(counts) - counts

    def judge(candidates: Candidates) -> Truths:
        lengths = np.diff(np.append(candidates.starts, len(candidates.owners)))
        group = np.repeat(np.arange(len(lengths)), lengths)
        held = counts[candidates.owners]
        offsets = np.arange(int(held.sum())) - np.repeat(np.cumsum(held) - held, held)
        mine = records[np.repeat(firsts[candidates.owners], held) + offsets]
        classes = Classes(
            cells=cells,
            records=mine,
            groups=np.repeat(group, held),
            counts=cells.record_weights[mine],
            size=len(lengths),
            overall=overall,
        )
        return all_hold(checks, classes)

    return judge


def satisfied_cells(task: Task) -> Truths:
    """Return which cells satisfy every model (those about a population aside) by themselves."""
    cells = task.cells
    every = np.arange(len(cells))
    alone = Candidates(pieces=every, owners=every, starts=every, node=every[:0], bound=np.inf)
    return model_judge(task)(alone)
