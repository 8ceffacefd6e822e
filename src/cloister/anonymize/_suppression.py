"""Suppression of failing classes, the last word on every outcome: alike classes are merged, and all are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import SUPPRESSED, Partition, verify, whole
from cloister.anonymize.cells import group_lines
from cloister.anonymize.models import ModelCheck, all_hold, all_hold_together, classes_of
from cloister.anonymize.regions import Regions, Values
from cloister.errors import UnsatisfiableError


def suppress_failing(partition: Partition, checks: Sequence[ModelCheck], *, values: Values, allowed: int) -> Partition:
    """Return the partition with every class that fails a model suppressed, as often as it takes.

    Suppression changes the table that closeness compares with, so that the models are checked until nothing changes.
    Classes that satisfy a model by themselves and not beside each other become one class.

    Raises:
        UnsatisfiableError: if more rows than allowed, or all of them, would have to be suppressed.
    """
    # An algorithm need not be trusted, neither for its rows nor for its classes.
    verify(partition)
    partition = merge_alike(partition, values)
    failing = set() if partition.size else _failing(checks, _everything(partition), values)
    while partition.size:
        classes = classes_of(partition, values=values)
        holds = all_hold_together(checks, classes)
        if holds.all():
            break
        alone = all_hold(checks, classes)
        # Each class holds by itself and some do not beside the others: as one class they may.
        if alone.all() and partition.levels is None and (~holds).sum() > 1:
            partition = merge_alike(_join_classes(partition, ~holds), values)
            continue
        failing |= _failing(checks, partition, values)
        partition = partition.without(~holds if alone.all() else ~alone)
    if partition.suppressed > allowed or not partition.size:
        which = ", ".join(check.model.brief() for check in checks if check in failing) or "the models"
        raise UnsatisfiableError(
            f"The algorithm found no release that satisfies {which} within the suppression limit.",
            fix="raise suppression_limit, weaken a model, or use another algorithm.",
        )
    return partition


def _everything(partition: Partition) -> Partition:
    """Return the partition in which all rows are one class."""
    return whole(partition.cells, np.zeros(len(partition.cells), dtype=np.int64))


def _join_classes(partition: Partition, chosen: NDArray[np.bool_]) -> Partition:
    """Return the partition with some classes made one."""
    number = np.where(chosen, 0, np.cumsum(~chosen))
    groups = np.where(partition.groups == SUPPRESSED, SUPPRESSED, number[partition.groups])
    return replace(partition, groups=groups)


def _failing(checks: Sequence[ModelCheck], partition: Partition, values: Values) -> set[ModelCheck]:
    """Return the models that some class fails."""
    classes = classes_of(partition, values=values)
    return {check for check in checks if not check.holds_together(classes).all()}


def merge_alike(partition: Partition, values: Values) -> Partition:
    """Return the partition in which classes that show the same are one class.

    A merged class may show something else than its parts (sets of names that have commas in them), so that it is done
    until nothing changes.
    """
    while partition.size:
        regions = Regions(partition=partition, values=values)
        columns = [_number_labels(regions, place) for place in range(len(partition.cells.attributes))]
        shape = tuple(int(column.max(initial=0)) + 1 for column in columns)
        _, starts, number = group_lines(np.column_stack(columns), shape)
        if len(starts) == partition.size:
            break
        groups = np.where(partition.groups == SUPPRESSED, SUPPRESSED, number[partition.groups])
        partition = replace(partition, groups=groups)
    return partition


def _number_labels(regions: Regions, place: int) -> NDArray[np.int64]:
    """Return a number for what each class shows in one attribute, equal where it is equal."""
    # One name may stand for nodes of several levels; what is shown decides, and not where it comes from.
    known: dict[object, int] = {}
    if regions.values is Values.HIERARCHY:
        labels = regions.partition.cells.attributes[place].labels
        offsets = np.cumsum([0, *(len(names) for names in labels)])
        numbers = np.array([known.setdefault(name, len(known)) for names in labels for name in names])
        return np.asarray(numbers[offsets[regions.levels[:, place]] + regions.nodes(place)])
    shown = regions.labels(place)
    return np.array([known.setdefault(label, len(known)) for label in shown], dtype=np.int64)
