"""Merge classes that fail a model with their nearest neighbors until all classes satisfy it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.algorithms.base import Task
from cloister.anonymize.algorithms.points import Points
from cloister.anonymize.models import all_hold, classes_of
from cloister.anonymize.partition import Partition

__all__ = ["merge_failing"]

Counts: TypeAlias = NDArray[np.int64]


def merge_failing(partition: Partition, task: Task, *, points: Points) -> Partition:
    """Return the partition with failing classes merged with the classes whose centers are nearest, two by two.

    Monotone models hold in the end, if the whole table satisfies them. Classes keep the order of their first members.
    """
    while partition.size > 1:
        fails = np.flatnonzero(~all_hold(task.checks, classes_of(partition, values=task.values)))
        if not len(fails):
            break
        partner = _pairs(fails, _nearest(partition, points, fails), partition.size)
        _, number = np.unique(np.minimum(partner, np.arange(partition.size)), return_inverse=True)
        partition = replace(partition, groups=number.ravel()[partition.groups])
    return partition


def _pairs(fails: Counts, nearest: Counts, size: int) -> Counts:
    """Return the partner of each class, itself if it has none; in a round a class has at most one."""
    partner = np.arange(size)
    for one, other in zip(fails, nearest, strict=True):
        if partner[one] == one and partner[other] == other:
            partner[one], partner[other] = other, one
    return partner


def _nearest(partition: Partition, points: Points, fails: Counts) -> Counts:
    """Return the other class whose center is nearest to the center of each failing class."""
    order = np.argsort(partition.groups, kind="stable")
    ends = np.cumsum(np.bincount(partition.groups))
    members = np.split(order, ends[:-1])
    cells, counts = partition.line_cells, partition.counts
    centers = [points.take(cells[lines]).center(counts[lines]) for lines in members]
    among = replace(
        points,
        numbers=np.array([numbers for numbers, _ in centers]).reshape(len(centers), -1).T,
        codes=np.array([codes for _, codes in centers], dtype=np.int64).reshape(len(centers), -1).T,
    )
    found = []
    for number in fails:
        distances = among.distances(centers[number])
        distances[number] = np.inf
        found.append(int(distances.argmin()))
    return np.array(found)
