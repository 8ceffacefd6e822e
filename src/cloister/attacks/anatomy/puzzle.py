"""What an attacker sees of a release in two tables, as numbers: people, groups, and the values of each group.

People with equal quasi-identifiers share a *cell*, and groups with equal cells and values are of one *kind*: learning
works on kinds with their frequencies, whatever the number of rows. A missing quasi-identifier is a level of its own, as
is a missing sensitive value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.attacks.anatomy.lattices import Indices
from cloister.core.random import RandomSource

__all__ = ["Block", "Puzzle", "make_puzzle"]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Block:
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
    blocks: tuple[Block, ...]

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
) -> Iterator[Block]:
    """Yield the groups of each pattern; people of a group are in the order of their cells, and equal ones at random."""
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


def _block(pattern: tuple[int, ...], people: Indices, cells: Indices, values: Indices) -> Block:
    kinds, kind, weights = np.unique(np.hstack([cells, values]), axis=0, return_inverse=True, return_counts=True)
    size = people.shape[1]
    return Block(
        pattern=pattern,
        people=people,
        kind=kind.ravel(),
        cells=kinds[:, :size],
        values=kinds[:, size:],
        weights=weights,
    )


def _starts(lengths: Indices) -> Indices:
    return np.cumsum(lengths) - lengths
