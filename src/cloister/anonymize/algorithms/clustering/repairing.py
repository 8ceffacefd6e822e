"""Merge classes that fail a model with the classes where that costs least, until all satisfy it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.base import Task
from cloister.anonymize.algorithms.clustering.unions import first_codes, union_losses
from cloister.anonymize.models import all_hold, all_hold_together, classes_of
from cloister.anonymize.partition import Partition
from cloister.anonymize.regions import Regions, Values

Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float64]
Truths: TypeAlias = NDArray[np.bool_]

_CLASSES = 1024
_BLOCK = 256


def repaired(partition: Partition, task: Task, *, values: Values) -> Partition:
    """Return the partition with failing classes merged, or left to be suppressed where that is allowed and better."""
    fails = _fails(partition, task)
    if not fails.any():
        return partition
    dropped = partition.without(fails)
    merged = _merged(partition, task, values, fails)
    if dropped.suppressed > task.allowed or not dropped.size or not _hold_together(dropped, task):
        return merged
    losses = [Regions(partition=found, values=values).loss() for found in (merged, dropped)]
    return merged if losses[0] <= losses[1] and not _fails(merged, task).any() else dropped


def _fails(partition: Partition, task: Task) -> Truths:
    return ~all_hold(task.checks, classes_of(partition, values=task.values))


def _hold_together(partition: Partition, task: Task) -> bool:
    """Return whether the classes satisfy the models as all that is released: presence is about all of them."""
    return bool(all_hold_together(task.checks, classes_of(partition, values=task.values)).all())


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
    size = regions.partition.size
    partner, price = np.zeros(size, dtype=np.int64), np.zeros(size)
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
    return np.asarray(np.where(block[:, None] == part, np.inf, costs))
