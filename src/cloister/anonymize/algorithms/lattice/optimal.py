"""Optimal full-domain anonymization: every occurrence of a value is generalized to the same level.

Classes that do not satisfy the models are suppressed, within a limit. Of all generalizations the one with the least
loss is found, see `search`; a lattice that is too large for that can be searched heuristically.
"""

from __future__ import annotations

from cloister.anonymize.algorithms.base import Outcome, Task
from cloister.anonymize.algorithms.lattice.evaluation import NodeEvaluator
from cloister.anonymize.algorithms.lattice.heuristic import DEFAULT_BUDGET, search_heuristically
from cloister.anonymize.algorithms.lattice.judging import Judge
from cloister.anonymize.algorithms.lattice.losses import LOSSES
from cloister.anonymize.algorithms.lattice.nodes import DEFAULT_NODE_LIMIT, Lattice
from cloister.anonymize.algorithms.lattice.search import Found, Progress, search_exactly
from cloister.anonymize.cells import Cells
from cloister.core.validation import check_choice, check_count

NOT_PROVEN = "A better generalization may exist: not all of the lattice was searched."


def optimal(task: Task) -> Outcome:
    """Return the full-domain generalization with the least loss, or what local recoding makes of it.

    Options of the task: ``search`` is "exact" (the default) or "heuristic"; ``node_limit`` is the greatest lattice that
    is searched exactly; ``budget`` is the number of nodes that a heuristic search evaluates; ``recoding`` is
    "full_domain" (the default) or "local", see `cloister.anonymize.algorithms.local_recoding`.

    When not even full generalization satisfies the models within the suppression limit, all that fails is suppressed.

    Raises:
        LatticeTooLargeError: if the lattice has more nodes than the limit.
    """
    recoding = task.options.get("recoding", "full_domain")
    if check_choice(recoding, name="recoding", allowed=("full_domain", "local")) == "full_domain":
        return full_domain_optimum(task)
    from cloister.anonymize.algorithms.local_recoding import local_recoding

    return local_recoding(task)


def full_domain_optimum(task: Task) -> Outcome:
    """Return the full-domain generalization with the least loss."""
    check_choice(task.loss, name="loss", allowed=tuple(LOSSES))
    evaluator = evaluator_of(task, task.cells)
    found = _search(task, evaluator)
    return Outcome(
        partition=evaluator.partition(found.node),
        notes=() if found.is_optimal else (NOT_PROVEN,),
        facts={
            "levels": dict(zip(task.cells.names, found.node, strict=True)),
            "nodes": found.nodes,
            "evaluated": found.evaluated,
            "is_optimal": found.is_optimal,
        },
    )


def lattice_of(cells: Cells) -> Lattice:
    """Return the lattice of a table's hierarchies."""
    return Lattice(tuple(attribute.height for attribute in cells.attributes))


def evaluator_of(task: Task, cells: Cells) -> NodeEvaluator:
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
