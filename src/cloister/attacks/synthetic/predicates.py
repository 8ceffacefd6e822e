"""Predicates that describe one synthetic row, and how many rows of a table satisfy each.

A predicate is a conjunction over some columns: a name equals that of the row, a number equals it, or is at least or at
most as large. What is missing is satisfied by what is missing only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource, integers_below, permutation
from cloister.data.mixed_rows import Integers, MixedRows, numbered_rows

__all__ = ["Matches", "Predicates", "Relation", "extreme_predicates", "rare_value_predicates", "whole_row_predicates"]

_NOWHERE = -1
_AT_ONCE = 1 << 22
_FIRST_LOOKS = (512, 4096)
_BATCH = 8192
_STEPS = 1 << 30


class Relation(IntEnum):
    """How a cell is compared with that of the predicate."""

    ANYTHING = 0
    EQUAL = 1
    AT_MOST = 2
    AT_LEAST = 3


@dataclass(frozen=True, eq=False, repr=False)
class Matches:
    """How many rows satisfy each predicate, and the place of the only one where there is one, else -1."""

    counts: Integers
    places: Integers

    @property
    def single(self) -> NDArray[np.bool_]:
        """Return which predicates single out one row."""
        return np.asarray(self.counts == 1)


@dataclass(frozen=True, eq=False, repr=False)
class Predicates:
    """Conjunctions: the cells of synthetic rows with a relation per column.

    Attributes:
        rows: the cells, one row per predicate.
        relations: one per predicate and column.
    """

    rows: MixedRows
    relations: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: NDArray[np.int64]) -> Predicates:
        """Return some of them."""
        return Predicates(self.rows.take(places), self.relations[places])

    def matches(self, table: MixedRows) -> Matches:
        """Return how many rows of a table satisfy each predicate."""
        if (self.relations == Relation.EQUAL).all():
            return _equal_rows(self.rows, table)
        counts, places = np.zeros(len(self), dtype=np.int64), np.full(len(self), _NOWHERE, dtype=np.int64)
        for part in self._parts(len(table)):
            fits = self._fitting(part, table)
            counts[part] = fits.sum(axis=1)
            places[part] = np.where(counts[part] == 1, fits.argmax(axis=1), _NOWHERE)
        return Matches(counts, places)

    def singles(self, table: MixedRows) -> Integers:
        """Return the predicates that are true of exactly one row; looks at few rows first, which most fail at."""
        left = np.arange(len(self))
        for rows in (*_FIRST_LOOKS, len(table)):
            some = table if rows >= len(table) else table.take(np.arange(rows))
            counts = self.take(left).matches(some).counts
            left = left[counts == 1 if some is table else counts <= 1]
            if some is table:
                break
        return left

    def guesses(self, source: RandomSource) -> Predicates:
        """Return predicates of the same shape with cells at random: numbers in their range, names among all names."""
        count, rows = len(self), self.rows
        numbers = np.empty_like(rows.numbers)
        for place in range(rows.numeric):
            steps = integers_below(source, _STEPS, count) / (_STEPS - 1)
            drawn = rows.lows[place] * (1 - steps) + rows.highs[place] * steps
            shown = rows.numbers[:, place]
            numbers[:, place] = np.round(drawn) if (shown == np.round(shown)).all() else drawn
        codes = np.empty_like(rows.codes)
        for place in range(codes.shape[1]):
            names = np.unique(rows.codes[:, place])
            codes[:, place] = names[integers_below(source, len(names), count)]
        return Predicates(replace(rows, numbers=numbers, codes=codes), self.relations)

    def _parts(self, rows: int) -> list[NDArray[np.int64]]:
        size = max(1, _AT_ONCE // max(rows, 1))
        return [np.arange(start, min(start + size, len(self))) for start in range(0, len(self), size)]

    def _fitting(self, part: NDArray[np.int64], table: MixedRows) -> NDArray[np.bool_]:
        """Return which rows satisfy some predicates, one row per predicate."""
        fits = np.ones((len(part), len(table)), dtype=np.bool_)
        columns = [np.ascontiguousarray(column) for column in (*table.numbers.T, *table.codes.T)]
        cells = [*self.rows.numbers.T, *self.rows.codes.T]
        for place, (values, wanted) in enumerate(zip(columns, cells, strict=True)):
            for relation in (Relation.EQUAL, Relation.AT_MOST, Relation.AT_LEAST):
                asked = np.flatnonzero(self.relations[part, place] == relation)
                if asked.size:
                    fits[asked] &= _fits(values, wanted[part[asked], None], relation)
        return fits


def whole_row_predicates(synthetic: MixedRows, count: int, source: RandomSource) -> Predicates:
    """Return predicates that describe all cells of synthetic rows, each kind of row at most once."""
    (kinds,) = numbered_rows([synthetic])
    firsts = np.unique(kinds, return_index=True)[1]
    chosen = firsts[permutation(source, len(firsts))[:count]]
    shape = (len(chosen), len(synthetic.columns))
    return Predicates(synthetic.take(chosen), np.full(shape, Relation.EQUAL, dtype=np.int8))


def rare_value_predicates(synthetic: MixedRows, count: int, source: RandomSource) -> Predicates:
    """Return predicates about one column that single out a synthetic row: values that occur once, and extremes."""
    rows: list[int] = []
    columns: list[int] = []
    relations: list[Relation] = []
    for place, name in enumerate(synthetic.columns):
        values = synthetic.column(name)
        _, firsts, counts = np.unique(values, return_index=True, return_counts=True)
        once = firsts[counts == 1]
        rows += once.tolist()
        relations += [Relation.EQUAL] * len(once)
        if place < synthetic.numeric and not np.isnan(values).all():
            for extreme, relation in (
                (np.nanargmin(values), Relation.AT_MOST),
                (np.nanargmax(values), Relation.AT_LEAST),
            ):
                if (values == values[extreme]).sum() == 1:
                    rows.append(int(extreme))
                    relations.append(relation)
        columns += [place] * (len(rows) - len(columns))
    order = permutation(source, len(rows))[:count]
    shape = np.zeros((len(order), len(synthetic.columns)), dtype=np.int8)
    shape[np.arange(len(order)), np.array(columns, dtype=np.int64)[order]] = np.array(relations, dtype=np.int8)[order]
    return Predicates(synthetic.take(np.array(rows, dtype=np.int64)[order]), shape)


def extreme_predicates(
    synthetic: MixedRows, count: int, source: RandomSource, *, columns: int, attempts: int
) -> Predicates:
    """Return predicates about a few columns that single out a synthetic row, numbers away from the median."""
    shown = [part[~np.isnan(part)] for part in synthetic.numbers.T]
    medians = np.array([np.median(part) if part.size else 0.0 for part in shown])
    found = _drawn(synthetic, medians, 0, columns, source)
    tried = 0
    while len(found) < count and tried < attempts:
        size = min(_BATCH, attempts - tried)
        batch = _drawn(synthetic, medians, size, columns, source)
        found = _different(_joined(found, batch.take(batch.singles(synthetic))))
        tried += size
    return found.take(np.arange(min(count, len(found))))


def _drawn(
    synthetic: MixedRows, medians: NDArray[np.float64], size: int, columns: int, source: RandomSource
) -> Predicates:
    rows = synthetic.take(integers_below(source, len(synthetic), size))
    width = len(synthetic.columns)
    chosen = np.argsort(source.words(size * width).reshape(size, width), axis=1)[:, :columns]
    relations = np.full((size, width), Relation.ANYTHING, dtype=np.int8)
    np.put_along_axis(relations, chosen, Relation.EQUAL, axis=1)
    sides = np.where(rows.numbers > medians, Relation.AT_LEAST, Relation.AT_MOST)
    sides = np.where(np.isnan(rows.numbers), Relation.EQUAL, sides)
    numeric = slice(0, synthetic.numeric)
    relations[:, numeric] = np.where(relations[:, numeric] == Relation.EQUAL, sides, Relation.ANYTHING)
    return Predicates(rows, relations)


def _joined(first: Predicates, second: Predicates) -> Predicates:
    rows = replace(
        first.rows,
        numbers=np.concatenate([first.rows.numbers, second.rows.numbers]),
        codes=np.concatenate([first.rows.codes, second.rows.codes]),
    )
    return Predicates(rows, np.concatenate([first.relations, second.relations]))


def _different(predicates: Predicates) -> Predicates:
    """Return each predicate once, in the order in which they came."""
    rows, asked = predicates.rows, predicates.relations != Relation.ANYTHING
    said = replace(
        rows,
        numbers=np.where(asked[:, : rows.numeric], rows.numbers, 0.0),
        codes=np.hstack([np.where(asked[:, rows.numeric :], rows.codes, -1), predicates.relations]).astype(np.int32),
    )
    (kinds,) = numbered_rows([said])
    return predicates.take(np.sort(np.unique(kinds, return_index=True)[1]))


def _fits(values: NDArray[Any], cells: NDArray[Any], relation: Relation) -> NDArray[np.bool_]:
    """Return which values satisfy each cell; what is missing is like missing only."""
    match relation:
        case Relation.AT_MOST:
            return np.asarray(values <= cells)
        case Relation.AT_LEAST:
            return np.asarray(values >= cells)
        case _:
            return np.asarray((values == cells) | ((values != values) & (cells != cells)))  # noqa: PLR0124


def _equal_rows(rows: MixedRows, table: MixedRows) -> Matches:
    kinds, others = numbered_rows([rows, table])
    size = int(max(kinds.max(initial=0), others.max(initial=0))) + 1
    firsts = np.full(size, _NOWHERE, dtype=np.int64)
    firsts[others[::-1]] = np.arange(len(others))[::-1]
    counts = np.bincount(others, minlength=size)[kinds]
    return Matches(counts, np.where(counts == 1, firsts[kinds], _NOWHERE))
