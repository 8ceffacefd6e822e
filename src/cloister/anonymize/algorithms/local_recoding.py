"""Local recoding after the optimal node: keep the classes of the best full-domain generalization, then improve them.

Two starts are tried, and the one with the less loss in the end is taken. The first is the best generalization within
the suppression limit; the rows that it suppresses are released as one class if they satisfy the models together. The
second allows a tenth of the rows to be set aside, so that a finer generalization is possible, and releases them too,
together with as many other classes as it takes. From either start every class is specialized along the hierarchies as
far as it goes, see `specialization`. The loss is never more than that of the optimal full-domain generalization, which
is kept where neither start improves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.base import Outcome, Task
from cloister.anonymize.algorithms.lattice.grouping import counted
from cloister.anonymize.algorithms.lattice.judging import ClassChecker
from cloister.anonymize.algorithms.lattice.losses import leaf_costs
from cloister.anonymize.algorithms.lattice.optimal import full_domain_optimum
from cloister.anonymize.algorithms.specialization import Specializer, gathered
from cloister.anonymize.cells import Cells
from cloister.anonymize.models import overall_counts
from cloister.anonymize.partition import SUPPRESSED, Partition, whole
from cloister.anonymize.regions import Regions

SET_ASIDE = Fraction(1, 10)
"""The share of rows that the full-domain generalization of the second start may leave to later steps."""

_BUDGET = 200
"""The nodes that are looked at for the second start, which need not be the best."""


def local_recoding(task: Task) -> Outcome:
    """Return classes at least as good as those of the optimal full-domain generalization.

    Options of the task are those of the search for the optimum.

    Raises:
        LatticeTooLargeError: if the lattice has more nodes than the limit.
    """
    optimum = full_domain_optimum(task)
    found = [_specialized(task, groups) for groups in _starts(task, optimum.partition)]
    partition = min([*found, optimum.partition], key=lambda candidate: Regions(partition=candidate).loss())
    return replace(optimum, partition=partition, facts={**optimum.facts, "recoding": "local"})


def _starts(task: Task, optimum: Partition) -> Iterator[NDArray[np.int64]]:
    """Yield classes to specialize; -1 is suppressed."""
    first = _cell_groups(optimum)
    everything = _checker(task)
    if _all_hold(everything, _all_released(first)):
        yield _all_released(first)
    elif _all_hold(_checker(task, first), first):
        yield first
    finer = first
    if task.suppression_limit < SET_ASIDE:
        options = {"search": "heuristic", "budget": _BUDGET}
        aside = replace(task, suppression_limit=SET_ASIDE, options=options)
        finer = _cell_groups(full_domain_optimum(aside).partition)
    if (finer == SUPPRESSED).any():
        yield from _with_rest(task.cells, everything, _all_released(finer))


def _all_released(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the classes with the suppressed cells as one more."""
    return np.where(groups == SUPPRESSED, groups.max() + 1, groups)


def _with_rest(cells: Cells, checker: ClassChecker, groups: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the classes with those that do not hold as one, joined by others as far as it takes."""
    size = int(groups.max()) + 1

    def holds(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return checker.holds(np.where(chosen[groups], 0, -1), 1)

    rows = counted(groups, cells.weights.astype(np.float64), size=size)
    together = gathered(~checker.holds(groups, size), np.zeros(size, dtype=np.int64), rows, holds)
    if not together.any() or holds(together)[0]:
        yield np.unique(np.where(together[groups], size, groups), return_inverse=True)[1].astype(np.int64)


def _specialized(task: Task, groups: NDArray[np.int64]) -> Partition:
    specializer = Specializer(
        task.cells,
        _checker(task, groups),
        costs=leaf_costs(task.loss, task.cells),
        report=lambda share: task.progress(share, "specializing classes"),
    )
    return whole(task.cells, specializer.run(groups))


def _checker(task: Task, groups: NDArray[np.int64] | None = None) -> ClassChecker:
    """Return the checker of a release of everything, or of the cells that are in a class."""
    released = None if groups is None else groups[task.cells.record_cells] != SUPPRESSED
    return ClassChecker(task.cells, task.checks, k=task.k, overall=overall_counts(task.cells, among=released))


def _all_hold(checker: ClassChecker, groups: NDArray[np.int64]) -> bool:
    return bool(checker.holds(groups, int(groups.max()) + 1).all())


def _cell_groups(partition: Partition) -> NDArray[np.int64]:
    """Return the class of each cell of a partition that keeps cells whole."""
    groups = np.full(len(partition.cells), SUPPRESSED, dtype=np.int64)
    groups[partition.line_cells] = partition.groups
    return groups
