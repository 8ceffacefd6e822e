"""Exact nearest neighbors of mixed rows, a block at a time.

The distance is that of Gower (1971): the mean over columns of the difference of two numbers as a share of their range,
and of 1 for two names that are not the same. A missing value is at distance 0 from a missing one and 1 from any other.

Equal rows are compared once. All pairs are compared in single precision, names byte by byte, in blocks that stay in
the cache; whatever could be among the nearest, given how far rounding can be off, is compared again in double
precision. So the neighbors are the true ones, and among equally near ones those that come first.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.data.mixed_rows import Floats, Integers, MixedRows, numbered_rows
from cloister.errors import ParameterError

__all__ = ["nearest_rows"]

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
    listed = _first_positions(there, len(positions), neighbors)
    search = _Search(rows.take(firsts), among.take(positions), squared=squared)
    found = [search.block(start, min(neighbors, len(positions))) for start in range(0, len(firsts), _ROWS)]
    distances, places = _expanded(
        np.concatenate([item[0] for item in found]), np.concatenate([item[1] for item in found]), listed, neighbors
    )
    return distances[kinds], places[kinds]


class _Search:
    """Blocks of rows against all others, with the buffers that they share."""

    def __init__(self, rows: MixedRows, among: MixedRows, *, squared: bool) -> None:
        self._squared = squared
        self._numbers, self._others = _filled(rows), _filled(among)
        self._codes, self._names = rows.codes, among.codes
        self._gaps = [bool((part == _MISSING).any()) for part in (*np.vstack([self._numbers, self._others]).T,)]
        width = len(rows.columns)
        # Each of the sums of single precision is off by at most this, twice for two that are compared.
        self._slack = np.float32(2 * 2.0**-23 * (rows.numeric + 2) * (width + 1))
        self._width = width
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
        limit = np.partition(least, reach, axis=1)[:, reach] if neighbors <= least.shape[1] else np.full(count, np.inf)
        limit = (limit + self._slack).astype(np.float32)
        rows, groups = np.nonzero(least <= limit[:, None])
        inside = total.reshape(count, -1, _GROUP)[rows, groups] <= limit[rows, None]
        pairs, offsets = np.nonzero(inside)
        places = groups[pairs] * _GROUP + offsets
        kept = places < self._count
        return rows[pairs][kept], places[kept]

    def _exactly(
        self, start: int, count: int, rows: Integers, places: Integers, neighbors: int
    ) -> tuple[Floats, Integers]:
        """Return the nearest of each row by distances in double precision."""
        apart = self._numbers[start + rows] - self._others[places]
        apart = np.minimum(apart * apart if self._squared else np.abs(apart), 1)
        unlike = (self._codes[start + rows] != self._names[places]).sum(axis=1)
        mean = np.round((apart.sum(axis=1) + unlike) / self._width, _DECIMALS)
        distances = np.sqrt(mean) if self._squared else mean
        order = np.lexsort((places, distances, rows))
        begins = np.searchsorted(rows[order], np.arange(count))
        chosen = order[begins[:, None] + np.arange(neighbors)]
        return distances[chosen], places[chosen]


def _filled(rows: MixedRows) -> Floats:
    """Return scaled numbers with a missing one beyond the reach of all others."""
    scaled = rows.scaled()
    return np.where(np.isnan(scaled), _MISSING, scaled)


def _distinct(rows: MixedRows) -> tuple[Integers, Integers]:
    """Return the kind of each row, and where each kind occurs first, kinds in the order in which they occur."""
    (kinds,) = numbered_rows([rows])
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


def _expanded(distances: Floats, kinds: Integers, listed: Integers, neighbors: int) -> tuple[Floats, Integers]:
    """Return the nearest places from the nearest kinds, of which each may occur more than once."""
    if neighbors == 1:
        return distances, listed[kinds[:, 0]]
    places = listed[kinds].reshape(len(kinds), -1)
    apart: NDArray[Any] = np.repeat(distances, listed.shape[1], axis=1)
    apart = np.where(places < 0, np.inf, apart)
    order = np.lexsort((places, apart), axis=1)[:, :neighbors]
    return np.take_along_axis(apart, order, axis=1), np.take_along_axis(places, order, axis=1)
