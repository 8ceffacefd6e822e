"""Evaluation of one node: which classes it makes, which of them must be suppressed, and what that costs."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.lattice.grouping import Keys, NodeKeys
from cloister.anonymize.algorithms.lattice.judging import Judge
from cloister.anonymize.algorithms.lattice.losses import Effect, Measure, Parts
from cloister.anonymize.algorithms.lattice.nodes import Node
from cloister.anonymize.algorithms.lattice.search import Verdict
from cloister.anonymize.cells import Cells
from cloister.anonymize.partition import Partition, whole


class NodeEvaluator:
    """Evaluates nodes of one table's lattice.

    Args:
        cells: the table.
        judge: tells which classes to suppress.
        measure: the loss.
        allowed: the rows that may be suppressed.
    """

    def __init__(self, cells: Cells, *, judge: Judge, measure: Measure, allowed: int) -> None:
        self._cells, self._judge, self._measure, self._allowed = cells, judge, measure, allowed
        self._keys = NodeKeys(cells.attributes, cells.codes)

    @property
    def floors(self) -> Parts:
        """Return the measure's floors."""
        return self._measure.floors

    def evaluate(self, node: Node) -> Verdict:
        """Return the verdict on one node."""
        effect = self._effect(node)
        holds = effect.suppressed <= self._allowed
        dooms = effect.doomed + effect.least > self._allowed or (
            not holds and self._allowed == 0 and self._judge.is_monotone
        )
        return Verdict(
            holds=holds,
            loss=self._measure.loss(effect) if holds else inf,
            suppressed=effect.suppressed,
            dooms_finer=dooms,
            finer=None if dooms else self._measure.finer(effect),
            coarser=self._measure.coarser(effect),
        )

    def partition(self, node: Node) -> Partition:
        """Return the classes of a node, those that fail suppressed."""
        judgment = self._judge.judge(self._keys.at(node).numbered(), node)
        return whole(self._cells, judgment.keys.values, levels=node).without(judgment.failing)

    def _effect(self, node: Node) -> Effect:
        judgment = self._judge.judge(self._keys.at(node), node)
        suppressed, suppressed_cells = self._rows_of(judgment.keys, judgment.failing)
        doomed, doomed_cells = suppressed, suppressed_cells
        if judgment.doomed is not judgment.failing:
            doomed, doomed_cells = self._rows_of(judgment.keys, judgment.doomed)
        return Effect(
            node=node,
            sizes=judgment.sizes,
            failing=judgment.failing,
            suppressed=suppressed,
            suppressed_cells=suppressed_cells,
            doomed=doomed,
            doomed_cells=doomed_cells,
            least=judgment.least,
        )

    def _rows_of(self, keys: Keys, classes: NDArray[np.bool_]) -> tuple[int, NDArray[np.int64]]:
        cells = np.flatnonzero(classes[keys.values])
        return int(self._cells.weights[cells].sum()), cells
