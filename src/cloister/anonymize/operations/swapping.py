"""Swapping: values change places between rows of nearly the same rank, or columns between similar records.

*Rank swapping* (Moore 1996): each value of a column changes places with one of nearly the same rank. Inside each
control stratum the values are exactly the same as before, only in other rows, so every count and mean of the column
within a stratum stays. The pairing: ranks are cut into blocks at a random offset, blocks are shuffled, and neighbors in
a block change places; two ranks of one block are never further apart than allowed.

*Targeted record swapping*, after Dalenius and Reiss (1982): some records exchange attributes with the most similar ones
of their stratum. Marginals of the exchanged columns inside a stratum stay exactly as they were. Each record takes part
in one exchange at most; partners with equal attributes are passed over, because exchanging equal values protects
nobody.

Not truthful: a released row mixes two persons. No guarantee: a small distance hides little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa

from cloister.anonymize.operations._arrow_columns import (
    Floats,
    Integers,
    Mask,
    column_of,
    ordered_floats,
    present,
    refine_strata,
    rows_where,
    strata_of,
    with_column,
)
from cloister.anonymize.operations.base import (
    Operation,
    OperationContext,
    need_column_name,
    need_names,
    operations,
)
from cloister.anonymize.operations.noise import uniforms
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.random import RandomSource, permutation
from cloister.core.validation import check_positive, check_probability
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

    def __init__(
        self,
        column: str,
        *,
        percent: Number,
        within: str | Sequence[str] = (),
    ) -> None:
        construct(self, column=column, percent=percent, within=within)

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", need_column_name(self.column))
        object.__setattr__(self, "percent", check_positive(self.percent, name="percent"))
        object.__setattr__(self, "within", need_names(self.within, what="within") if self.within else ())
        if self.percent > 100:
            raise ParameterError("percent is above 100.", fix="use for example percent=5.")
        if self.column in self.within:
            raise ParameterError("The swapped column is a control stratum.", fix="leave it out of within.")

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:
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
    # Shuffled before a stable sort, equal values are ranked at random.
    ranked = shuffle[np.lexsort((order[shuffle], strata[shuffle]))]
    groups, starts, sizes = np.unique(strata[ranked], return_index=True, return_counts=True)
    group = np.repeat(np.arange(len(groups)), sizes)
    rank = np.arange(count) - starts[group]
    # Two ranks of one block are at most its width less one apart, which is what is allowed.
    width = np.array([int(size * percent / 100) + 1 for size in sizes.tolist()], dtype=np.int64)
    # With fixed borders, ranks on both sides of one would never change places.
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
    # The last row of a block with an odd number of rows stays where it is.
    opens = (place % 2 == 0) & ~ends
    partners = np.arange(count)
    left = np.flatnonzero(opens)
    partners[rows[left]], partners[rows[left + 1]] = rows[left + 1], rows[left]
    return partners


_NEIGHBORS = (8, 64, 512)
_MOST_CANDIDATES = 2**22
_JITTER = 1e-6


@operations.register("swap_records")
@dataclass(frozen=True, slots=True, kw_only=True)
class SwapRecords(Operation):
    """Exchange columns between some target records and their most similar partners.

    Attributes:
        columns: what is exchanged, together: usually a place, or sensitive columns.
        fraction: the share of the eligible records that become targets, chosen at random.
        near: columns of numbers, dates or times in which partners should be close, each measured by its spread.
        within: the control strata: partners are equal in these columns.
        where: which records may be targets, as a SQL condition; all if it is left out. Partners may be any.
    """

    name = "swap_records"
    truthful = False
    is_random = True
    caution = "attributes were swapped between records, so that a row does not describe one person"

    columns: tuple[str, ...] = field(kw_only=False)
    fraction: Fraction
    near: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    where: str | None = None

    def __init__(
        self,
        columns: str | Sequence[str],
        *,
        fraction: Number,
        near: str | Sequence[str] = (),
        within: str | Sequence[str] = (),
        where: str | None = None,
    ) -> None:
        construct(self, columns=columns, fraction=fraction, near=near, within=within, where=where)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", need_names(self.columns))
        for setting in ("near", "within"):
            given = getattr(self, setting)
            object.__setattr__(self, setting, need_names(given, what=setting) if given else ())
        object.__setattr__(self, "fraction", check_probability(self.fraction, name="fraction"))
        if set(self.columns) & set(self.within):
            raise ParameterError("A swapped column is a control stratum.", fix="leave it out of within.")

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:
        """Return the rows with attributes exchanged."""
        exchanged = [column_of(rows, name) for name in self.columns]
        eligible = np.flatnonzero(rows_where(rows, self.where))
        targets = eligible[permutation(context.source, eligible.size)][: int(self.fraction * eligible.size)]
        partners = self._partners(rows, targets, context.source)
        for name, column in zip(self.columns, exchanged, strict=True):
            rows = with_column(rows, name, column.take(pa.array(partners)))
        return rows

    def restate(self, column: Column) -> Column:
        """Return the column as it was: its values are the same."""
        return column

    def _partners(self, rows: pa.Table, targets: Integers, source: RandomSource) -> Integers:
        values = [ordered_floats(column_of(rows, name), name) for name in self.near]
        strata = strata_of(rows, self.within)
        for numbers in values:  # records that lack a value are near only to others that lack it
            strata = refine_strata(strata, np.isnan(numbers).astype(np.int64), 2)
        same = strata_of(rows, self.columns)
        where = _positions(values, strata, source)
        return nearest_partners(targets, where, strata, same, source)


def nearest_partners(
    targets: Integers, positions: Floats, strata: Integers, same: Integers, source: RandomSource
) -> Integers:
    """Return the partner of each record, itself for those that are not exchanged.

    Targets look among ever more of their nearest records, and propose to the nearest free one of their stratum with
    other attributes; of several proposals to one record, or by one, a random one is accepted, and the others propose
    again.

    Args:
        targets: the records that look for a partner.
        positions: one row of coordinates per record.
        strata: the stratum of each record.
        same: equal numbers for records whose exchanged attributes are equal.
        source: where random bits come from.
    """
    from scipy.spatial import KDTree

    partners = np.arange(len(strata))
    if not targets.size:
        return partners
    tree = KDTree(positions)
    for neighbors in _NEIGHBORS:
        waiting = targets[partners[targets] == targets]
        for part in np.array_split(waiting, -(-waiting.size * neighbors // _MOST_CANDIDATES) or 1):
            _, candidates = tree.query(positions[part], k=np.arange(1, min(neighbors, len(strata)) + 1))
            fits = (strata[candidates] == strata[part][:, None]) & (same[candidates] != same[part][:, None])
            _pair(partners, part, candidates, fits, source)
    return partners


def _pair(partners: Integers, waiting: Integers, candidates: Integers, fits: Mask, source: RandomSource) -> None:
    """Fill in partners for waiting records, each with one of its candidates, until nobody can propose."""
    while waiting.size:
        free = partners == np.arange(len(partners))
        # Both sides have to be free: a waiting record may have accepted a proposal by now.
        usable = fits & free[candidates] & free[waiting][:, None]
        proposing = np.flatnonzero(usable.any(axis=1))
        proposing = proposing[permutation(source, proposing.size)]
        proposals = candidates[proposing, np.argmax(usable[proposing], axis=1)]
        accepted = _without_conflicts(waiting[proposing], proposals, len(partners))
        left, right = waiting[proposing[accepted]], proposals[accepted]
        partners[left], partners[right] = right, left
        # Whoever cannot propose now cannot later: free records only become fewer.
        waiting, candidates, fits = waiting[proposing], candidates[proposing], fits[proposing]


def _without_conflicts(left: Integers, right: Integers, count: int) -> Integers:
    """Return the places of pairs in which no record occurs in an earlier pair."""
    # A pair counts if both of its records occur in no earlier one, which settles all conflicts at once.
    earliest = np.full(count, len(left))
    numbers = np.arange(len(left))
    np.minimum.at(earliest, left, numbers)
    np.minimum.at(earliest, right, numbers)
    return np.flatnonzero((earliest[left] == numbers) & (earliest[right] == numbers))


def _positions(values: list[Floats], strata: Integers, source: RandomSource) -> Floats:
    """Return coordinates: each column over its range, strata far apart, and a trace of chance against ties."""
    columns = [uniforms(source, len(strata)) * _JITTER]
    for numbers in values:
        there = numbers[~np.isnan(numbers)]
        spread = float(np.std(there)) if there.size else 0.0
        columns.append(np.nan_to_num((numbers - there.mean()) / spread if spread else np.zeros(len(numbers))))
    reach = 2 * max((float(np.abs(column).max(initial=0.0)) for column in columns), default=1.0) + 1
    # Strata lie farther apart than any two records of one, so that the nearest records are of the same stratum first.
    return np.column_stack([*columns, strata * reach * len(columns) * 4])
