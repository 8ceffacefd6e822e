"""Regions: the generalized values that each class releases in place of its quasi-identifiers, and what is lost by it.

Three ways to write a class down: a node of the hierarchy (of the full-domain level, or else the lowest common
ancestor), a set of values or a closed interval, or a central value (the mean of numbers, the median of an order, the
mode of names). A set or an interval holds exactly the values of its rows; a central value is not truthful for any
single row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import SUPPRESSED, Partition
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.data.hierarchy import ROOT
from cloister.data.values import text_of

__all__ = ["class_centers"]


def class_centers(
    attribute: CodedAttribute, codes: NDArray[np.int32], counts: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.object_]:
    """Return the center of each class, whose lines lie from its start to the next."""
    classes = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(codes))))
    if attribute.is_numeric:
        return _means(attribute, codes, counts, classes)
    places = _medians(codes, counts, classes) if attribute.is_ordered else _modes(attribute, codes, counts, classes)
    names = np.array([None if leaf is None else text_of(leaf) for leaf in attribute.leaves], dtype=object)
    return np.asarray(names[places])


def _means(attribute: CodedAttribute, codes: Any, counts: Any, classes: Any) -> NDArray[np.object_]:
    numbers = np.array([np.nan if leaf is None else float(leaf) for leaf in attribute.leaves])[codes]
    known = ~np.isnan(numbers)
    size = int(classes.max(initial=-1)) + 1
    totals = np.bincount(classes[known], weights=(numbers * counts)[known], minlength=size)
    rows = np.bincount(classes[known], weights=counts[known], minlength=size)
    means = np.full(size, None, dtype=object)
    means[rows > 0] = totals[rows > 0] / rows[rows > 0]
    return means


def _medians(codes: Any, counts: Any, classes: Any) -> NDArray[np.int64]:
    """Return the lower median code of each class."""
    order = np.lexsort((codes, classes))
    ordered, weights, owner = codes[order], counts[order], classes[order]
    reached = np.cumsum(weights)
    size = int(classes.max(initial=-1)) + 1
    totals = np.bincount(owner, weights=weights, minlength=size).astype(np.int64)
    before = np.cumsum(totals) - totals
    # Running totals go on from class to class, so that one search finds the medians of all.
    return np.asarray(ordered[np.searchsorted(reached, before + (totals + 1) // 2)])


def _modes(attribute: CodedAttribute, codes: Any, counts: Any, classes: Any) -> NDArray[np.int64]:
    """Return the most frequent code of each class, the smallest of equals."""
    size = len(attribute.leaves)
    keys, inverse = np.unique(classes * size + codes, return_inverse=True)
    totals = np.bincount(inverse.ravel(), weights=counts)
    # By class, then the most frequent first, then the smallest code.
    order = np.lexsort((keys % size, -totals, keys // size))
    first = np.flatnonzero(np.diff(keys[order] // size, prepend=-1))
    return np.asarray(keys[order][first] % size)


Counts: TypeAlias = NDArray[np.int64]
_BLOCK = 1 << 24
_CODE = np.dtype(np.int32)


class Values(StrEnum):
    """How a class is written down."""

    HIERARCHY = "hierarchy"
    SETS = "sets"
    CENTERS = "centers"


@dataclass(frozen=True, eq=False, kw_only=True)
class Regions:
    """The released quasi-identifiers of every class."""

    partition: Partition
    values: Values = Values.HIERARCHY

    @cached_property
    def _lines(self) -> tuple[Counts, Counts, Counts]:
        """Return the kept cells of each class, class by class, where each class starts, and their rows."""
        partition = self.partition
        kept = partition.groups != SUPPRESSED
        groups, cells, counts = partition.groups[kept], partition.line_cells[kept], partition.counts[kept]
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(partition.size))
        return cells[order], starts, counts[order]

    @cached_property
    def class_of_line(self) -> Counts:
        """Return the class of each kept line, in the order in which lines are kept here."""
        cells, starts, _ = self._lines
        return np.repeat(np.arange(self.partition.size), np.diff(np.append(starts, len(cells))))

    def codes(self, place: int) -> NDArray[np.int32]:
        """Return the leaf codes of one attribute for each kept line, class by class."""
        return np.asarray(self.partition.cells.codes[self._lines[0], place])

    @cached_property
    def levels(self) -> NDArray[np.int8]:
        """Return the level at which each class (row) releases each attribute (column)."""
        attributes, size = self.partition.cells.attributes, self.partition.size
        if self.partition.levels is not None:
            return np.tile(np.array(self.partition.levels, dtype=np.int8), (size, 1))
        return np.column_stack([self._common_level(place) for place in range(len(attributes))])

    def _common_level(self, place: int) -> NDArray[np.int8]:
        attribute, codes, starts = self.partition.cells.attributes[place], self.codes(place), self._lines[1]
        level = np.zeros(len(starts), dtype=np.int8)
        for ancestors in attribute.ancestors[:-1]:
            above = ancestors[codes]
            # All rows of a class are below one node where the smallest and the largest ancestor agree.
            level += np.minimum.reduceat(above, starts) != np.maximum.reduceat(above, starts)
        return level

    def nodes(self, place: int) -> NDArray[np.int32]:
        """Return the node that each class releases for one attribute, at the class's level."""
        # At the common level any row of a class has the same ancestor.
        first = self.codes(place)[self._lines[1]]
        ancestors = np.stack(self.partition.cells.attributes[place].ancestors)
        return ancestors[self.levels[:, place], first]

    def membership(self, place: int) -> NDArray[np.bool_]:
        """Return which leaves (columns) each class (row) may stand for in one attribute."""
        attribute = self.partition.cells.attributes[place]
        if self.values is Values.HIERARCHY:
            ancestors = np.stack(attribute.ancestors)
            return np.asarray(ancestors[self.levels[:, place]] == self.nodes(place)[:, None])
        member = np.zeros((self.partition.size, len(attribute.leaves)), dtype=bool)
        member[self.class_of_line, self.codes(place)] = True
        return _fill_gaps(member, attribute) if attribute.is_ordered else member

    @cached_property
    def losses(self) -> NDArray[np.float64]:
        """Return the LM loss of each class (row) in each attribute (column), between 0 and 1."""
        places = range(len(self.partition.cells.attributes))
        return np.column_stack([self._loss(place) for place in places])

    def _loss(self, place: int) -> NDArray[np.float64]:
        attribute = self.partition.cells.attributes[place]
        if self.values is Values.HIERARCHY:
            losses = attribute.leaf_losses
            return losses[self.levels[:, place], self.codes(place)[self._lines[1]]]
        if attribute.is_ordered:
            codes, starts = self.codes(place), self._lines[1]
            return interval_losses(attribute, np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts))
        distinct = self._distinct(place)
        return (distinct - 1) / max(len(attribute.leaves) - 1, 1)

    def _distinct(self, place: int) -> Counts:
        size = len(self.partition.cells.attributes[place].leaves)
        pairs = np.unique(self.class_of_line * size + self.codes(place))
        return np.bincount(pairs // size, minlength=self.partition.size)

    @cached_property
    def rows(self) -> Counts:
        """Return the number of rows of each class."""
        _, starts, counts = self._lines
        return np.add.reduceat(counts, starts) if len(starts) else counts[:0]

    def loss(self) -> float:
        """Return the mean LM loss over rows and attributes (NCP); a suppressed row counts 1 in every attribute."""
        cells = self.partition.cells
        kept = float(self.rows @ (self.losses @ cells.weights_of_attributes))
        return (kept + self.partition.suppressed) / cells.total

    def attribute_losses(self) -> NDArray[np.float64]:
        """Return the mean LM loss of each attribute over all rows, suppressed rows counting 1."""
        kept = self.rows @ self.losses
        return np.asarray((kept + self.partition.suppressed) / self.partition.cells.total)

    def population(self) -> Counts:
        """Return how many rows of the population fit what each class releases."""
        cells, size = self.partition.cells, self.partition.size
        population = cells.population
        if population is None or not size:
            return np.zeros(size, dtype=np.int64)
        return np.concatenate([fits @ population.weights for _, fits in self._fitting(population)])

    def presence(self) -> tuple[NDArray[np.float64], float]:
        """Return how many released rows are expected to be of one person of the population.

        Every row of a class is equally likely of each person that fits it, and a person may fit several classes.

        Returns:
            the largest number among the people that fit each class, and the smallest among all people.
        """
        population, size = self.partition.cells.population, self.partition.size
        if population is None or not size:
            return np.zeros(size), 0.0
        shares = self.rows / np.maximum(self.population(), 1)
        expected = np.zeros(len(population))
        for chosen, fits in self._fitting(population):
            expected += shares[chosen] @ fits
        # Computed a second time, since all of it might not fit into memory.
        largest = [np.where(fits, expected, 0.0).max(axis=1) for _, fits in self._fitting(population)]
        return np.concatenate(largest), float(expected.min())

    def _fitting(self, population: CodedCells) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield which cells of the population (columns) fit each class (rows), some classes at a time."""
        members = [self.membership(place) for place in range(len(population.attributes))]
        block = max(_BLOCK // max(len(population), 1), 1)
        for start in range(0, self.partition.size, block):
            chosen = range(start, min(start + block, self.partition.size))
            yield slice(chosen.start, chosen.stop), _matching(members, population.codes, chosen)

    def labels(self, place: int) -> NDArray[np.object_]:
        """Return what each class shows for one attribute; None is a missing value."""
        known = self.partition.shown
        if (self.values, place) not in known:
            known[self.values, place] = self._labels(self.partition.cells.attributes[place], place)
        return known[self.values, place]

    def _labels(self, attribute: CodedAttribute, place: int) -> NDArray[np.object_]:
        match self.values:
            case Values.HIERARCHY:
                return _name_nodes(attribute, self.levels[:, place], self.nodes(place))
            case Values.SETS:
                return self._set_labels(attribute, place)
            case Values.CENTERS:
                return self._centers(attribute, place)

    def _set_labels(self, attribute: CodedAttribute, place: int) -> NDArray[np.object_]:
        codes, starts = self.codes(place), self._lines[1]
        if attribute.is_ordered:
            low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
            return _label_pairs(low, high, lambda a, b: interval_label(attribute, a, b))
        size = len(attribute.leaves)
        pairs = np.unique(self.class_of_line * size + codes)
        # Bytes of sorted codes are keys that can be compared: each set is written as text once.
        ends = np.searchsorted(pairs // size, np.arange(self.partition.size + 1)) * _CODE.itemsize
        buffer = (pairs % size).astype(_CODE).tobytes()
        members = [buffer[start:end] for start, end in itertools.pairwise(ends.tolist())]
        names = {member: set_label(attribute, np.frombuffer(member, _CODE).tolist()) for member in set(members)}
        return _objects([names[member] for member in members])

    def _centers(self, attribute: CodedAttribute, place: int) -> NDArray[np.object_]:

        codes, (_, starts, counts) = self.codes(place), self._lines
        return class_centers(attribute, codes, counts, starts)


def interval_losses(attribute: CodedAttribute, low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.float64]:
    """Return the LM loss of ranges of leaf codes of an ordered attribute; one with a missing value tells nothing."""
    last = len(attribute.leaves) - 1
    positions = attribute.positions if attribute.positions is not None else np.zeros(last + 1)
    width = (positions[high] - positions[low]) / (attribute.span or 1.0)
    if not attribute.has_missing:
        return np.asarray(width)
    # The missing value is the last code: alone it is exact, with others nothing is told.
    return np.where(high < last, width, np.where(low == last, 0.0, 1.0))


def interval_label(attribute: CodedAttribute, low: int, high: int) -> str | None:
    """Return the text of a range of leaf codes: one value, a closed interval, or ``*`` for everything."""
    if low == high:
        return attribute.labels[0][low]
    last = len(attribute.leaves) - 1
    if attribute.leaves[high] is None or (low == 0 and high == last):
        return ROOT
    return f"[{text_of(attribute.leaves[low])}, {text_of(attribute.leaves[high])}]"


def set_label(attribute: CodedAttribute, members: Sequence[int]) -> str | None:
    """Return the text of a set of leaf codes: one value, a set in braces, or ``*`` for everything."""
    if len(members) == 1:
        return attribute.labels[0][members[0]]
    if len(members) == len(attribute.leaves):
        return ROOT
    names = ("missing" if attribute.leaves[code] is None else text_of(attribute.leaves[code]) for code in members)
    return "{" + ", ".join(names) + "}"


def _name_nodes(attribute: CodedAttribute, levels: NDArray[np.int8], nodes: NDArray[np.int32]) -> NDArray[np.object_]:
    offsets = np.cumsum([0, *(len(names) for names in attribute.labels)])
    names = _objects([name for labels in attribute.labels for name in labels])
    return names[offsets[levels] + nodes]


def _label_pairs(low: NDArray[Any], high: NDArray[Any], name: Any) -> NDArray[np.object_]:
    pairs, inverse = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    return _objects([name(int(a), int(b)) for a, b in pairs])[inverse.ravel()]


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _fill_gaps(member: NDArray[np.bool_], attribute: CodedAttribute) -> NDArray[np.bool_]:
    """Return membership with the gaps between smallest and largest leaf filled; with a missing value, everything."""
    # Between the first and the last leaf that a class has, both directions have seen one.
    up = np.logical_or.accumulate(member, axis=1)
    down = np.logical_or.accumulate(member[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(up & down) if not attribute.has_missing else _with_missing(member, up & down)


def _with_missing(member: NDArray[np.bool_], filled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    # A class with missing and known values could be of anybody.
    mixed = member[:, -1] & member[:, :-1].any(axis=1)
    return np.asarray(filled | mixed[:, None])


def _matching(members: list[NDArray[np.bool_]], codes: NDArray[np.int32], chosen: range) -> NDArray[np.bool_]:
    fits = np.ones((len(chosen), len(codes)), dtype=bool)
    for place, member in enumerate(members):
        fits &= member[chosen.start : chosen.stop][:, codes[:, place]]
    return fits
