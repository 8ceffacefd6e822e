"""From two tables to a comparison: the original is counted, and rows are matched where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.cells import Cells, Source, grouped, read_cells
from cloister.anonymize.comparison import Comparison, Lines, compared
from cloister.anonymize.regions import Regions
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import text_of

__all__ = ["compare_release", "compare_tables", "places_among", "region_numbers", "row_codes"]

_MOST_ROWS = 1_000_000


def compare_tables(
    table: Table, released: Cells, kept: NDArray[np.bool_], *, original: Table, schema: Schema
) -> Comparison:
    """Return a comparison of a table that was protected anywhere with its original.

    Rows are matched by their order where the tables have equally many and every label allows the value beside it.
    """
    raw = read_cells(original, schema, quasi=released.names)
    comparison = compared(raw, released, kept)
    if released.total != raw.total or raw.total > _MOST_ROWS:
        return comparison
    before, after = row_codes(original, _quasi(raw)), row_codes(table, _quasi(released))
    for place, column in enumerate(comparison.columns):
        if not column.member[after[:, place], before[:, place]].all():
            return comparison
    lines = _lines(before, after, raw, released, kept)
    return compared(raw, released, kept, lines=lines)


def compare_release(regions: Regions, released: Cells, kept: NDArray[np.bool_]) -> Comparison:
    """Return a comparison of a release with its original; the partition says which rows became which."""
    partition = regions.partition
    numbers = region_numbers(regions, released, kept)
    classes = np.where(partition.groups >= 0, numbers[partition.groups], -1)
    lines = Lines(cells=partition.line_cells, classes=classes, counts=partition.counts)
    result = compared(partition.cells, released, kept, lines=lines, leaves_of=_Behind(regions))
    order = np.empty(partition.size, dtype=np.int64)
    order[numbers] = np.arange(partition.size)
    return replace(result, class_losses=regions.losses[order], class_levels=regions.levels[order].astype(np.int64))


def region_numbers(regions: Regions, released: Cells, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
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
        starts = np.searchsorted(pairs // size, np.arange(1, len(known)))
        leaves: list[NDArray[np.int64]] = np.split(pairs % size, starts)
        return {
            name: _between(leaves[number]) if attribute.is_ordered else leaves[number] for name, number in known.items()
        }


def _between(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.arange(codes[0], codes[-1] + 1)


def _label_codes(labels: NDArray[np.object_], attribute: Attribute) -> NDArray[np.int32]:
    """Return the code of each label in the released table."""
    known = {_key(leaf): code for code, leaf in enumerate(attribute.leaves)}
    codes = {label: known[_key(label)] for label in set(labels)}
    return np.array([codes[label] for label in labels], dtype=np.int32)


def _key(label: Any) -> str | None:
    return None if label is None else text_of(label)


def places_among(wanted: NDArray[np.int32], released: Cells, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number, among the kept cells, of each combination of codes; -1 for one that is not kept."""
    shape = tuple(len(item.leaves) for item in released.attributes)
    _, _, group = grouped(np.vstack([released.codes, wanted]), shape)
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
        codes = np.array([known[_key(value)] for value in coded.dictionary.to_pylist()] + [known.get(None, -1)])
        places = pa.compute.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        columns.append(codes[places].astype(np.int32))
    return np.column_stack(columns)


def _quasi(cells: Cells) -> tuple[Source, ...]:
    return cells.sources[: len(cells.names)]


def _lines(
    before: NDArray[np.int32], after: NDArray[np.int32], raw: Cells, released: Cells, kept: NDArray[np.bool_]
) -> Lines:
    cells = places_among(before, raw, np.ones(len(raw), dtype=bool))
    classes = places_among(after, released, kept)
    pairs, counts = np.unique(np.column_stack([cells, classes]), axis=0, return_counts=True)
    return Lines(cells=pairs[:, 0], classes=pairs[:, 1], counts=counts.astype(np.int64))
