"""Merge classes that fail a model with the classes where that costs least, until all satisfy it.

What two classes would lose as one is computed for all pairs of some classes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import Partition
from cloister.anonymize.algorithms._base import Task
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.models import all_hold, all_hold_together, classes_of
from cloister.anonymize.regions import Regions, Values

ClassNumbers: TypeAlias = NDArray[np.int64]
UnionLosses: TypeAlias = NDArray[np.float64]

_FEW_LEAVES = 1024


def union_losses(regions: Regions, classes: ClassNumbers, among: ClassNumbers) -> UnionLosses:
    """Return the weighted loss of a row in the union of two classes: some (rows) with others (columns)."""
    total = np.zeros((len(classes), len(among)))
    for place, weight in enumerate(regions.partition.cells.weights_of_attributes):
        total += weight * _losses(regions, place, classes, among)
    return total


def first_codes(regions: Regions, place: int) -> NDArray[np.int32]:
    """Return the leaf of the first line of each class."""
    return regions.codes(place)[np.searchsorted(regions.class_of_line, np.arange(regions.partition.size))]


def _losses(regions: Regions, place: int, classes: ClassNumbers, among: ClassNumbers) -> UnionLosses:
    attribute = regions.partition.cells.attributes[place]
    if regions.values is Values.HIERARCHY:
        return _nodes(regions, place, classes, among)
    if attribute.is_ordered:
        return _intervals(regions, place, classes, among)
    mine, theirs = (_members(regions, place, chosen) for chosen in (classes, among))
    # What two sets have in common is one product of matrices, for all pairs at once.
    union = mine.sum(axis=1)[:, None] + theirs.sum(axis=1) - mine @ theirs.T
    return np.asarray((union - 1) / max(len(attribute.leaves) - 1, 1), dtype=np.float64)


def _nodes(regions: Regions, place: int, classes: ClassNumbers, among: ClassNumbers) -> UnionLosses:
    attribute, levels, first = (
        regions.partition.cells.attributes[place],
        regions.levels[:, place],
        first_codes(regions, place),
    )
    # The common node is above the nodes of both classes and above where their first leaves meet.
    level = np.maximum(levels[classes][:, None], levels[among])
    np.maximum(level, _meeting(attribute, first[classes], first[among]), out=level)
    losses = np.ascontiguousarray(attribute.leaf_losses[:, first[classes]].T)
    return np.take_along_axis(losses, level.astype(np.int64), axis=1)


def _meeting(attribute: CodedAttribute, leaves: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[np.int8]:
    """Return the lowest level at which leaves (rows) have the same ancestor as others (columns)."""
    if len(attribute.leaves) <= _FEW_LEAVES:
        return np.asarray(attribute.meeting_levels[leaves[:, None], others])
    level = np.zeros((len(leaves), len(others)), dtype=np.int8)
    # Ancestors that differ at a level differ at all levels below, so that their number is the level of meeting.
    for ancestors in attribute.ancestors[:-1]:
        level += ancestors[leaves][:, None] != ancestors[others]
    return level


def _intervals(regions: Regions, place: int, classes: ClassNumbers, among: ClassNumbers) -> UnionLosses:
    attribute: CodedAttribute = regions.partition.cells.attributes[place]
    codes = regions.codes(place)
    starts = np.searchsorted(regions.class_of_line, np.arange(regions.partition.size))
    low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    lows, highs = np.minimum(low[classes][:, None], low[among]), np.maximum(high[classes][:, None], high[among])
    positions = np.zeros(1) if attribute.positions is None else attribute.positions
    width = (positions[highs] - positions[lows]) / (attribute.span or 1.0)
    # A missing value has no position: with another value it costs everything.
    return np.asarray(np.where(np.isnan(width), (lows != highs).astype(np.float64), width))


def _members(regions: Regions, place: int, chosen: ClassNumbers) -> NDArray[np.float32]:
    """Return which leaves (columns) the rows of each chosen class (row) have."""
    starts = np.searchsorted(regions.class_of_line, chosen)
    lengths = np.searchsorted(regions.class_of_line, chosen, side="right") - starts
    # The lines of each class are consecutive: its start, and a count that begins anew for each.
    line = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    members = np.zeros((len(chosen), len(regions.partition.cells.attributes[place].leaves)), dtype=np.float32)
    members[np.repeat(np.arange(len(chosen)), lengths), regions.codes(place)[line]] = 1
    return members


Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float64]
Truths: TypeAlias = NDArray[np.bool_]

_CLASSES = 1024
_BLOCK = 256


def merge_failing_classes(partition: Partition, task: Task, *, values: Values) -> Partition:
    """Return the partition with failing classes merged, or left to be suppressed where that is allowed and better."""
    fails = _fails(partition, task)
    if not fails.any():
        return partition
    dropped = partition.without(fails)
    merged = _merge_in_rounds(partition, task, values, fails)
    # Suppression is an alternative only within the limit, and only if what is left holds as a whole.
    if dropped.suppressed > task.allowed or not dropped.size or not _hold_together(dropped, task):
        return merged
    losses = [Regions(partition=found, values=values).loss() for found in (merged, dropped)]
    return merged if losses[0] <= losses[1] and not _fails(merged, task).any() else dropped


def _fails(partition: Partition, task: Task) -> Truths:
    return ~all_hold(task.checks, classes_of(partition, values=task.values))


def _hold_together(partition: Partition, task: Task) -> bool:
    """Return whether the classes satisfy the models as all that is released: presence is about all of them."""
    return bool(all_hold_together(task.checks, classes_of(partition, values=task.values)).all())


def _merge_in_rounds(partition: Partition, task: Task, values: Values, fails: Truths) -> Partition:
    """Merge in rounds. Every round merges at least one class, so that it ends with one class at the latest."""
    while fails.any() and partition.size > 1:
        regions = Regions(partition=partition, values=values)
        partner, price = _partners(regions, fails)
        number = _accept_partners(partner, price, fails)
        _, number = np.unique(number, return_inverse=True)
        partition = replace(partition, groups=number.ravel()[partition.groups])
        fails = _fails(partition, task)
    return partition


def _accept_partners(partner: Counts, price: Losses, fails: Truths) -> Counts:
    """Return the new number of each class. Many may join a class that is well; others are merged by twos."""
    number = np.arange(len(partner))
    is_taken = np.zeros(len(partner), dtype=bool)
    for failing in np.flatnonzero(fails)[np.argsort(price[fails], kind="stable")].tolist():
        other = int(partner[failing])
        # A class that fails changes by a merge, so that its own price is no longer right in this round.
        if is_taken[failing] or (is_taken[other] and fails[other]):
            continue
        is_taken[failing] = is_taken[other] = True
        number[failing] = other
    return number


def _partners(regions: Regions, fails: Truths) -> tuple[Counts, Losses]:
    """Return for each failing class where it is merged best, and what that costs."""
    size = regions.partition.size
    partner, price = np.zeros(size, dtype=np.int64), np.zeros(size)
    # All pairs of classes would be too many: only those near each other in the order are compared.
    for part in np.array_split(_near_order(regions), -(-size // _CLASSES)):
        failing = part[fails[part]]
        for start in range(0, len(failing), _BLOCK):
            block = failing[start : start + _BLOCK]
            costs = _merging_costs(regions, block, part)
            best = costs.argmin(axis=1)
            partner[block], price[block] = part[best], costs[np.arange(len(block)), best]
    return partner, price


def _near_order(regions: Regions) -> Counts:
    """Return the classes in an order in which neighbors are alike, sorted first by what is best kept."""
    places = np.argsort(-regions.losses.sum(axis=0), kind="stable")
    return np.lexsort([first_codes(regions, int(place)) for place in places])


def _merging_costs(regions: Regions, block: Counts, part: Counts) -> Losses:
    """Return what the loss of the table grows by when a class of the block (row) joins one of the part (column)."""
    own = regions.rows * (regions.losses @ regions.partition.cells.weights_of_attributes)
    rows = regions.rows[block][:, None] + regions.rows[part]
    costs = union_losses(regions, block, part) * rows - own[block][:, None] - own[part]
    # A class cannot be merged with itself.
    return np.asarray(np.where(block[:, None] == part, np.inf, costs))
