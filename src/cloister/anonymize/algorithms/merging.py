"""Merge classes that fail a model with their nearest neighbors until all classes satisfy it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cloister.anonymize.algorithms.base import Task
from cloister.anonymize.algorithms.points import Points
from cloister.anonymize.models import all_hold, classes_of
from cloister.anonymize.partition import Partition

__all__ = ["merge_failing"]

Counts: TypeAlias = NDArray[np.int64]


def merge_failing(partition: Partition, task: Task, *, points: Points) -> Partition:
    """Return the partition with every failing class merged with the class whose center is nearest, and so on.

    Monotone models hold in the end, if the whole table satisfies them. Classes keep the order of their first members.
    """
    while partition.size > 1:
        fails = np.flatnonzero(~all_hold(task.checks, classes_of(partition, values=task.values)))
        if not len(fails):
            break
        nearest = _nearest(partition, points, fails)
        size = partition.size
        links = coo_array((np.ones(len(fails)), (fails, nearest)), shape=(size, size))
        _, merged = connected_components(links, directed=False)
        partition = replace(partition, groups=_numbered(merged)[partition.groups])
    return partition


def _nearest(partition: Partition, points: Points, fails: Counts) -> Counts:
    """Return the other class whose center is nearest to the center of each failing class."""
    order = np.argsort(partition.groups, kind="stable")
    ends = np.cumsum(np.bincount(partition.groups))
    members = np.split(order, ends[:-1])
    cells, counts = partition.line_cells, partition.counts
    centers = [points.take(cells[lines]).center(counts[lines]) for lines in members]
    among = replace(
        points,
        numbers=np.array([numbers for numbers, _ in centers]).T.reshape(len(points.numbers), len(centers)),
        codes=np.array([codes for _, codes in centers], dtype=np.int64).T.reshape(len(points.codes), len(centers)),
    )
    found = []
    for number in fails:
        distances = among.distances(centers[number])
        distances[number] = np.inf
        found.append(int(distances.argmin()))
    return np.array(found)


def _numbered(merged: NDArray[np.int32]) -> Counts:
    """Return components numbered in the order of their first members."""
    _, first, inverse = np.unique(merged, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first)))[inverse.ravel()]
