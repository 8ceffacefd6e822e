"""Specialization: classes go down the hierarchies on their own, from everything or from the optimal node.

A class is specialized along one quasi-identifier: its rows fall apart by the children of the node they share. Children
that satisfy every check become classes; the rows of the others stay together under the old node, joined by further
children where they do not satisfy the checks by themselves. All classes take their best step at once, round by round,
so a round costs a few passes over the frequency table however many classes there are.

Every class that is made has been checked, so the result is right for any check that does not depend on other classes;
that no step is left which holds needs monotone checks.

*Top-down specialization* starts from one class of everything (Fung, Wang and Yu 2005). The recoding is local: levels
differ between classes. Rows that would be left in a class too small stay together under the node above, so nothing is
suppressed.

*Local recoding after the optimal node* keeps the classes of the best full-domain generalization, then improves them.
Two starts are tried, and the one with the less loss in the end is taken. The first is the best generalization within
the suppression limit; the rows that it suppresses are released as one class if they satisfy the models together. The
second allows a tenth of the rows to be set aside, so that a finer generalization is possible, and releases them too,
together with as many other classes as it takes. From either start every class is specialized along the hierarchies as
far as it goes. The loss is never more than that of the optimal full-domain generalization, which is kept where neither
start improves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import SUPPRESSED, Partition, whole
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.algorithms._outliers import suppresses_outliers
from cloister.anonymize.algorithms.lattice._failing_classes import ClassChecker
from cloister.anonymize.algorithms.lattice._losses import LOSSES, leaf_costs
from cloister.anonymize.algorithms.lattice.nodes import Keys, sum_weights
from cloister.anonymize.algorithms.lattice.optimal import full_domain_optimum
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import overall_counts
from cloister.anonymize.regions import Regions
from cloister.core.validation import check_choice

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Truths: TypeAlias = NDArray[np.bool_]
Score: TypeAlias = Callable[["Fall"], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """What specializing every class along one quasi-identifier would do.

    Attributes:
        gain: the loss that each class would save.
        parts: the classes that each class would fall into.
        before: the rows of each class.
        smallest: the rows of the smallest class that it would fall into.
    """

    gain: Floats
    parts: Counts
    before: Floats
    smallest: Floats


def gain_per_branching(fall: Fall) -> Floats:
    """Return the saved loss per bit that tells the new classes apart."""
    return fall.gain / np.log2(np.maximum(fall.parts, 2))


def gain_per_anonymity(fall: Fall) -> Floats:
    """Return the saved loss per row by which the smallest class shrinks (after Fung, Wang and Yu 2005)."""
    return fall.gain / np.maximum(fall.before - fall.smallest, 1)


def fewest_children(fall: Fall) -> Floats:
    """Return a score that prefers few new classes, then much saved loss."""
    return -fall.parts + fall.gain / (fall.before + 1)


SCORES: dict[str, Score] = {
    "branching": gain_per_branching,
    "anonymity": gain_per_anonymity,
    "children": fewest_children,
}


class Specializer:
    """Specializes classes of whole cells.

    Args:
        cells: the table.
        checker: tells which classes hold.
        costs: for each quasi-identifier the cost of a leaf (column) at a level (row).
        score: chooses between quasi-identifiers.
        keeps_rest: whether rows whose child does not hold may stay together, rather than forbid the step.
        report: called after each round with the share of rows whose class is final.
    """

    def __init__(
        self,
        cells: CodedCells,
        checker: ClassChecker,
        *,
        costs: Sequence[Floats],
        score: Score = gain_per_branching,
        keeps_rest: bool = True,
        report: Callable[[float], None] | None = None,
    ) -> None:
        self._cells, self._checker, self._costs, self._score = cells, checker, costs, score
        self._keeps_rest, self._report = keeps_rest, report
        self._weights = cells.weights.astype(np.float64)
        self._ancestors = [np.stack(attribute.ancestors) for attribute in cells.attributes]

    def run(self, groups: Counts) -> Counts:
        """Return the class of each cell when no class can be specialized further; -1 stays as it is."""
        active = np.ones(int(groups.max(initial=-1)) + 1, dtype=bool)
        while active.any():
            groups, active = self._round(groups, active)
            if self._report is not None:
                self._report(1 - float(self._weights[_select_cells(active, groups)].sum() / self._weights.sum()))
        return groups

    def _round(self, groups: Counts, active: Truths) -> tuple[Counts, Truths]:
        lines = np.flatnonzero(_select_cells(active, groups))
        levels = Regions(partition=whole(self._cells, groups)).levels
        best = np.full(len(active), -np.inf)
        labels = np.zeros(len(lines), dtype=np.int64)
        for place in range(len(self._ancestors)):
            scores, parts = self._along(place, lines, groups[lines], levels[:, place].astype(np.int64))
            # Strictly better, so that of equal steps the first attribute wins.
            better = scores > best
            best[better] = scores[better]
            labels = np.where(better[groups[lines]], parts, labels)
        return _split(groups, lines, labels, best > -np.inf)

    def _along(self, place: int, lines: Counts, own: Counts, levels: Counts) -> tuple[Floats, Counts]:
        """Return each class's score for one quasi-identifier, and the part of its class that each line would be in."""
        size, codes, level = len(levels), self._cells.codes[lines, place], levels[own]
        lower = np.maximum(level - 1, 0)
        width = self._ancestors[place].shape[1]
        # Class and child in one number; an attribute has no more nodes than leaves, so that numbers do not meet.
        children = Keys(own * width + self._ancestors[place][lower, codes], size * width).renumber()
        owner = np.zeros(children.size, dtype=np.int64)
        owner[children.values] = own
        weights = self._weights[lines]
        saved = weights * (self._costs[place][level, codes] - self._costs[place][lower, codes])
        gains = sum_weights(children.values, saved, size=children.size)
        together = self._together(lines, children, owner, gains, size)
        # All that stays together has one label; classes are told apart by their owner.
        parts = np.where(together[children.values], children.size, children.values)
        fall = _fall(owner, together, gains, sum_weights(children.values, weights, size=children.size), size)
        # A step has to set at least one child free, and leave at least two parts.
        is_step = (fall.parts > 1) & (levels > 0) & (np.bincount(owner[~together], minlength=size) > 0)
        if not self._keeps_rest:
            is_step &= np.bincount(owner[together], minlength=size) == 0
        return np.where(is_step, self._score(fall), -np.inf), parts

    def _together(self, lines: Counts, children: Keys, owner: Counts, gains: Floats, size: int) -> Truths:
        together = ~self._checker.holds(self._over_cells(lines, children.values), children.size)
        return keep_together(
            together, owner, gains, lambda chosen: self._rest_holds(lines, children, owner, chosen, size)
        )

    def _rest_holds(self, lines: Counts, children: Keys, owner: Counts, chosen: Truths, size: int) -> Truths:
        rest = np.where(chosen, owner, -1)[children.values]
        return self._checker.holds(self._over_cells(lines, rest), size)

    def _over_cells(self, lines: Counts, values: Counts) -> Counts:
        groups = np.full(len(self._cells), -1, dtype=np.int64)
        groups[lines] = values
        return groups


def keep_together(together: Truths, owner: Counts, gains: Floats, holds: Callable[[Truths], Truths]) -> Truths:
    """Return which children stay together so that the rest of every owner holds or is empty, or is everything.

    Args:
        together: the children that must not stand alone.
        owner: the owner of each child.
        gains: what each child gains by standing alone; those that gain least are added first.
        holds: tells for each owner whether its children that stay together hold as one class.
    """
    together = together.copy()
    while together.any() and not together.all():
        owners = np.zeros(int(owner.max()) + 1, dtype=bool)
        owners[owner[together]] = True
        owners &= ~holds(together)[: len(owners)]
        open_children = np.flatnonzero(owners[owner] & ~together)
        if not len(open_children):
            break
        # Of each owner whose rest is still too small, the child that gains least by standing alone joins it.
        order = open_children[np.lexsort((gains[open_children], owner[open_children]))]
        together[order[np.diff(owner[order], prepend=-1) != 0]] = True
    return together


def _fall(owner: Counts, together: Truths, gains: Floats, rows: Floats, size: int) -> Fall:
    apart = ~together
    rest = sum_weights(owner[together], rows[together], size=size)
    smallest = np.where(rest > 0, rest, np.inf)
    np.minimum.at(smallest, owner[apart], rows[apart])
    return Fall(
        gain=sum_weights(owner[apart], gains[apart], size=size),
        parts=np.bincount(owner[apart], minlength=size) + (rest > 0),
        before=sum_weights(owner, rows, size=size),
        smallest=smallest,
    )


def _split(groups: Counts, lines: Counts, labels: Counts, falls: Truths) -> tuple[Counts, Truths]:
    """Return the new classes, numbered without gaps, and which of them may still be specialized."""
    width = int(labels.max(initial=0)) + 2
    # Zero is for cells of classes that stay, labels follow: no two classes share a number.
    keys = np.where(groups < 0, -1, groups * width)
    moved = lines[falls[groups[lines]]]
    keys[moved] += 1 + labels[falls[groups[lines]]]
    kept = np.flatnonzero(keys >= 0)
    old, numbers = np.unique(keys[kept], return_inverse=True)
    keys[kept] = numbers.ravel()
    return keys, falls[old // width]


def _select_cells(classes: Truths, groups: Counts) -> Truths:
    """Return the cells whose class is chosen."""
    # Cells in no class have the number -1, and pick the entry appended at the end.
    return np.append(classes, False)[groups]


SET_ASIDE = Fraction(1, 10)
"""The share of rows that the full-domain generalization of the second start may leave to later steps."""

_BUDGET = 200
"""The nodes that are looked at for the second start, which need not be the best."""


def local_recoding(task: Task) -> AlgorithmOutcome:
    """Return classes at least as good as those of the optimal full-domain generalization.

    Options of the task are those of the search for the optimum.

    Raises:
        LatticeTooLargeError: if the lattice has more nodes than the limit.
    """
    optimum = full_domain_optimum(task)
    found = [_specialize_groups(task, groups) for groups in _starts(task, optimum.partition)]
    # The optimum itself is among the candidates, so that the result is never worse.
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


def _with_rest(cells: CodedCells, checker: ClassChecker, groups: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the classes with those that do not hold as one, joined by others as far as it takes."""
    size = int(groups.max()) + 1

    def holds(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return checker.holds(np.where(chosen[groups], 0, -1), 1)

    rows = sum_weights(groups, cells.weights.astype(np.float64), size=size)
    together = keep_together(~checker.holds(groups, size), np.zeros(size, dtype=np.int64), rows, holds)
    if not together.any() or holds(together)[0]:
        yield np.unique(np.where(together[groups], size, groups), return_inverse=True)[1].astype(np.int64)


def _specialize_groups(task: Task, groups: NDArray[np.int64]) -> Partition:
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


@suppresses_outliers
def top_down(task: Task) -> AlgorithmOutcome:
    """Return classes that cannot be specialized further.

    Options of the task: ``score`` chooses the next step: "branching" (saved loss per bit that tells the new classes
    apart, the default), "anonymity" (saved loss per lost row of the smallest class) or "children" (fewest first);
    ``keep_rest=False`` takes only steps in which every child holds by itself.
    """
    score = check_choice(task.options.get("score", "branching"), name="score", allowed=tuple(SCORES))
    check_choice(task.loss, name="loss", allowed=tuple(LOSSES))
    cells = task.cells
    specializer = Specializer(
        cells,
        ClassChecker(cells, task.checks, k=task.k, overall=overall_counts(cells)),
        costs=leaf_costs(task.loss, cells),
        score=SCORES[score],
        keeps_rest=bool(task.options.get("keep_rest", True)),
        report=lambda share: task.progress(share, "specializing classes"),
    )
    groups = specializer.run(np.zeros(len(cells), dtype=np.int64))
    return AlgorithmOutcome(partition=whole(cells, groups), facts={"score": score})
