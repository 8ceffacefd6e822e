"""Comparison of a released table with its original, both as counts.

Row ``i`` of ``codes`` says which label each quasi-identifier of class ``i`` shows, ``rows[i]`` how many rows show it;
`columns` says which raw values a label allows. The original is counted, and rows are matched where that is possible:
where it is known which raw row became which released one, `lines` holds that too, as the original cell, the class, and
the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells, Source, group_lines, read_cells
from cloister.anonymize.labels import ReadLabels, read_labels
from cloister.anonymize.regions import Regions
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import text_of
from cloister.errors import DataError

__all__ = [
    "Comparison",
    "MatchedLines",
    "compare_cells",
    "compare_release",
    "compare_tables",
    "places_among",
    "region_numbers",
    "row_codes",
]


Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class MatchedLines:
    """Which original cell went into which class (-1: none), and how many rows of it."""

    cells: Counts
    classes: Counts
    counts: Counts


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """What was, and what is shown instead."""

    original: CodedCells
    columns: tuple[ReadLabels, ...]
    codes: NDArray[np.int32]
    rows: Counts
    lines: MatchedLines | None = None
    class_losses: NDArray[np.float64] | None = None
    """The LM loss of each class (row) in each column, where more than the labels is known."""
    class_levels: NDArray[np.int64] | None = None
    """The level at which the rows of each class meet, likewise."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the quasi-identifiers."""
        return self.original.names

    @cached_property
    def total(self) -> int:
        """Return the number of original rows."""
        return self.original.total

    @cached_property
    def kept(self) -> int:
        """Return the number of released rows."""
        return int(self.rows.sum())

    @property
    def suppressed(self) -> int:
        """Return how many original rows are not released."""
        return self.total - self.kept

    def lost(self, place: int) -> float:
        """Return the sum of the LM losses of one column over the released rows."""
        if self.class_losses is not None:
            return float(self.rows @ self.class_losses[:, place])
        return float(self.label_rows(place) @ self.columns[place].losses)

    def sum_levels(self, place: int) -> float:
        """Return the number of levels climbed in one column over the released rows."""
        if self.class_levels is not None:
            return float(self.rows @ self.class_levels[:, place])
        return float(self.label_rows(place) @ self.columns[place].levels)

    @cached_property
    def original_columns(self) -> NDArray[np.intp]:
        """Return the codes of the original, one line per column, as NumPy looks things up fastest."""
        return np.ascontiguousarray(self.original.codes.T, dtype=np.intp)

    def label_rows(self, place: int) -> NDArray[np.float64]:
        """Return how many rows show each label of one column."""
        size = len(self.columns[place].losses)
        return np.bincount(self.codes[:, place], weights=self.rows, minlength=size).astype(np.float64)

    def leaf_rows(self, place: int) -> NDArray[np.float64]:
        """Return how many original rows have each raw value of one column."""
        size = len(self.original.attributes[place].leaves)
        codes, weights = self.original.codes[:, place], self.original.weights
        return np.bincount(codes, weights=weights, minlength=size).astype(np.float64)


def compare_cells(
    original: CodedCells,
    released: CodedCells,
    kept: NDArray[np.bool_],
    *,
    lines: MatchedLines | None = None,
    leaves_of: Callable[[int, Any], NDArray[np.int64]] | None = None,
) -> Comparison:
    """Return a comparison of an original with the kept cells of a released table.

    Args:
        original: the table as it was.
        released: the table as it is shown.
        kept: which released cells are not suppressed.
        lines: which cells became which, if that is known.
        leaves_of: the leaves behind a label of a column (by place) that cannot be read, if they are known.

    Raises:
        SchemaError: if labels cannot be read.
        DataError: if there are more released rows than original ones.
    """
    known = [None if leaves_of is None else partial(leaves_of, place) for place in range(len(original.attributes))]
    triples = zip(original.attributes, released.attributes, known, strict=True)
    result = Comparison(
        original=original,
        columns=tuple(read_labels(item, shown.leaves, leaves_of=leaves) for item, shown, leaves in triples),
        codes=released.codes[kept],
        rows=released.weights[kept],
        lines=lines,
    )
    if result.suppressed < 0:
        raise DataError(
            "The released table has more rows than the original.", fix="give the table that it was made from."
        )
    return result


_MOST_ROWS = 1_000_000


def compare_tables(
    table: Table, released: CodedCells, kept: NDArray[np.bool_], *, original: Table, schema: Schema
) -> Comparison:
    """Return a comparison of a table that was protected anywhere with its original.

    Rows are matched by their order where the tables have equally many and every label allows the value beside it.
    """
    raw = read_cells(original, schema, quasi=released.names)
    comparison = compare_cells(raw, released, kept)
    if released.total != raw.total or raw.total > _MOST_ROWS:
        return comparison
    before, after = row_codes(original, _quasi(raw)), row_codes(table, _quasi(released))
    # The order of rows is believed only if every label allows the value beside it.
    for place, column in enumerate(comparison.columns):
        if not column.member[after[:, place], before[:, place]].all():
            return comparison
    lines = _lines(before, after, raw, released, kept)
    return compare_cells(raw, released, kept, lines=lines)


def compare_release(regions: Regions, released: CodedCells, kept: NDArray[np.bool_]) -> Comparison:
    """Return a comparison of a release with its original; the partition says which rows became which."""
    partition = regions.partition
    numbers = region_numbers(regions, released, kept)
    classes = np.where(partition.groups >= 0, numbers[partition.groups], -1)
    lines = MatchedLines(cells=partition.line_cells, classes=classes, counts=partition.counts)
    result = compare_cells(partition.cells, released, kept, lines=lines, leaves_of=_Behind(regions))
    # Classes are numbered as the released table counts them, and facts about them have to follow.
    order = np.empty(partition.size, dtype=np.int64)
    order[numbers] = np.arange(partition.size)
    return replace(result, class_losses=regions.losses[order], class_levels=regions.levels[order].astype(np.int64))


def region_numbers(regions: Regions, released: CodedCells, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number, among the kept cells of the released table, of each class of a release."""
    shown = np.column_stack(
        [_label_codes(regions.labels(place), attribute) for place, attribute in enumerate(released.attributes)]
    )
    return places_among(shown, released, kept)


class _Behind:
    """The leaves that the rows under each label have, for labels that cannot be read (a set of names with commas)."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self._found: dict[int, dict[str | None, NDArray[np.int64]]] = {}

    def __call__(self, place: int, label: Any) -> NDArray[np.int64]:  # what a cell shows
        if place not in self._found:
            self._found[place] = self._read(place)
        return self._found[place][_key(label)]

    def _read(self, place: int) -> dict[str | None, NDArray[np.int64]]:
        attribute, regions = self._regions.partition.cells.attributes[place], self._regions
        known: dict[str | None, int] = {}
        numbers = np.array([known.setdefault(_key(label), len(known)) for label in regions.labels(place)])
        size = len(attribute.leaves)
        pairs = np.unique(numbers[regions.class_of_line] * size + regions.codes(place)).astype(np.int64)
        # Pairs are sorted by label, so that each label's leaves are one slice.
        starts = np.searchsorted(pairs // size, np.arange(1, len(known)))
        leaves: list[NDArray[np.int64]] = np.split(pairs % size, starts)
        return {
            name: _between(leaves[number]) if attribute.is_ordered else leaves[number] for name, number in known.items()
        }


def _between(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.arange(codes[0], codes[-1] + 1)


def _label_codes(labels: NDArray[np.object_], attribute: CodedAttribute) -> NDArray[np.int32]:
    """Return the code of each label in the released table."""
    known = {_key(leaf): code for code, leaf in enumerate(attribute.leaves)}
    codes = {label: known[_key(label)] for label in set(labels)}
    return np.array([codes[label] for label in labels], dtype=np.int32)


def _key(label: Any) -> str | None:
    return None if label is None else text_of(label)


def places_among(wanted: NDArray[np.int32], released: CodedCells, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number, among the kept cells, of each combination of codes; -1 for one that is not kept."""
    shape = tuple(len(item.leaves) for item in released.attributes)
    # Grouped together, equal combinations of both tables get one number.
    _, _, group = group_lines(np.vstack([released.codes, wanted]), shape)
    place_of = np.full(int(group.max()) + 1, -1, dtype=np.int64)
    place_of[group[: len(released)]] = np.where(kept, np.cumsum(kept) - 1, -1)
    return place_of[group[len(released) :]]


def row_codes(table: Table, sources: Sequence[Source]) -> NDArray[np.int32]:
    """Return the code of every row in every counted column, in the order of the rows."""
    rows = table.to_arrow().select([source.name for source in sources])
    columns = []
    for source, column in zip(sources, rows.columns, strict=True):
        coded = column.combine_chunks().dictionary_encode()
        known = {_key(value): int(code) for value, code in zip(source.values, source.codes, strict=True)}
        # A missing cell picks the entry appended at the end.
        codes = np.array([known[_key(value)] for value in coded.dictionary.to_pylist()] + [known.get(None, -1)])
        places = pa.compute.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        columns.append(codes[places].astype(np.int32))
    return np.column_stack(columns)


def _quasi(cells: CodedCells) -> tuple[Source, ...]:
    return cells.sources[: len(cells.names)]


def _lines(
    before: NDArray[np.int32], after: NDArray[np.int32], raw: CodedCells, released: CodedCells, kept: NDArray[np.bool_]
) -> MatchedLines:
    cells = places_among(before, raw, np.ones(len(raw), dtype=bool))
    classes = places_among(after, released, kept)
    pairs, counts = np.unique(np.column_stack([cells, classes]), axis=0, return_counts=True)
    return MatchedLines(cells=pairs[:, 0], classes=pairs[:, 1], counts=counts.astype(np.int64))
