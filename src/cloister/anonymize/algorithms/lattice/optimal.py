"""Optimal full-domain anonymization: every occurrence of a value is generalized to the same level.

A node is evaluated by the classes it makes: those that do not satisfy the models are suppressed, within a limit, and
that has its cost. Of all generalizations the one with the least loss is found, see `_search`; a lattice that is too
large for that can be searched heuristically.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import Partition, whole
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.algorithms.lattice._failing_classes import Judge
from cloister.anonymize.algorithms.lattice._losses import LOSSES, NodeEffect, NodeMeasure, Parts
from cloister.anonymize.algorithms.lattice._search import (
    DEFAULT_BUDGET,
    Found,
    NodeVerdict,
    Progress,
    search_exactly,
    search_heuristically,
)
from cloister.anonymize.algorithms.lattice.nodes import DEFAULT_NODE_LIMIT, GeneralizationLattice, Keys, Node, NodeKeys
from cloister.anonymize.cells import CodedCells
from cloister.core.validation import check_choice, check_count


class NodeEvaluator:
    """Evaluates nodes of one table's lattice.

    Args:
        cells: the table.
        judge: tells which classes to suppress.
        measure: the loss.
        allowed: the rows that may be suppressed.
    """

    def __init__(self, cells: CodedCells, *, judge: Judge, measure: NodeMeasure, allowed: int) -> None:
        self._cells, self._judge, self._measure, self._allowed = cells, judge, measure, allowed
        self._keys = NodeKeys(cells.attributes, cells.codes)

    @property
    def floors(self) -> Parts:
        """Return the measure's floors."""
        return self._measure.floors

    def evaluate(self, node: Node) -> NodeVerdict:
        """Return the verdict on one node."""
        effect = self._effect(node)
        holds = effect.suppressed <= self._allowed
        # What every finer node must suppress is too much already; or nothing may go, and a monotone model that fails
        # here fails below.
        dooms = effect.doomed + effect.least > self._allowed or (
            not holds and self._allowed == 0 and self._judge.is_monotone
        )
        return NodeVerdict(
            holds=holds,
            loss=self._measure.loss(effect) if holds else inf,
            suppressed=effect.suppressed,
            dooms_finer=dooms,
            finer=None if dooms else self._measure.finer(effect),
            coarser=self._measure.coarser(effect),
        )

    def partition(self, node: Node) -> Partition:
        """Return the classes of a node, those that fail suppressed."""
        judgment = self._judge.judge(self._keys.at(node).renumber(), node)
        return whole(self._cells, judgment.keys.values, levels=node).without(judgment.failing)

    def _effect(self, node: Node) -> NodeEffect:
        judgment = self._judge.judge(self._keys.at(node), node)
        suppressed, suppressed_cells = self._rows_of(judgment.keys, judgment.failing)
        doomed, doomed_cells = suppressed, suppressed_cells
        # The same array says that all failing classes are doomed: nothing has to be counted twice.
        if judgment.doomed is not judgment.failing:
            doomed, doomed_cells = self._rows_of(judgment.keys, judgment.doomed)
        return NodeEffect(
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


NOT_PROVEN = "A better generalization may exist: not all of the lattice was searched."


def optimal(task: Task) -> AlgorithmOutcome:
    """Return the full-domain generalization with the least loss, or what local recoding makes of it.

    Options of the task: ``search`` is "exact" (the default) or "heuristic"; ``node_limit`` is the greatest lattice that
    is searched exactly; ``budget`` is the number of nodes that a heuristic search evaluates; ``recoding`` is
    "full_domain" (the default) or "local", see `cloister.anonymize.algorithms.top_down`.

    When not even full generalization satisfies the models within the suppression limit, all that fails is suppressed.

    Raises:
        LatticeTooLargeError: if the lattice has more nodes than the limit.
    """
    recoding = task.options.get("recoding", "full_domain")
    if check_choice(recoding, name="recoding", allowed=("full_domain", "local")) == "full_domain":
        return full_domain_optimum(task)
    from cloister.anonymize.algorithms.top_down import local_recoding

    return local_recoding(task)


def full_domain_optimum(task: Task) -> AlgorithmOutcome:
    """Return the full-domain generalization with the least loss."""
    check_choice(task.loss, name="loss", allowed=tuple(LOSSES))
    evaluator = evaluator_of(task, task.cells)
    found = _search(task, evaluator)
    return AlgorithmOutcome(
        partition=evaluator.partition(found.node),
        notes=() if found.is_optimal else (NOT_PROVEN,),
        facts={
            "levels": dict(zip(task.cells.names, found.node, strict=True)),
            "nodes": found.nodes,
            "evaluated": found.evaluated,
            "is_optimal": found.is_optimal,
        },
    )


def lattice_of(cells: CodedCells) -> GeneralizationLattice:
    """Return the lattice of a table's hierarchies."""
    return GeneralizationLattice(tuple(attribute.height for attribute in cells.attributes))


def evaluator_of(task: Task, cells: CodedCells) -> NodeEvaluator:
    """Return what evaluates the nodes of a task."""
    judge = Judge(cells, task.checks, k=task.k, allowed=task.allowed)
    return NodeEvaluator(cells, judge=judge, measure=LOSSES[task.loss](cells), allowed=task.allowed)


def _search(task: Task, evaluator: NodeEvaluator) -> Found:
    lattice = lattice_of(task.cells)
    way = check_choice(task.options.get("search", "exact"), name="search", allowed=("exact", "heuristic"))
    if way == "heuristic":
        budget = check_count(task.options.get("budget", DEFAULT_BUDGET), name="budget", at_least=1)
        return search_heuristically(lattice, evaluator, budget=budget, progress=_reporting(task))
    lattice.check_size(check_count(task.options.get("node_limit", DEFAULT_NODE_LIMIT), name="node_limit", at_least=1))
    return search_exactly(lattice, evaluator, progress=_reporting(task))


def _reporting(task: Task) -> Progress:
    return lambda share: task.progress(share, "searching generalizations")
