"""Suppression of outliers: rows that spoil their class are left out, where that is allowed and loses less.

A suppressed row counts as lost in every quasi-identifier, so that it pays to suppress a row only when the others of its
class gain more by that. What they would gain is computed for every member of every class at once: the loss of the class
without it, beside the loss with it. Those that gain most are set aside, within the limit, and the algorithm runs again
on what remains, where the rest of their classes finds better company. That is done a few times, with fewer rows set
aside when more do not pay, and the release that loses least is taken, which may be the one without suppression.

Where the algorithm finds no classes that satisfy the models at all, it runs on the rows that the best full-domain
recoding keeps: all of its classes satisfy them.

Privacy: the classes of what remains are found and checked as though nothing else had been there. Which rows are set
aside depends on quasi-identifiers, and on sensitive values only where models on these cannot be met otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import SUPPRESSED, Partition
from cloister.anonymize._suppression import suppress_failing
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Regions, Values, interval_losses
from cloister.errors import LatticeTooLargeError, UnsatisfiableError

Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float64]
Search: TypeAlias = Callable[[Task], AlgorithmOutcome]

_TRIES = 2
"""How often the algorithm runs again."""
_FEWER = 0.25
"""The share of the rows set aside that is tried next, when setting them aside did not pay."""
_LEAST_GAIN = 1e-9


def suppresses_outliers(search: Search) -> Search:
    """Return an algorithm that leaves out rows, within the suppression limit, where that loses less."""

    @wraps(search)
    def run(task: Task) -> AlgorithmOutcome:
        first = search(task)
        return _Improvement(search, task).run(first) if task.allowed else first

    return run


class _Improvement:
    """Runs an algorithm again on fewer rows."""

    def __init__(self, search: Search, task: Task) -> None:
        self._search, self._task = search, task

    def run(self, first: AlgorithmOutcome) -> AlgorithmOutcome:
        """Return the best outcome; the first one where nothing satisfies the models."""
        best, loss = self._judge(first)
        if loss == np.inf:
            best, loss = self._judge(self._without_failing() or first)
        share = 1.0
        for _ in range(_TRIES if loss < np.inf else 0):
            room = int((self._task.allowed - best.partition.suppressed) * share)
            aside = _spoilers(best.partition, best.values, room=room, k=self._task.k)
            if not aside.any():
                break
            found, less = self._judge(self._again(_count_kept(best.partition) - aside))
            if less < loss:
                best, loss = found, less
            else:
                share *= _FEWER
        return best

    def _judge(self, outcome: AlgorithmOutcome) -> tuple[AlgorithmOutcome, float]:
        """Return the outcome as it would be released, and its loss; infinite if it does not satisfy the models."""
        try:
            partition = suppress_failing(
                outcome.partition, self._task.checks, values=outcome.values, allowed=self._task.allowed
            )
        except UnsatisfiableError:
            return outcome, np.inf
        settled_outcome = replace(outcome, partition=partition)
        return settled_outcome, Regions(partition=partition, values=outcome.values).loss()

    def _without_failing(self) -> AlgorithmOutcome | None:
        """Return what the algorithm finds in the rows of the best full-domain recoding, which satisfy the models."""
        from cloister.anonymize.algorithms.lattice.optimal import full_domain_optimum

        try:
            optimum, loss = self._judge(full_domain_optimum(replace(self._task, loss="ncp", options={})))
        except LatticeTooLargeError:
            return None
        return None if loss == np.inf else self._again(_count_kept(optimum.partition))

    def _again(self, kept: Counts) -> AlgorithmOutcome:
        """Return what the algorithm finds in some rows of each record, as an outcome for all rows."""
        cells, records = self._task.cells, np.flatnonzero(kept)
        rows = int(kept.sum())
        # What was set aside counts against the same limit.
        left = self._task.allowed - (cells.total - rows)
        part = replace(self._task, cells=_restrict_cells(cells, records, kept), suppression_limit=Fraction(left, rows))
        found = self._search(part)
        return replace(found, partition=_lift_partition(found.partition, cells, records, kept))


def _count_kept(partition: Partition) -> Counts:
    """Return how many rows of each record are in a class."""
    released = partition.groups != SUPPRESSED
    size = len(partition.cells.record_weights)
    kept = np.bincount(partition.records[released], weights=partition.counts[released], minlength=size)
    return np.asarray(kept, dtype=np.int64)


def _restrict_cells(cells: CodedCells, records: Counts, kept: Counts) -> CodedCells:
    """Return the table of some rows of some records; attributes stay, so that losses mean the same."""
    used, number = np.unique(cells.record_cells[records], return_inverse=True)
    weights = kept[records]
    return replace(
        cells,
        codes=cells.codes[used],
        weights=np.bincount(number.ravel(), weights=weights).astype(np.int64),
        record_cells=number.ravel(),
        record_weights=weights,
        record_values=cells.record_values[records],
        record_subjects=None if cells.record_subjects is None else cells.record_subjects[records],
    )


def _lift_partition(partition: Partition, cells: CodedCells, records: Counts, kept: Counts) -> Partition:
    """Return a partition of some rows as one of all rows, the others suppressed."""
    rest = cells.record_weights - kept
    out = np.flatnonzero(rest)
    owners = np.concatenate([records[partition.records], out])
    groups = np.concatenate([partition.groups, np.full(len(out), SUPPRESSED)])
    counts = np.concatenate([partition.counts, rest[out]])
    order = np.lexsort((groups, owners))
    return Partition(cells=cells, records=owners[order], groups=groups[order], counts=counts[order])


def _spoilers(partition: Partition, values: Values, *, room: int, k: int) -> Counts:
    """Return how many rows of each record to set aside: of each class at most the member that spoils it most."""
    cells, regions = partition.cells, Regions(partition=partition, values=values)
    lines = np.flatnonzero(partition.groups != SUPPRESSED)
    # A member is what a class has of one cell, so that equal rows go or stay together.
    keys = partition.groups[lines] * len(cells) + partition.line_cells[lines]
    members, member = np.unique(keys, return_inverse=True)
    rows = np.bincount(member.ravel(), weights=partition.counts[lines])
    classes, owners = np.divmod(members, len(cells))
    sizes = regions.rows[classes]
    with_it = (regions.losses @ cells.weights_of_attributes)[classes]
    without = _losses_without(regions, classes, owners)
    # What is too small without the member must find other company, where it will hardly lose less than rows usually do.
    usual = float(with_it @ rows / rows.sum())
    without = np.where(sizes - rows < k, np.maximum(without, usual), without)
    gains = sizes * with_it - (sizes - rows) * without - rows
    # Members by gain, best first; then the first of each class, as many as there is room for.
    order = np.argsort(-gains / rows, kind="stable")
    order = order[gains[order] > _LEAST_GAIN]
    order = order[np.sort(np.unique(classes[order], return_index=True)[1])]
    chosen = np.zeros(len(members), dtype=bool)
    chosen[order[np.cumsum(rows[order]) <= room]] = True
    mine = lines[chosen[member.ravel()]]
    aside = np.bincount(partition.records[mine], weights=partition.counts[mine], minlength=len(cells.record_weights))
    return np.asarray(aside, dtype=np.int64)


def _losses_without(regions: Regions, classes: Counts, owners: Counts) -> Losses:
    """Return the weighted loss that the class of each member would have without it; members are sorted by class."""
    cells = regions.partition.cells
    total = np.zeros(len(classes))
    for place, weight in enumerate(cells.weights_of_attributes):
        attribute, codes = cells.attributes[place], cells.codes[owners, place].astype(np.int64)
        if regions.values is Values.HIERARCHY:
            found = _node_losses(attribute, classes, codes)
        elif attribute.is_ordered:
            found = _interval_losses(attribute, classes, codes)
        else:
            found = (_others(classes, codes) - 1).clip(0) / max(len(attribute.leaves) - 1, 1)
        total += weight * found
    return total


def _others(classes: Counts, codes: NDArray[np.integer]) -> Counts:
    """Return how many different codes the other members of each member's class have."""
    width = int(codes.max()) + 1
    pairs, inverse, counts = np.unique(classes * width + codes, return_inverse=True, return_counts=True)
    distinct = np.bincount(pairs // width, minlength=int(classes[-1]) + 1)
    return np.asarray(distinct[classes] - (counts[inverse.ravel()] == 1))


def _ends(classes: Counts) -> tuple[Counts, Counts]:
    """Return the places of the first and of the last member of each member's class."""
    return np.searchsorted(classes, classes), np.searchsorted(classes, classes, side="right") - 1


def _node_losses(attribute: CodedAttribute, classes: Counts, codes: Counts) -> Losses:
    """Return the loss of the lowest node that holds the other members: it is above any one of them."""
    first, last = _ends(classes)
    # Any other member lies below the same node: the first, or the last where the first is the member itself.
    other = codes[np.where(np.arange(len(codes)) == first, last, first)]
    level = np.zeros(len(codes), np.int64)
    for ancestors in attribute.ancestors[:-1]:
        level += _others(classes, ancestors[codes]) > 1
    return attribute.leaf_losses[level, other]


def _interval_losses(attribute: CodedAttribute, classes: Counts, codes: Counts) -> Losses:
    """Return the loss of the interval of the other members: the ends of the sorted codes, or the next ones to them."""
    order = np.lexsort((codes, classes))
    ranked, place = codes[order], np.arange(len(codes))
    first, last = _ends(classes)
    low = ranked[np.where(place == first, np.minimum(first + 1, last), first)]
    high = ranked[np.where(place == last, np.maximum(last - 1, first), last)]
    found = np.empty(len(codes))
    found[order] = interval_losses(attribute, low, high)
    return found
