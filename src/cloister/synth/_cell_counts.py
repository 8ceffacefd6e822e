"""Exact marginals of a table's cells. Protected: everything here is what noise is added to.

Tables that fit are counted by the engine once, over all columns; of larger ones each marginal is a grouped count of
its own, so that the rows stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.data.persons import rows_of_persons
from cloister.data.table import Table
from cloister.synth._domain import DomainAttribute, TableDomain

__all__ = ["CellCounts", "code_rows", "count_cells", "whole_counts"]

Counts = NDArray[np.int64]

_LARGEST_HELD = 3_000_000
"""Up to how many rows all columns are counted at once."""

_LARGEST_COUNT = 2**40


class CellCounts:
    """The counts of a table's cells, marginal by marginal."""

    def __init__(self, table: Table, domain: TableDomain) -> None:
        self._table, self._domain = table, domain
        self._held = _code_columns(table, domain.attributes) if table.count() <= _LARGEST_HELD else None

    def __repr__(self) -> str:
        return f"CellCounts({', '.join(self._domain.names)})"

    def marginal(self, columns: Sequence[int]) -> Counts:
        """Return the counts of all combinations of some columns' cells, one axis per column; of none, the rows."""
        if not columns:
            return np.asarray(self.marginal((0,)).sum())
        shape = tuple(self._domain.sizes[column] for column in columns)
        if self._held is not None:
            codes, weights = self._held
            chosen = [codes[column] for column in columns]
        else:
            chosen, weights = _code_columns(
                self._table, [self._domain.attributes[column] for column in columns], self._domain
            )
        return count_cells(chosen, shape, weights)


def count_cells(codes: Sequence[NDArray[np.int32]], shape: tuple[int, ...], weights: Counts | None = None) -> Counts:
    """Return how often each combination of codes occurs."""
    flat = codes[0].astype(np.int64)
    for column, size in zip(codes[1:], shape[1:], strict=True):
        flat *= size
        flat += column
    # Weights are added as doubles, which hold whole counts exactly up to 2**53.
    counted = np.bincount(flat, weights=weights, minlength=math.prod(shape))
    return counted.astype(np.int64).reshape(shape)


def whole_counts(released: NDArray[np.floating[Any]]) -> Counts:
    """Return released counts as whole numbers from 0 to 2**40, to hold true counts against.

    Noise can make a released count larger than 64 bits hold. Differences from it would wrap around, and one row could
    move a score by more than one.
    """
    return np.asarray(np.rint(np.clip(np.nan_to_num(released), 0, _LARGEST_COUNT)), dtype=np.int64)


def person_rows(table: Table, domain: TableDomain, *, unit: str, limit: int) -> Table:
    """Return the rows that are counted: all of them, or at most so many of each person."""
    if unit == "row":
        return table
    return rows_of_persons(table, unit=unit, columns=domain.names, limit=limit)


def _code_columns(
    table: Table, attributes: Sequence[DomainAttribute], whole: TableDomain | None = None
) -> tuple[list[NDArray[np.int32]], Counts | None]:
    """Return the codes of distinct rows, column by column, and how often each occurs (None for once each).

    Rows that miss a value where none can be missing are left out, each by itself.
    """
    # A row that is left out because of one column is left out of every marginal.
    strict = [] if whole is None else [item for item in whole.attributes if item.complete and item not in attributes]
    read = [*attributes, *strict]
    bins = {item.name: edges for item in read if (edges := item.engine_edges) is not None}
    plain = [item.name for item in read if not item.is_binned]
    counted = table.with_schema(None).frequencies([item.name for item in read], bins=bins)
    columns, kept = [], np.ones(len(counted), dtype=np.bool_)
    for place, item in enumerate(read):
        codes = counted.codes[:, place]
        if item.name in plain:
            codes = item.codes(counted.decoders[place])[codes].astype(np.int32)
        if item.complete:
            kept &= codes < item.present
        columns.append(codes)
    weights = np.array(counted.weights)
    if not kept.all():
        columns, weights = [codes[kept] for codes in columns], weights[kept]
    return columns[: len(attributes)], None if (weights == 1).all() else weights


def code_rows(table: Table, domain: TableDomain) -> tuple[NDArray[np.int32], Counts]:
    """Return the cells of distinct rows, a row and a column each, and how often each occurs. Protected."""
    columns, weights = _code_columns(table, domain.attributes)
    codes = np.column_stack(columns).astype(np.int32, order="F")
    return codes, np.ones(len(codes), dtype=np.int64) if weights is None else weights.astype(np.int64)
