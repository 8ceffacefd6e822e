"""Rank swapping: each value of a column changes places with one of nearly the same rank (Moore 1996).

Inside each control stratum the values are exactly the same as before, only in other rows, so every count and mean of
the column within a stratum stays. The pairing: ranks are cut into blocks at a random offset, blocks are shuffled, and
neighbors in a block change places; two ranks of one block are never further apart than allowed.

Not truthful: a released row mixes two persons. No guarantee: a small distance hides little.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa

from cloister.anonymize.operations.base import Context, Operation, operations
from cloister.anonymize.operations.cells import (
    Floats,
    Integers,
    column_of,
    ordered_floats,
    present,
    strata_of,
    with_column,
)
from cloister.anonymize.operations.plain import name as column_name, names
from cloister.core.random import RandomSource, permutation
from cloister.core.validation import check_positive
from cloister.data.columns import Column
from cloister.errors import ParameterError


@operations.register("swap")
@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(Operation):
    """Swap the values of one column between rows of nearly the same rank.

    The swap rate is ``run(...).log.share_changed(column)``; swaps of equal values do not count.

    Attributes:
        column: a column of numbers, dates or times; missing cells stay where they are.
        percent: how far apart ranks may be, in percent of the values in the stratum.
        within: the control strata: rows are swapped only if they are equal in these columns.
    """

    name = "swap"
    truthful = False
    is_random = True
    caution = "values were swapped between rows, so that a row does not describe one person"

    column: str = field(kw_only=False)
    percent: Fraction
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", column_name(self.column))
        object.__setattr__(self, "percent", check_positive(self.percent, name="percent"))
        object.__setattr__(self, "within", names(self.within, what="within") if self.within else ())
        if self.percent > 100:
            raise ParameterError("percent is above 100.", fix="use for example percent=5.")
        if self.column in self.within:
            raise ParameterError("The swapped column is a control stratum.", fix="leave it out of within.")

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:
        """Return the rows with values swapped."""
        column = column_of(rows, self.column)
        order = ordered_floats(column, self.column)
        there = np.flatnonzero(present(column))
        partners = np.arange(rows.num_rows)
        strata = strata_of(rows, self.within)[there]
        partners[there] = there[rank_partners(order[there], strata, self.percent, context.source)]
        return with_column(rows, self.column, column.take(pa.array(partners)))

    def restate(self, column: Column) -> Column:
        """Return the column as it was: its values are the same."""
        return column


def rank_partners(order: Floats, strata: Integers, percent: Fraction, source: RandomSource) -> Integers:
    """Return for each row the one that it changes places with: itself, or one of nearly its rank in its stratum."""
    count = len(order)
    shuffle = permutation(source, count)
    ranked = shuffle[np.lexsort((order[shuffle], strata[shuffle]))]
    groups, starts, sizes = np.unique(strata[ranked], return_index=True, return_counts=True)
    group = np.repeat(np.arange(len(groups)), sizes)
    rank = np.arange(count) - starts[group]
    width = np.array([int(size * percent / 100) + 1 for size in sizes.tolist()], dtype=np.int64)
    offset = source.words(len(groups)) % width.astype(np.uint64)
    block = (rank + offset.astype(np.int64)[group]) // width[group]
    shuffled = permutation(source, count)
    mixed = shuffled[np.lexsort((block[shuffled], group[shuffled]))]
    return _pair_neighbors(ranked[mixed], group[mixed], block[mixed])


def _pair_neighbors(rows: Integers, group: Integers, block: Integers) -> Integers:
    """Return the partner of each row: rows stand block by block, and in a block the first two pair up, and so on."""
    count = len(rows)
    starts = np.ones(count, dtype=np.bool_)
    starts[1:] = (group[1:] != group[:-1]) | (block[1:] != block[:-1])
    first = np.maximum.accumulate(np.where(starts, np.arange(count), 0))
    place = np.arange(count) - first
    ends = np.append(starts[1:], [True]) if count else starts
    opens = (place % 2 == 0) & ~ends
    partners = np.arange(count)
    left = np.flatnonzero(opens)
    partners[rows[left]], partners[rows[left + 1]] = rows[left + 1], rows[left]
    return partners
