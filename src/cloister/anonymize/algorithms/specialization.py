"""Specialization of classes: each class goes down the hierarchies on its own, as long as what it falls into holds.

A class is specialized along one quasi-identifier: its rows fall apart by the children of the node they share. Children
that satisfy every check become classes; the rows of the others stay together under the old node, joined by further
children where they do not satisfy the checks by themselves. All classes take their best step at once, round by round,
so a round costs a few passes over the frequency table however many classes there are.

Every class that is made has been checked, so the result is right for any check that does not depend on other classes;
that no step is left which holds needs monotone checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.lattice.grouping import Keys, counted
from cloister.anonymize.algorithms.lattice.judging import ClassChecker
from cloister.anonymize.cells import Cells
from cloister.anonymize.partition import whole
from cloister.anonymize.regions import Regions

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
        cells: Cells,
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
                self._report(1 - float(self._weights[_chosen(active, groups)].sum() / self._weights.sum()))
        return groups

    def _round(self, groups: Counts, active: Truths) -> tuple[Counts, Truths]:
        lines = np.flatnonzero(_chosen(active, groups))
        levels = Regions(partition=whole(self._cells, groups)).levels
        best = np.full(len(active), -np.inf)
        labels = np.zeros(len(lines), dtype=np.int64)
        for place in range(len(self._ancestors)):
            scores, parts = self._along(place, lines, groups[lines], levels[:, place].astype(np.int64))
            better = scores > best
            best[better] = scores[better]
            labels = np.where(better[groups[lines]], parts, labels)
        return _split(groups, lines, labels, best > -np.inf)

    def _along(self, place: int, lines: Counts, own: Counts, levels: Counts) -> tuple[Floats, Counts]:
        """Return each class's score for one quasi-identifier, and the part of its class that each line would be in."""
        size, codes, level = len(levels), self._cells.codes[lines, place], levels[own]
        lower = np.maximum(level - 1, 0)
        width = self._ancestors[place].shape[1]
        children = Keys(own * width + self._ancestors[place][lower, codes], size * width).numbered()
        owner = np.zeros(children.size, dtype=np.int64)
        owner[children.values] = own
        weights = self._weights[lines]
        saved = weights * (self._costs[place][level, codes] - self._costs[place][lower, codes])
        gains = counted(children.values, saved, size=children.size)
        together = self._together(lines, children, owner, gains, size)
        parts = np.where(together[children.values], children.size, children.values)
        fall = _fall(owner, together, gains, counted(children.values, weights, size=children.size), size)
        is_step = (fall.parts > 1) & (levels > 0) & (np.bincount(owner[~together], minlength=size) > 0)
        if not self._keeps_rest:
            is_step &= np.bincount(owner[together], minlength=size) == 0
        return np.where(is_step, self._score(fall), -np.inf), parts

    def _together(self, lines: Counts, children: Keys, owner: Counts, gains: Floats, size: int) -> Truths:
        together = ~self._checker.holds(self._over_cells(lines, children.values), children.size)
        return gathered(together, owner, gains, lambda chosen: self._rest_holds(lines, children, owner, chosen, size))

    def _rest_holds(self, lines: Counts, children: Keys, owner: Counts, chosen: Truths, size: int) -> Truths:
        rest = np.where(chosen, owner, -1)[children.values]
        return self._checker.holds(self._over_cells(lines, rest), size)

    def _over_cells(self, lines: Counts, values: Counts) -> Counts:
        groups = np.full(len(self._cells), -1, dtype=np.int64)
        groups[lines] = values
        return groups


def gathered(together: Truths, owner: Counts, gains: Floats, holds: Callable[[Truths], Truths]) -> Truths:
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
        order = open_children[np.lexsort((gains[open_children], owner[open_children]))]
        together[order[np.diff(owner[order], prepend=-1) != 0]] = True
    return together


def _fall(owner: Counts, together: Truths, gains: Floats, rows: Floats, size: int) -> Fall:
    apart = ~together
    rest = counted(owner[together], rows[together], size=size)
    smallest = np.where(rest > 0, rest, np.inf)
    np.minimum.at(smallest, owner[apart], rows[apart])
    return Fall(
        gain=counted(owner[apart], gains[apart], size=size),
        parts=np.bincount(owner[apart], minlength=size) + (rest > 0),
        before=counted(owner, rows, size=size),
        smallest=smallest,
    )


def _split(groups: Counts, lines: Counts, labels: Counts, falls: Truths) -> tuple[Counts, Truths]:
    """Return the new classes, numbered without gaps, and which of them may still be specialized."""
    width = int(labels.max(initial=0)) + 2
    keys = np.where(groups < 0, -1, groups * width)
    moved = lines[falls[groups[lines]]]
    keys[moved] += 1 + labels[falls[groups[lines]]]
    kept = np.flatnonzero(keys >= 0)
    old, numbers = np.unique(keys[kept], return_inverse=True)
    keys[kept] = numbers.ravel()
    return keys, falls[old // width]


def _chosen(classes: Truths, groups: Counts) -> Truths:
    """Return the cells whose class is chosen."""
    return np.append(classes, False)[groups]
