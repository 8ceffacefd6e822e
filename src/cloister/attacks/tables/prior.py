"""What is known about a sensitive column without the release: how often each value occurs in the original.

A release whose rows all show one value tells it of everybody. Held against itself it would seem to tell nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import Cells, Sensitive, read_cells
from cloister.anonymize.models import Histogram
from cloister.attacks.tables.reading import Published, opened
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import is_missing, text_of
from cloister.errors import HierarchyError, ParameterError, UnknownColumnError

__all__ = ["Prior", "prior_of"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Prior:
    """The values of a column, and in how many rows each of them is."""

    column: Sensitive
    counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Prior({self.column.name})"

    @property
    def largest(self) -> float:
        """Return the share of the most frequent value."""
        return float(self.counts.max() / self.counts.sum())

    @property
    def whole(self) -> Histogram:
        """Return the table as one class."""
        values = np.flatnonzero(self.counts)
        return Histogram(
            classes=np.zeros(len(values), dtype=np.int64),
            values=values,
            counts=self.counts[values],
            sizes=np.array([self.counts.sum()]),
            overall=self.counts,
        )

    def shares_of(self, column: Sensitive) -> NDArray[np.float64]:
        """Return the share of each value of a released column.

        Raises:
            ParameterError: if the original lacks one of them.
        """
        known = {_name(value): int(count) for value, count in zip(self.column.values, self.counts, strict=True)}
        found = np.array([known.get(_name(value), 0) for value in column.values], dtype=np.int64)
        if not found.all():
            raise ParameterError(
                f'"{column.name}" has values in the release that the original lacks.',
                fix="give the original that the release was made from, with values as the release writes them.",
            )
        return np.asarray(found / self.counts.sum())


def prior_of(published: Published, name: str | None, original: Any) -> Prior:
    """Return what is known about a sensitive column from the original, by default that of a release.

    A released table without an original is its own: what it says as a whole is taken as known.

    Raises:
        UnknownColumnError: if the original lacks the column.
    """
    column = published.sensitive(name)
    if original is None and published.release is None:
        return Prior(column=column, counts=published.histogram(name).overall)
    table = opened(original) if original is not None or published.release is None else published.release.original
    if column.name not in table.columns:
        raise UnknownColumnError(column.name, table.columns)
    cells = _read(table, published.schema[column.name])
    counts = np.bincount(
        cells.record_values[:, 0], weights=cells.record_weights, minlength=len(cells.sensitive[0].values)
    )
    return Prior(column=cells.sensitive[0], counts=counts.astype(np.int64))


def _read(table: Table, column: Column) -> Cells:
    try:
        return read_cells(table, Schema([column]), quasi=[column.name], sensitive=[column.name])
    except HierarchyError:
        bare = replace(column, hierarchy=None, hierarchy_file=None)
        return read_cells(table, Schema([bare]), quasi=[column.name], sensitive=[column.name])


def _name(value: Any) -> str | None:
    return None if is_missing(value) else text_of(value)
