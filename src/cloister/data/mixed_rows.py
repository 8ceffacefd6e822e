"""Rows of numbers and names side by side, coded alike over several tables, and their exact nearest neighbors.

A number stays a number; any other value becomes a code that is the same in all tables. A missing number is NaN, a
missing name has a code of its own. Dates and times are days and seconds. The codes and the ranges are read from the
rows: what is here is as protected as the tables are.

The distance is that of Gower (1971): the mean over columns of the difference of two numbers as a share of their range,
and of 1 for two names that are not the same. A missing value is at distance 0 from a missing one and 1 from any other.

Equal rows are compared once. All pairs are compared in single precision, names byte by byte, in blocks that stay in
the cache; whatever could be among the nearest, given how far rounding can be off, is compared again in double
precision. So the neighbors are the true ones, and among equally near ones those that come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.data.columns import Kind
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import ParameterError

__all__ = ["MixedRows", "nearest_rows", "number_rows", "read_mixed_rows"]


Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_AMOUNTS = (StorageType.INTEGER, StorageType.REAL)
_TIMES = (StorageType.DATE, StorageType.TIMESTAMP)


@dataclass(frozen=True, eq=False, repr=False)
class MixedRows:
    """Rows as numbers and codes.

    Attributes:
        columns: the names of the columns of ``numbers``, then those of ``codes``.
        numbers: one row per row, one column per numeric column; NaN is missing.
        codes: one row per row, one column per other column.
        lows: the smallest value of each numeric column, by which distances are scaled.
        highs: the largest one.
    """

    columns: tuple[str, ...]
    numbers: Floats
    codes: NDArray[np.int32]
    lows: Floats
    highs: Floats

    def __repr__(self) -> str:
        return f"MixedRows({', '.join(self.columns)})"

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numeric(self) -> int:
        """Return how many columns hold numbers; they come first."""
        return int(self.numbers.shape[1])

    def take(self, places: NDArray[Any]) -> MixedRows:
        """Return some rows, in the order asked for."""
        return replace(self, numbers=self.numbers[places], codes=self.codes[places])

    def only(self, names: Sequence[str]) -> MixedRows:
        """Return some columns."""
        first = [place for place, name in enumerate(self.columns[: self.numeric]) if name in names]
        second = [place for place, name in enumerate(self.columns[self.numeric :]) if name in names]
        return MixedRows(
            columns=tuple(name for name in self.columns if name in names),
            numbers=self.numbers[:, first],
            codes=self.codes[:, second],
            lows=self.lows[first],
            highs=self.highs[first],
        )

    def column(self, name: str) -> NDArray[Any]:
        """Return the numbers or the codes of one column."""
        place = self.columns.index(name)
        return self.numbers[:, place] if place < self.numeric else self.codes[:, place - self.numeric]

    def scaled(self) -> Floats:
        """Return the numbers between 0 and 1 by their range; NaN is missing, and a column of one value is 0."""
        # Quarters, since the range of extreme numbers may be more than a float can hold.
        spread = self.highs / 4 - self.lows / 4
        shown = np.clip(self.numbers, self.lows, self.highs) / 4 - self.lows / 4
        return np.asarray(np.divide(shown, spread, out=np.where(np.isnan(shown), np.nan, 0.0), where=spread > 0))


def read_mixed_rows(
    tables: Sequence[Table], names: Sequence[str], *, bounds: Mapping[str, tuple[float, float]] | None = None
) -> list[MixedRows]:
    """Return the rows of several tables, coded alike.

    Args:
        tables: each has all the columns. The schema of the first says which numbers are names of things.
        names: the columns.
        bounds: public ranges of numeric columns; without them, a range is that of all tables together.

    Raises:
        ParameterError: if a column holds numbers in one table and names in another.
    """
    numeric = [name for name in names if _is_numeric(tables, name)]
    others = [name for name in names if name not in numeric]
    read = [table.to_arrow().select(list(names)) for table in tables]
    numbers = [_matrix([_numbers(rows[name]) for name in numeric], len(rows)) for rows in read]
    codes = [np.zeros((len(rows), len(others)), dtype=np.int32) for rows in read]
    for place, name in enumerate(others):
        for target, values in zip(codes, _encode_columns([rows[name] for rows in read]), strict=True):
            target[:, place] = values
    lows, highs = _ranges(numbers, numeric, bounds or {})
    columns = (*numeric, *others)
    return [MixedRows(columns, first, second, lows, highs) for first, second in zip(numbers, codes, strict=True)]


def number_rows(tables: Sequence[MixedRows]) -> list[Integers]:
    """Return for each table the number of the kind of each row: equal rows of any tables have equal numbers."""
    lengths = [len(rows) for rows in tables]
    numbers = np.concatenate([rows.numbers for rows in tables])
    codes = np.concatenate([rows.codes for rows in tables])
    kinds = np.zeros(sum(lengths), dtype=np.int64)
    for column in (*numbers.T, *codes.T):
        values, part = np.unique(column, return_inverse=True)
        # Numbered anew after each column, so that the product never grows beyond rows times values.
        _, kinds = np.unique(kinds * len(values) + part, return_inverse=True)
    return np.split(kinds.astype(np.int64), np.cumsum(lengths)[:-1])


def _is_numeric(tables: Sequence[Table], name: str) -> bool:
    kinds = [table.types[name] for table in tables]
    families = [family for family in (_AMOUNTS, _TIMES) if all(kind in family for kind in kinds)]
    if not families and len(set(kinds)) > 1:
        raise ParameterError(
            f'Column "{name}" holds {kinds[0]} values in one table and other values in another.',
            fix="store the column alike in all tables.",
        )
    schema = tables[0].schema
    described = None if schema is None else schema.columns.get(name)
    return bool(families) and (described is None or described.kind in (Kind.NUMERIC, Kind.DATETIME))


def _numbers(values: pa.ChunkedArray) -> Floats:
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _encode_columns(columns: Sequence[pa.ChunkedArray]) -> list[NDArray[np.int32]]:
    kind = columns[0].type
    encoded = pa.chunked_array([chunk for column in columns for chunk in column.cast(kind).chunks], kind)
    # Codes follow the first occurrence over all tables, missing included.
    codes = pc.index_in(encoded, pc.unique(encoded)).to_numpy(zero_copy_only=False)
    return np.split(np.asarray(codes, dtype=np.int32), np.cumsum([len(column) for column in columns])[:-1])


def _matrix(columns: list[Floats], count: int) -> Floats:
    return np.column_stack(columns) if columns else np.zeros((count, 0))


def _ranges(
    numbers: list[Floats], names: list[str], bounds: Mapping[str, tuple[float, float]]
) -> tuple[Floats, Floats]:
    pooled = np.concatenate(numbers)
    finite = np.isfinite(pooled)
    lows = np.min(pooled, axis=0, initial=np.inf, where=finite)
    highs = np.max(pooled, axis=0, initial=-np.inf, where=finite)
    for place, name in enumerate(names):
        if name in bounds:
            lows[place], highs[place] = bounds[name]
    empty = lows > highs
    return np.where(empty, 0.0, lows), np.where(empty, 0.0, highs)


Singles: TypeAlias = NDArray[np.float32]

_ROWS = 32
_CHUNK = 4096
_GROUP = 64
_MISSING = 2.0
_DECIMALS = 12
"""Rounding must not decide between rows that are equally near."""


def nearest_rows(
    rows: MixedRows, among: MixedRows, *, neighbors: int = 1, squared: bool = False
) -> tuple[Floats, Integers]:
    """Return for each row its nearest ones among others: their distances and their places, one column per neighbor.

    Args:
        rows: whose neighbors.
        among: where to look; of the same columns.
        neighbors: how many; of several that are equally near, the first ones.
        squared: whether numbers count by their squared difference, and the root of the mean is returned.

    Raises:
        ParameterError: if there are fewer rows than neighbors, or no columns.
    """
    if rows.columns != among.columns or not rows.columns:
        raise ParameterError("The rows have different columns, or none.", fix="compare rows with the same columns.")
    if not 1 <= neighbors <= len(among):
        raise ParameterError(
            f"There are fewer than {neighbors} rows to look among.", fix="ask for fewer neighbors, or give more rows."
        )
    kinds, firsts = _distinct(rows)
    there, positions = _distinct(among)
    # Equal rows are searched once, and expanded to all their places at the end.
    listed = _first_positions(there, len(positions), neighbors)
    search = _Search(rows.take(firsts), among.take(positions), squared=squared)
    found = [search.block(start, min(neighbors, len(positions))) for start in range(0, len(firsts), _ROWS)]
    distances, places = _expand_kinds(
        np.concatenate([item[0] for item in found]), np.concatenate([item[1] for item in found]), listed, neighbors
    )
    return distances[kinds], places[kinds]


class _Search:
    """Blocks of rows against all others, with the buffers that they share."""

    def __init__(self, rows: MixedRows, among: MixedRows, *, squared: bool) -> None:
        self._squared = squared
        self._numbers, self._others = _fill_missing(rows), _fill_missing(among)
        self._codes, self._names = rows.codes, among.codes
        # Only columns with gaps have distances above 1 that must be cut.
        self._gaps = [bool((part == _MISSING).any()) for part in (*np.vstack([self._numbers, self._others]).T,)]
        width = len(rows.columns)
        # Each of the sums of single precision is off by at most this, twice for two that are compared.
        self._slack = np.float32(2 * 2.0**-23 * (rows.numeric + 2) * (width + 1))
        self._width = width
        # Bytes are compared four times as fast as 32-bit numbers.
        small = max(int(rows.codes.max(initial=0)), int(among.codes.max(initial=0))) < 256
        self._coded = rows.codes.astype(np.uint8 if small else np.int32)
        self._single = self._numbers.astype(np.float32)
        self._columns = np.ascontiguousarray(self._others.T, dtype=np.float32)
        self._listed = np.ascontiguousarray(among.codes.T.astype(self._coded.dtype))
        self._count = len(among)
        padded = -(-self._count // _GROUP) * _GROUP
        self._all = np.full((_ROWS, padded), np.inf, dtype=np.float32)
        self._term = np.empty((_ROWS, _CHUNK), dtype=np.float32)
        self._unlike = np.empty((_ROWS, _CHUNK), dtype=np.bool_)
        self._counted = np.empty((_ROWS, _CHUNK), dtype=np.uint8 if width < 256 else np.uint16)

    def block(self, start: int, neighbors: int) -> tuple[Floats, Integers]:
        """Return the distances and places of the nearest of each row of a block."""
        count = min(_ROWS, len(self._single) - start)
        for chunk in range(0, self._count, _CHUNK):
            self._compare(start, count, chunk, min(_CHUNK, self._count - chunk))
        rows, places = self._candidates(count, neighbors)
        return self._exactly(start, count, rows, places, neighbors)

    def _compare(self, start: int, count: int, chunk: int, width: int) -> None:
        """Write the sums over columns of a block against a chunk of the others."""
        rows, columns = slice(start, start + count), slice(chunk, chunk + width)
        total = self._all[:count, columns]
        term, unlike, counted = (item[:count, :width] for item in (self._term, self._unlike, self._counted))
        counted[...] = 0
        for place in range(len(self._listed)):
            np.not_equal(self._coded[rows, place, None], self._listed[place, columns], out=unlike)
            np.add(counted, unlike, out=counted, casting="unsafe")
        total[...] = counted
        for place, gaps in enumerate(self._gaps):
            np.subtract(self._single[rows, place, None], self._columns[place, columns], out=term)
            np.multiply(term, term, out=term) if self._squared else np.abs(term, out=term)
            if gaps:
                np.minimum(term, 1, out=term)
            np.add(total, term, out=total)

    def _candidates(self, count: int, neighbors: int) -> tuple[Integers, Integers]:
        """Return pairs of a row of the block and a place that can be among its nearest."""
        total = self._all[:count]
        least = total.reshape(count, -1, _GROUP).min(axis=2)
        reach = min(neighbors, least.shape[1]) - 1
        # Groups whose least is beyond the n-th least of all groups cannot hold one of the n nearest.
        limit = np.partition(least, reach, axis=1)[:, reach] if neighbors <= least.shape[1] else np.full(count, np.inf)
        # Two sums in single precision may each be off: whatever is that close is compared again.
        limit = (limit + self._slack).astype(np.float32)
        rows, groups = np.nonzero(least <= limit[:, None])
        inside = total.reshape(count, -1, _GROUP)[rows, groups] <= limit[rows, None]
        pairs, offsets = np.nonzero(inside)
        places = groups[pairs] * _GROUP + offsets
        # Padding is infinitely far, but so is the limit where there are few groups.
        kept = places < self._count
        return rows[pairs][kept], places[kept]

    def _exactly(
        self, start: int, count: int, rows: Integers, places: Integers, neighbors: int
    ) -> tuple[Floats, Integers]:
        """Return the nearest of each row by distances in double precision."""
        apart = self._numbers[start + rows] - self._others[places]
        apart = np.minimum(apart * apart if self._squared else np.abs(apart), 1)
        unlike = (self._codes[start + rows] != self._names[places]).sum(axis=1)
        # Rounded, so that the order of additions does not decide between equally near rows.
        mean = np.round((apart.sum(axis=1) + unlike) / self._width, _DECIMALS)
        distances = np.sqrt(mean) if self._squared else mean
        order = np.lexsort((places, distances, rows))
        begins = np.searchsorted(rows[order], np.arange(count))
        # Every row has at least so many candidates, since the limit lets the n least through.
        chosen = order[begins[:, None] + np.arange(neighbors)]
        return distances[chosen], places[chosen]


def _fill_missing(rows: MixedRows) -> Floats:
    """Return scaled numbers with a missing one beyond the reach of all others."""
    scaled = rows.scaled()
    return np.where(np.isnan(scaled), _MISSING, scaled)


def _distinct(rows: MixedRows) -> tuple[Integers, Integers]:
    """Return the kind of each row, and where each kind occurs first, kinds in the order in which they occur."""
    (kinds,) = number_rows([rows])
    _, firsts, inverse = np.unique(kinds, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse], firsts[order]


def _first_positions(kinds: Integers, distinct: int, most: int) -> Integers:
    """Return the first places of each kind, at most so many; -1 where there are fewer."""
    order = np.argsort(kinds, kind="stable")
    counts = np.bincount(kinds, minlength=distinct)
    begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
    reach = np.arange(most)
    places = order[np.minimum(begins[:, None] + reach, len(order) - 1)]
    return np.where(reach < counts[:, None], places, -1)


def _expand_kinds(distances: Floats, kinds: Integers, listed: Integers, neighbors: int) -> tuple[Floats, Integers]:
    """Return the nearest places from the nearest kinds, of which each may occur more than once."""
    if neighbors == 1:
        return distances, listed[kinds[:, 0]]
    places = listed[kinds].reshape(len(kinds), -1)
    apart: NDArray[Any] = np.repeat(distances, listed.shape[1], axis=1)
    apart = np.where(places < 0, np.inf, apart)
    order = np.lexsort((places, apart), axis=1)[:, :neighbors]
    return np.take_along_axis(apart, order, axis=1), np.take_along_axis(places, order, axis=1)
