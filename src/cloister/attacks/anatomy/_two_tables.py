"""A release in two tables as an attacker sees it, in numbers, and the truth that is used for scoring only.

There are people, groups, and the values of each group. People with equal quasi-identifiers share a *cell*, and groups
with equal cells and values are of one *kind*: learning works on kinds with their frequencies, whatever the number of
rows. A missing quasi-identifier is a level of its own, as is a missing sensitive value.

Numeric columns with many different numbers are cut at quantiles, so that neighbors can learn from each other. A column
in which no level occurs twice is left out: nothing carries over from one person to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cloister.anonymize.anatomy import COUNT, GROUP, AnatomyRelease, AnatomyTables, encode_values
from cloister.attacks.anatomy._assignments import Indices
from cloister.core.random import RandomSource
from cloister.core.validation import check_count
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import DataError, ParameterError, ParameterTypeError, UnknownColumnError

__all__ = ["GroupBlock", "PublishedAnatomy", "Puzzle", "make_puzzle", "read_release", "read_truth"]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class GroupBlock:
    """All groups of one pattern of counts, which holds for the values in their order.

    Attributes:
        pattern: how often each value of a group occurs, the most frequent first.
        people: the rows of each group.
        kind: which kind each group is of.
        cells: the cell of each person, for each kind.
        values: the different values, for each kind.
        weights: how many groups are of each kind.
    """

    pattern: tuple[int, ...]
    people: Indices
    kind: Indices
    cells: Indices
    values: Indices
    weights: Indices

    @property
    def size(self) -> int:
        """Return how many people are in each of these groups."""
        return sum(self.pattern)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Puzzle:
    """Both tables, coded.

    Attributes:
        attribute: the sensitive column.
        columns: the quasi-identifiers that are learned from.
        values: the sensitive values that occur.
        levels: how many levels each quasi-identifier has.
        indicator: which levels each cell has: cells by levels of all columns.
        population: how many people are in each cell.
        cell: the cell of each row.
        group: the group of each row.
        lines: of the second table the group, the code of the value, and how often it occurs.
        blocks: the groups, by the pattern of their counts.
    """

    attribute: str
    columns: tuple[str, ...]
    values: pa.Array
    levels: tuple[int, ...]
    indicator: Any  # a sparse matrix, which has no types
    population: Indices
    cell: Indices
    group: Indices
    lines: tuple[Indices, Indices, Indices]
    blocks: tuple[GroupBlock, ...]

    @property
    def rows(self) -> int:
        """Return how many people there are."""
        return len(self.cell)

    @property
    def groups(self) -> int:
        """Return how many groups there are."""
        return sum(len(block.kind) for block in self.blocks)

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the size of the smallest and of the largest group."""
        found = [block.size for block in self.blocks]
        return min(found), max(found)

    @property
    def largest_share(self) -> float:
        """Return how many are right who name the most frequent value of each group, as a share of all people."""
        return sum(block.pattern[0] * len(block.kind) for block in self.blocks) / self.rows

    def holds(self, truth: Indices) -> bool:
        """Return whether the true values of all rows are those that the groups have."""
        size = len(self.values)
        found, counts = np.unique(self.group * size + truth, return_counts=True)
        expected = self.lines[0] * size + self.lines[1]
        order = np.argsort(expected)
        return np.array_equal(found, expected[order]) and np.array_equal(counts, self.lines[2][order])


def make_puzzle(
    levels: Mapping[str, Indices],
    group: Indices,
    lines: tuple[Indices, Indices, Indices],
    *,
    values: pa.Array,
    attribute: str,
    source: RandomSource,
) -> Puzzle:
    """Return the puzzle of coded tables.

    Args:
        levels: for each quasi-identifier the level of each row, from 0 on.
        group: the group of each row, from 0 on.
        lines: of the second table the group, the code of the value, and how often it occurs; each pair once.
        values: the sensitive values, by code.
        attribute: the name of the sensitive column.
        source: where the order of people who look alike comes from.
    """
    # A last column of zeros leaves one cell for everybody where no quasi-identifier can be learned from.
    codes = np.column_stack([*levels.values(), np.zeros(len(group), np.int64)])
    cells, cell, population = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    sizes = tuple(int(column.max()) + 1 for column in levels.values())
    return Puzzle(
        attribute=attribute,
        columns=tuple(levels),
        values=values,
        levels=sizes,
        indicator=_indicator(cells[:, :-1], sizes),
        population=population,
        cell=cell.ravel(),
        group=group,
        lines=lines,
        blocks=tuple(_blocks(cell.ravel(), group, lines, source)),
    )


def _indicator(cells: Indices, sizes: tuple[int, ...]) -> Any:
    from scipy import sparse

    offsets = np.cumsum((0, *sizes))
    places = (cells + offsets[:-1]).ravel()
    ends = np.arange(len(cells) + 1) * cells.shape[1]
    return sparse.csr_array((np.ones(places.size), places, ends), shape=(len(cells), int(offsets[-1])))


def _blocks(
    cell: Indices, group: Indices, lines: tuple[Indices, Indices, Indices], source: RandomSource
) -> Iterator[GroupBlock]:
    """Yield the groups of each pattern; people of a group are in the order of their cells, and equal ones at random."""
    # Random words are the last key, so that the order of people who look alike tells nothing.
    order = np.lexsort((source.words(len(cell)), cell, group))
    starts = _starts(np.bincount(group))
    listed = np.lexsort((lines[1], -lines[2], lines[0]))
    values, counts = lines[1][listed], lines[2][listed]
    lengths = np.bincount(lines[0])
    heads = _starts(lengths)
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        places = heads[chosen, None] + np.arange(length)
        patterns, which = np.unique(counts[places], axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns.tolist()):
            alike = which.ravel() == number
            people = order[starts[chosen[alike], None] + np.arange(sum(pattern))]
            yield _block(tuple(pattern), people, cell[people], values[places[alike]])


def _block(pattern: tuple[int, ...], people: Indices, cells: Indices, values: Indices) -> GroupBlock:
    kinds, kind, weights = np.unique(np.hstack([cells, values]), axis=0, return_inverse=True, return_counts=True)
    size = people.shape[1]
    return GroupBlock(
        pattern=pattern,
        people=people,
        kind=kind.ravel(),
        cells=kinds[:, :size],
        values=kinds[:, size:],
        weights=weights,
    )


def _starts(lengths: Indices) -> Indices:
    return np.cumsum(lengths) - lengths


_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class PublishedAnatomy:
    """What is known about a release.

    Attributes:
        puzzle: the two tables, coded; all that the attacker gets.
        promise: how often the release says that a guess is right at most.
        positions: where each row was in the custodian's table, if that is known.
        original: the true values in the custodian's order, if the release kept them.
    """

    puzzle: Puzzle
    promise: float
    positions: Indices | None
    original: pa.ChunkedArray | None


def read_release(release: Any, *, group: str, count: str, bins: int, source: RandomSource) -> PublishedAnatomy:
    """Return what is known about a release in two tables.

    Args:
        release: an `AnatomyRelease`, or its two tables: quasi-identifiers first, then sensitive values.
        group: the column of both tables with the number of the group.
        count: the column of the second table that says how often a value occurs; without it, each line counts as one.
        bins: into how many bins a numeric column is cut that has more different numbers.
        source: where the order of people who look alike comes from.
    """
    number = check_count(bins, name="bins", at_least=2)
    if isinstance(release, AnatomyRelease | AnatomyTables):
        tables = release.tables if isinstance(release, AnatomyRelease) else release
        puzzle = _read(tables.quasi, tables.sensitive, group=GROUP, count=COUNT, bins=number, source=source)
        original = release.original.to_arrow()[tables.attribute] if isinstance(release, AnatomyRelease) else None
        promise = 1 / release.l if isinstance(release, AnatomyRelease) else puzzle.largest_share
        return PublishedAnatomy(puzzle=puzzle, promise=promise, positions=tables.positions, original=original)
    if not isinstance(release, Sequence) or isinstance(release, str) or len(release) != 2:
        raise ParameterTypeError(
            f"This is not a release in two tables but of type {type(release).__name__}.",
            fix="give what cl.anonymize(..., algorithm='anatomy') returned, or (quasi, sensitive): two tables.",
        )
    quasi, sensitive = (_rows(table) for table in release)
    puzzle = _read(quasi, sensitive, group=group, count=count, bins=number, source=source)
    return PublishedAnatomy(puzzle=puzzle, promise=puzzle.largest_share, positions=None, original=None)


def read_truth(truth: Any, published: PublishedAnatomy) -> Indices:
    """Return the code of the true value of each released row.

    Args:
        truth: a table or frame with the sensitive column, or its values; rows in the order of the custodian's table, or
            of the released one. None takes what the release kept.
        published: the release.

    Raises:
        DataError: if these are not the values of the release, in either order.
    """
    puzzle = published.puzzle
    column = published.original if truth is None else _truth_column(truth, puzzle.attribute)
    if column is None:
        raise ParameterError(
            "Without the truth nobody knows how often the attacker is right.",
            fix=f'give truth= with the column "{puzzle.attribute}", in the order of the first table.',
        )
    if len(column) != puzzle.rows:
        raise DataError(
            f"The release has {puzzle.rows:,} rows and the truth {len(column):,}.",
            fix="give the true value of every released row.",
        )
    codes = _look_up(column, puzzle.values)
    orders = [codes] if published.positions is None else [codes[published.positions], codes]
    for found in orders:
        if (found >= 0).all() and puzzle.holds(found):
            return found
    raise DataError(
        "The truth does not have the values that the groups of the release have.",
        fix="give the rows of the table that was released, in their original order.",
    )


def _read(quasi: pa.Table, sensitive: pa.Table, *, group: str, count: str, bins: int, source: RandomSource) -> Puzzle:
    attribute = _attribute(quasi, sensitive, group=group, count=count)
    if not len(quasi):
        raise DataError("The released tables have no rows.", fix="give tables with data.")
    number, names = encode_values(quasi[group])
    lines = _lines(sensitive, names, attribute, group=group, count=count)
    codes, values = encode_values(sensitive[attribute])
    if len(values) < 2:
        raise DataError(
            f'"{attribute}" has one value, so that there is nothing to find out.',
            fix="choose another sensitive column.",
        )
    keys, where = np.unique(lines[0] * len(values) + codes, return_inverse=True)
    counts = np.bincount(where.ravel(), lines[1]).astype(np.int64)
    listed = keys // len(values), keys % len(values), counts
    totals = np.bincount(listed[0], counts, minlength=len(names))
    if not np.array_equal(totals, np.bincount(number, minlength=len(names))):
        raise DataError(
            "The two tables do not have the same number of rows in every group.",
            fix="give both tables of one release, whole.",
        )
    levels = dict(_levels(quasi.drop_columns([group]), bins))
    return make_puzzle(levels, number, listed, values=values, attribute=attribute, source=source)


def _attribute(quasi: pa.Table, sensitive: pa.Table, *, group: str, count: str) -> str:
    """Return the name of the sensitive column: the only one of the second table that is left."""
    for table in (quasi, sensitive):
        if group not in table.column_names:
            raise UnknownColumnError(group, table.column_names)
    left = [name for name in sensitive.column_names if name not in (group, count)]
    if len(left) != 1:
        raise ParameterError(
            f"The second table has {len(left)} columns beside the group and the count.",
            fix=f'give a table of "{group}", one sensitive column and "{count}"; group= and count= name other columns.',
        )
    if left[0] in quasi.column_names:
        raise ParameterError(
            f'"{left[0]}" is in both tables, so that nothing is hidden.', fix="give the quasi-identifiers first."
        )
    if len(quasi.column_names) < 2:
        raise ParameterError(
            "The first table has no quasi-identifiers.", fix=f'give a table of quasi-identifiers and "{group}".'
        )
    return str(left[0])


def _lines(sensitive: pa.Table, names: pa.Array, attribute: str, *, group: str, count: str) -> tuple[Indices, Indices]:
    """Return the group of each line of the second table and how often its value occurs."""
    places = _look_up(sensitive[group], names)
    if (places < 0).any():
        raise DataError("A group is in the second table only.", fix="give both tables of one release, whole.")
    if count not in sensitive.column_names:
        return places, np.ones(len(places), np.int64)
    try:
        counts = sensitive[count].cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        counts = np.zeros(1)
    if counts.dtype != np.int64 or (counts < 1).any():
        raise DataError(
            f'"{count}" is not a whole number above zero in every line.',
            fix=f'say in count= which column says how often a value of "{attribute}" occurs.',
        )
    return places, counts


def _levels(quasi: pa.Table, bins: int) -> Iterator[tuple[str, Indices]]:
    """Yield the level of each row, for the columns that can be learned from."""
    for name in quasi.column_names:
        codes, values = encode_values(quasi[name])
        if len(values) > bins and any(is_kind(values.type) for is_kind in _NUMERIC):
            codes = _cut(codes, bins, missing=values.null_count > 0)
        if codes.max() + 1 < len(codes):
            yield name, codes


def _cut(codes: Indices, bins: int, *, missing: bool) -> Indices:
    """Return about equally large bins of codes that are in the order of their numbers; a missing one comes last."""
    counts = np.bincount(codes)
    coarse = (np.cumsum(counts) - counts) * bins // len(codes)
    if missing:
        coarse[-1] = bins
    levels: Indices = np.unique(coarse, return_inverse=True)[1].ravel()
    return levels[codes]


def _rows(table: Any) -> pa.Table:
    rows = (
        table if isinstance(table, pa.Table) else (table if isinstance(table, Table) else open_table(table)).to_arrow()
    )
    flat = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in rows.columns
    ]
    return pa.table(flat, names=rows.column_names)


def _truth_column(truth: Any, attribute: str) -> pa.ChunkedArray:
    is_table = isinstance(truth, Table | pa.Table | pa.RecordBatch) or hasattr(truth, "columns")
    if is_table:
        rows = _rows(pa.Table.from_batches([truth]) if isinstance(truth, pa.RecordBatch) else truth)
        if attribute not in rows.column_names:
            raise UnknownColumnError(attribute, rows.column_names)
        return rows[attribute]
    if isinstance(truth, str | bytes) or not hasattr(truth, "__len__"):
        raise ParameterTypeError(
            f"The truth is of type {type(truth).__name__}.",
            fix=f'give a table with the column "{attribute}", or a list of its values.',
        )
    try:
        found = truth if isinstance(truth, pa.ChunkedArray) else pa.array(truth, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise ParameterTypeError(
            "The truth is not a list of values of one type.", fix="give one value for every released row."
        ) from None
    found = found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
    return found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found


def _look_up(column: Any, values: pa.Array) -> Indices:
    """Return the place of each cell among some values, -1 where it is not there."""
    try:
        cells = column.cast(values.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.full(len(column), -1)
    places = pc.fill_null(pc.index_in(cells, value_set=values), -1)
    return np.asarray(places.to_numpy(), dtype=np.int64)
