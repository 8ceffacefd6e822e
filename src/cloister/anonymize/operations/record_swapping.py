"""Targeted record swapping: some records exchange attributes with the most similar ones of their stratum.

After Dalenius and Reiss (1982). Marginals of the exchanged columns inside a stratum stay exactly as they were. Each
record takes part in one exchange at most; partners with equal attributes are passed over, because exchanging equal
values protects nobody.
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
    Mask,
    column_of,
    ordered_floats,
    refined,
    rows_where,
    strata_of,
    with_column,
)
from cloister.anonymize.operations.plain import names
from cloister.anonymize.operations.sampling import uniforms
from cloister.core.random import RandomSource, permutation
from cloister.core.validation import check_probability
from cloister.data.columns import Column
from cloister.errors import ParameterError

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        for setting in ("near", "within"):
            given = getattr(self, setting)
            object.__setattr__(self, setting, names(given, what=setting) if given else ())
        object.__setattr__(self, "fraction", check_probability(self.fraction, name="fraction"))
        if set(self.columns) & set(self.within):
            raise ParameterError("A swapped column is a control stratum.", fix="leave it out of within.")

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:
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
            strata = refined(strata, np.isnan(numbers).astype(np.int64), 2)
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
        usable = fits & free[candidates] & free[waiting][:, None]
        proposing = np.flatnonzero(usable.any(axis=1))
        proposing = proposing[permutation(source, proposing.size)]
        proposals = candidates[proposing, np.argmax(usable[proposing], axis=1)]
        accepted = _without_conflicts(waiting[proposing], proposals, len(partners))
        left, right = waiting[proposing[accepted]], proposals[accepted]
        partners[left], partners[right] = right, left
        waiting, candidates, fits = waiting[proposing], candidates[proposing], fits[proposing]


def _without_conflicts(left: Integers, right: Integers, count: int) -> Integers:
    """Return the places of pairs in which no record occurs in an earlier pair."""
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
    return np.column_stack([*columns, strata * reach * len(columns) * 4])
