"""Merge classes that fail a model with the classes where that costs least, until all satisfy it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.base import Task
from cloister.anonymize.attributes import Attribute
from cloister.anonymize.models import all_hold, classes_of
from cloister.anonymize.partition import Partition
from cloister.anonymize.regions import Regions, Values

Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float64]
Truths: TypeAlias = NDArray[np.bool_]

_CLASSES = 2048
_BLOCK = 256


def repaired(partition: Partition, task: Task, *, values: Values) -> Partition:
    """Return the partition with failing classes merged, or left to be suppressed where that is allowed and better."""
    fails = _fails(partition, task)
    if not fails.any():
        return partition
    dropped = partition.without(fails)
    merged = _merged(partition, task, values, fails)
    if dropped.suppressed > task.allowed or not dropped.size or _fails(dropped, task).any():
        return merged
    losses = [Regions(partition=found, values=values).loss() for found in (merged, dropped)]
    return merged if losses[0] <= losses[1] and not _fails(merged, task).any() else dropped


def _fails(partition: Partition, task: Task) -> Truths:
    return ~all_hold(task.checks, classes_of(partition, values=task.values))


def _merged(partition: Partition, task: Task, values: Values, fails: Truths) -> Partition:
    """Merge in rounds. Every round merges at least one class, so that it ends with one class at the latest."""
    while fails.any() and partition.size > 1:
        regions = Regions(partition=partition, values=values)
        partner, price = _partners(regions, fails)
        number = _accepted(partner, price, fails)
        _, number = np.unique(number, return_inverse=True)
        partition = replace(partition, groups=number.ravel()[partition.groups])
        fails = _fails(partition, task)
    return partition


def _accepted(partner: Counts, price: Losses, fails: Truths) -> Counts:
    """Return the new number of each class. Many may join a class that is well; others are merged by twos."""
    number = np.arange(len(partner))
    is_taken = np.zeros(len(partner), dtype=bool)
    for failing in np.flatnonzero(fails)[np.argsort(price[fails], kind="stable")].tolist():
        other = int(partner[failing])
        if is_taken[failing] or (is_taken[other] and fails[other]):
            continue
        is_taken[failing] = is_taken[other] = True
        number[failing] = other
    return number


def _partners(regions: Regions, fails: Truths) -> tuple[Counts, Losses]:
    """Return for each failing class where it is merged best, and what that costs."""
    size, cells = regions.partition.size, regions.partition.cells
    shown = np.column_stack([regions.codes(place)[_firsts(regions)] for place in range(len(cells.attributes))])
    order = np.lexsort(shown.T[np.argsort(-regions.losses.sum(axis=0))])
    partner, price = np.zeros(size, dtype=np.int64), np.zeros(size)
    for part in np.array_split(order, -(-size // _CLASSES)):
        failing = part[fails[part]]
        for start in range(0, len(failing), _BLOCK):
            block = failing[start : start + _BLOCK]
            costs = _merging_costs(regions, block, part)
            best = costs.argmin(axis=1)
            partner[block], price[block] = part[best], costs[np.arange(len(block)), best]
    return partner, price


def _firsts(regions: Regions) -> Counts:
    return np.searchsorted(regions.class_of_line, np.arange(regions.partition.size))


def _merging_costs(regions: Regions, block: Counts, part: Counts) -> Losses:
    """Return what the loss of the table grows by when a class of the block (row) joins one of the part (column)."""
    weights = regions.partition.cells.weights_of_attributes
    joint = np.zeros((len(block), len(part)))
    for place, weight in enumerate(weights):
        joint += weight * _joint_losses(regions, place, block, part)
    own = regions.rows * (regions.losses @ weights)
    costs = joint * (regions.rows[block][:, None] + regions.rows[part]) - own[block][:, None] - own[part]
    return np.where(block[:, None] == part, np.inf, costs)


def _joint_losses(regions: Regions, place: int, block: Counts, part: Counts) -> Losses:
    attribute = regions.partition.cells.attributes[place]
    if regions.values is Values.HIERARCHY:
        return _joint_nodes(regions, place, attribute, block, part)
    member = regions.membership(place)
    if attribute.is_ordered:
        return _joint_intervals(attribute, member, block, part)
    mine, theirs = member[block].astype(np.float32), member[part].astype(np.float32)
    union = mine.sum(axis=1)[:, None] + theirs.sum(axis=1) - mine @ theirs.T
    return np.asarray((union - 1) / max(len(attribute.leaves) - 1, 1), dtype=np.float64)


def _joint_nodes(regions: Regions, place: int, attribute: Attribute, block: Counts, part: Counts) -> Losses:
    first = regions.codes(place)[_firsts(regions)]
    level = np.maximum(regions.levels[block, place][:, None], regions.levels[part, place])
    for low, ancestors in enumerate(attribute.ancestors[:-1]):
        apart = ancestors[first[block]][:, None] != ancestors[first[part]]
        level = np.where(apart, np.maximum(level, low + 1), level)
    return np.asarray(attribute.leaf_losses[level, first[block][:, None]])


def _joint_intervals(attribute: Attribute, member: Truths, block: Counts, part: Counts) -> Losses:
    low, high = member.argmax(axis=1), member.shape[1] - 1 - member[:, ::-1].argmax(axis=1)
    lows, highs = np.minimum(low[block][:, None], low[part]), np.maximum(high[block][:, None], high[part])
    positions = np.zeros(1) if attribute.positions is None else attribute.positions
    width = (positions[highs] - positions[lows]) / (attribute.span or 1.0)
    return np.asarray(np.where(np.isnan(width), (lows != highs).astype(np.float64), width))
