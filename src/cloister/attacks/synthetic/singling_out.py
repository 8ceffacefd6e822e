"""Singling out: does the synthetic table describe exactly one person of the original?

The attacker makes predicates out of synthetic rows ("age 39, state government, 13 years of education, ...") and hopes
that each is true of exactly one row of the original. A predicate is a conjunction over some columns: a name equals that
of the row, a number equals it, or is at least or at most as large. What is missing is satisfied by what is missing
only. Predicates that are rare enough are true of exactly one row quite often by chance, and of one row of any other
table as well (Cohen and Nissim 2020), so the same predicates are tried on control rows. Three kinds:

- "row": all cells of a synthetic row. Finds rows that were copied.
- "univariate": values of one column that occur once in the synthetic table, and its extremes.
- "multivariate": a few columns of a synthetic row, numbers at least or at most as large, whichever is further from the
  median, if that describes one synthetic row only.

The last two follow Giomi et al. (2022). They see outliers that survived; copied rows they see weakly, since rows that
were not copied satisfy such predicates nearly as often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.release_attacks import offer_attack
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.base import (
    ADVICE,
    AttackedTables,
    SyntheticDetails,
    most_exposed,
    read_attacked,
    score_attack,
)
from cloister.core.exact import Number
from cloister.core.provenance import SYNTHETIC
from cloister.core.random import RandomSource, RandomState, integers_below, permutation, random_source
from cloister.core.validation import check_choice, check_count
from cloister.data.mixed_rows import Integers, MixedRows, number_rows
from cloister.errors import DataError

__all__ = [
    "CellRelation",
    "Matches",
    "Predicates",
    "extreme_predicates",
    "rare_value_predicates",
    "synthetic_singling_out",
    "whole_row_predicates",
]


_NOWHERE = -1
_AT_ONCE = 1 << 22
_FIRST_LOOKS = (512, 4096)
_BATCH = 8192
_STEPS = 1 << 30


class CellRelation(IntEnum):
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
        if (self.relations == CellRelation.EQUAL).all():
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
            # Where the numbers are whole, a guess that is not could never be right.
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
            for relation in (CellRelation.EQUAL, CellRelation.AT_MOST, CellRelation.AT_LEAST):
                asked = np.flatnonzero(self.relations[part, place] == relation)
                if asked.size:
                    fits[asked] &= _fits(values, wanted[part[asked], None], relation)
        return fits


def whole_row_predicates(synthetic: MixedRows, count: int, source: RandomSource) -> Predicates:
    """Return predicates that describe all cells of synthetic rows, each kind of row at most once."""
    (kinds,) = number_rows([synthetic])
    firsts = np.unique(kinds, return_index=True)[1]
    chosen = firsts[permutation(source, len(firsts))[:count]]
    shape = (len(chosen), len(synthetic.columns))
    return Predicates(synthetic.take(chosen), np.full(shape, CellRelation.EQUAL, dtype=np.int8))


def rare_value_predicates(synthetic: MixedRows, count: int, source: RandomSource) -> Predicates:
    """Return predicates about one column that single out a synthetic row: values that occur once, and extremes."""
    rows: list[int] = []
    columns: list[int] = []
    relations: list[CellRelation] = []
    for place, name in enumerate(synthetic.columns):
        values = synthetic.column(name)
        _, firsts, counts = np.unique(values, return_index=True, return_counts=True)
        once = firsts[counts == 1]
        rows += once.tolist()
        relations += [CellRelation.EQUAL] * len(once)
        if place < synthetic.numeric and not np.isnan(values).all():
            for extreme, relation in (
                (np.nanargmin(values), CellRelation.AT_MOST),
                (np.nanargmax(values), CellRelation.AT_LEAST),
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
    found = _draw_predicates(synthetic, medians, 0, columns, source)
    tried = 0
    while len(found) < count and tried < attempts:
        size = min(_BATCH, attempts - tried)
        batch = _draw_predicates(synthetic, medians, size, columns, source)
        found = _different(_concatenate(found, batch.take(batch.singles(synthetic))))
        tried += size
    return found.take(np.arange(min(count, len(found))))


def _draw_predicates(
    synthetic: MixedRows, medians: NDArray[np.float64], size: int, columns: int, source: RandomSource
) -> Predicates:
    rows = synthetic.take(integers_below(source, len(synthetic), size))
    width = len(synthetic.columns)
    chosen = np.argsort(source.words(size * width).reshape(size, width), axis=1)[:, :columns]
    relations = np.full((size, width), CellRelation.ANYTHING, dtype=np.int8)
    np.put_along_axis(relations, chosen, CellRelation.EQUAL, axis=1)
    sides = np.where(rows.numbers > medians, CellRelation.AT_LEAST, CellRelation.AT_MOST)
    sides = np.where(np.isnan(rows.numbers), CellRelation.EQUAL, sides)
    numeric = slice(0, synthetic.numeric)
    relations[:, numeric] = np.where(relations[:, numeric] == CellRelation.EQUAL, sides, CellRelation.ANYTHING)
    return Predicates(rows, relations)


def _concatenate(first: Predicates, second: Predicates) -> Predicates:
    rows = replace(
        first.rows,
        numbers=np.concatenate([first.rows.numbers, second.rows.numbers]),
        codes=np.concatenate([first.rows.codes, second.rows.codes]),
    )
    return Predicates(rows, np.concatenate([first.relations, second.relations]))


def _different(predicates: Predicates) -> Predicates:
    """Return each predicate once, in the order in which they came."""
    rows, asked = predicates.rows, predicates.relations != CellRelation.ANYTHING
    said = replace(
        rows,
        numbers=np.where(asked[:, : rows.numeric], rows.numbers, 0.0),
        codes=np.hstack([np.where(asked[:, rows.numeric :], rows.codes, -1), predicates.relations]).astype(np.int32),
    )
    (kinds,) = number_rows([said])
    return predicates.take(np.sort(np.unique(kinds, return_index=True)[1]))


def _fits(values: NDArray[Any], cells: NDArray[Any], relation: CellRelation) -> NDArray[np.bool_]:
    """Return which values satisfy each cell; what is missing is like missing only."""
    match relation:
        case CellRelation.AT_MOST:
            return np.asarray(values <= cells)
        case CellRelation.AT_LEAST:
            return np.asarray(values >= cells)
        case _:
            return np.asarray((values == cells) | ((values != values) & (cells != cells)))  # noqa: PLR0124


def _equal_rows(rows: MixedRows, table: MixedRows) -> Matches:
    kinds, others = number_rows([rows, table])
    size = int(max(kinds.max(initial=0), others.max(initial=0))) + 1
    firsts = np.full(size, _NOWHERE, dtype=np.int64)
    # Written backwards, so that of several equal rows the first one stays.
    firsts[others[::-1]] = np.arange(len(others))[::-1]
    counts = np.bincount(others, minlength=size)[kinds]
    return Matches(counts, np.where(counts == 1, firsts[kinds], _NOWHERE))


_KINDS = ("row", "univariate", "multivariate")
_ATTEMPTS = 500


@offer_attack(
    "singling-out",
    kind=SYNTHETIC,
    takes=("original", "synthetic", "control"),
    summary="Single out people of the original by rows of the synthetic RELEASE.",
    example="fake.csv --original train.csv --control held-back.csv",
)
def synthetic_singling_out(
    original: Any,
    synthetic: Any,
    *,
    control: Any = None,
    kind: str = "row",
    columns: Sequence[str] | None = None,
    predicate_columns: int = 3,
    attacks: int = 2_000,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[SyntheticDetails]:
    """Return how often a predicate made of a synthetic row is true of exactly one row of the original.

    Whether a predicate is true of exactly one row depends on how many rows there are. So if the original and the
    control are of different sizes, the larger one is cut at random to the size of the smaller one.

    Args:
        original: the rows that the synthetic ones were made from: a `cloister.Table`, a data frame or a file.
        synthetic: the synthetic rows, likewise.
        control: rows of the same kind that had no part in the synthetic table.
        kind: "row", "univariate" or "multivariate".
        columns: which columns; without it, all that the tables share but identifiers.
        predicate_columns: how many columns a multivariate predicate is about.
        attacks: how many predicates are made at most.
        confidence: of the intervals. Predicates that single out the same row count as one in them, and no more
            predicates count than there are rows.
        random_state: of the choice of predicates; an integer is for tests.

    Raises:
        UnknownColumnError: if a table lacks a column.
        DataError: if a table is empty, or no predicate describes one synthetic row.
    """
    check_choice(kind, name="kind", allowed=_KINDS)
    most = check_count(attacks, name="attacks", at_least=1)
    few = check_count(predicate_columns, name="predicate_columns", at_least=1)
    source = random_source(random_state)
    tables = read_attacked(original, synthetic, control=control, columns=columns).balance(source)
    made = _make_predicates(tables, kind, most, min(few, len(tables.names)), source)
    if not len(made):
        raise DataError(
            "No predicate of this kind describes exactly one synthetic row.",
            fix='use kind="row", or more columns per predicate.',
        )
    found = made.matches(tables.original)
    others = None if tables.control is None else made.matches(tables.control)
    naive = made.guesses(source).matches(tables.original)
    compared = None if others is None else (float(others.single.sum()), len(made))
    exposed = np.bincount(found.places[found.single], minlength=len(tables.original)).astype(np.float64)
    return AttackResult(
        attack="singling out",
        assumption="holds the synthetic table and describes one of its rows, hoping that one real person fits",
        queries=len(made),
        mitigation=ADVICE,
        worst=most_exposed(tables.places, exposed),
        **score_attack(
            float(found.single.sum()),
            len(made),
            baseline=float(naive.single.mean()),
            kind=kind,
            left_out=tables.left_out,
            control=compared,
            confidence=confidence,
            alike=(
                _alike(found, len(tables.original)),
                1.0 if others is None or tables.control is None else _alike(others, len(tables.control)),
            ),
        ),
    )


def _make_predicates(tables: AttackedTables, kind: str, count: int, columns: int, source: RandomSource) -> Predicates:
    match kind:
        case "row":
            return whole_row_predicates(tables.synthetic, count, source)
        case "univariate":
            return rare_value_predicates(tables.synthetic, count, source)
        case _:
            return extreme_predicates(tables.synthetic, count, source, columns=columns, attempts=_ATTEMPTS * count)


def _alike(found: Matches, rows: int) -> float:
    """Return how many predicates single out the same row, on average over predicates; or come to one row, if more."""
    counts = np.bincount(found.places[found.single])
    same = float((counts**2).sum() / counts.sum()) if counts.size and counts.sum() else 1.0
    return max(same, len(found.counts) / rows)
