"""Equivalence classes as privacy models look at them: rows, persons and sensitive values, for all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import SUPPRESSED, Partition, whole
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Regions, Values

Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Histogram:
    """How often each sensitive value occurs in each class: one line per class and value that occurs, sorted by both.

    Attributes:
        classes: the class of each line.
        values: the value code of each line.
        counts: the rows of each line.
        sizes: the rows of each class.
        overall: the rows of each value in the table that classes are compared with.
    """

    classes: Counts
    values: Counts
    counts: Counts
    sizes: Counts
    overall: Counts

    @cached_property
    def starts(self) -> Counts:
        """Return where the lines of each class start."""
        return np.searchsorted(self.classes, np.arange(len(self.sizes)))

    def add(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over the lines of each class."""
        return np.bincount(self.classes, weights=numbers, minlength=len(self.sizes)).astype(np.float64)

    @cached_property
    def largest(self) -> Counts:
        """Return the count of the most frequent value of each class."""
        return np.maximum.reduceat(self.counts, self.starts) if len(self.sizes) else self.sizes

    @cached_property
    def distinct(self) -> Counts:
        """Return the number of values of each class."""
        return np.bincount(self.classes, minlength=len(self.sizes))

    def dense(self, start: int, stop: int) -> Counts:
        """Return the counts of all values for the classes from one number up to another."""
        low, high = np.searchsorted(self.classes, (start, stop))
        counts = np.zeros((stop - start, len(self.overall)), dtype=np.int64)
        counts[self.classes[low:high] - start, self.values[low:high]] = self.counts[low:high]
        return counts


@dataclass(frozen=True, eq=False, kw_only=True)
class EquivalenceClasses:
    """What models ask about a set of classes.

    Attributes:
        cells: the table.
        records: the record of each line.
        groups: the class of each line, from 0 without gaps; suppressed lines are left out.
        counts: the rows of each line.
        size: the number of classes.
        overall: the counts of sensitive values to compare with; those of these classes by default.
        fitting: how many rows of the population fit each class, asked only by models that need it.
        expecting: how many released rows are expected to be of one person; see `Regions.presence`.
    """

    cells: CodedCells
    records: Counts
    groups: Counts
    counts: Counts
    size: int
    overall: Mapping[str, Counts] = field(default_factory=dict)
    fitting: Callable[[], Counts] | None = None
    expecting: Callable[[], tuple[NDArray[np.float64], float]] | None = None

    def __repr__(self) -> str:
        return f"Classes({self.cells.names}, {self.size} classes)"

    @cached_property
    def rows(self) -> Counts:
        """Return the number of rows of each class."""
        return np.bincount(self.groups, weights=self.counts, minlength=self.size).astype(np.int64)

    @cached_property
    def persons(self) -> Counts:
        """Return the number of different persons of each class; rows where persons are not told apart."""
        subjects = self.cells.record_subjects
        if subjects is None:
            return self.rows
        size = int(subjects.max(initial=0)) + 1
        # Class and person in one number: each person counts once in a class.
        pairs = np.unique(self.groups * size + subjects[self.records])
        return np.bincount(pairs // size, minlength=self.size)

    def histogram(self, name: str) -> Histogram:
        """Return the counts of one sensitive attribute."""
        place = self.cells.place_of(name)
        width = len(self.cells.sensitive[place].values)
        keys = self.groups * width + self.cells.record_values[self.records, place]
        lines, counts = sum_by_key(keys, self.counts, self.size * width)
        values = lines % width
        overall = self.overall.get(name)
        if overall is None:
            overall = np.bincount(values, weights=counts, minlength=width).astype(np.int64)
        return Histogram(classes=lines // width, values=values, counts=counts, sizes=self.rows, overall=overall)

    def population(self) -> Counts:
        """Return how many rows of the population fit each class."""
        return np.zeros(self.size, dtype=np.int64) if self.fitting is None else self.fitting()

    def presence(self) -> tuple[NDArray[np.float64], float]:
        """Return how many rows are expected to be of one person: at most in each class, and at least of anybody."""
        return (np.zeros(self.size), 0.0) if self.expecting is None else self.expecting()


def classes_of(partition: Partition, *, values: Values = Values.HIERARCHY) -> EquivalenceClasses:
    """Return the classes of a partition, suppressed rows left out."""
    kept = partition.groups != SUPPRESSED
    return EquivalenceClasses(
        cells=partition.cells,
        records=partition.records[kept],
        groups=partition.groups[kept],
        counts=partition.counts[kept],
        size=partition.size,
        fitting=lambda: Regions(partition=partition, values=values).population(),
        expecting=lambda: Regions(partition=partition, values=values).presence(),
    )


def classes_of_cells(
    cells: CodedCells, groups: Counts, size: int, *, overall: Mapping[str, Counts]
) -> EquivalenceClasses:
    """Return the classes that whole cells form; cells with a negative number are left out."""
    mine = groups[cells.record_cells]
    records = np.flatnonzero(mine >= 0)
    return EquivalenceClasses(
        cells=cells,
        records=records,
        groups=mine[records],
        counts=cells.record_weights[records],
        size=size,
        overall=overall,
        fitting=lambda: Regions(partition=whole(cells, groups)).population(),
    )


def overall_counts(cells: CodedCells, *, among: NDArray[np.bool_] | None = None) -> dict[str, Counts]:
    """Return the counts of every sensitive attribute in the whole table, or among some records."""
    chosen = slice(None) if among is None else among
    return {
        item.name: np.bincount(
            cells.record_values[chosen, place], weights=cells.record_weights[chosen], minlength=len(item.values)
        ).astype(np.int64)
        for place, item in enumerate(cells.sensitive)
    }


def sum_by_key(keys: Counts, counts: Counts, bound: int) -> tuple[Counts, Counts]:
    """Return the distinct keys in order and the sum of the counts of each."""
    # A table of all keys is quicker than a sort as long as it is small.
    if bound <= 4 * len(keys) + 1024:
        totals = np.bincount(keys, weights=counts, minlength=bound)
        found = np.flatnonzero(totals)
        return found, totals[found].astype(np.int64)
    found, inverse = np.unique(keys, return_inverse=True)
    return found, np.bincount(inverse.ravel(), weights=counts).astype(np.int64)
