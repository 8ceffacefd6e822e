"""Cells as numbers: what a number, a correlation, a distance or a model is computed from.

A bin counts as its middle. Everything is scaled by public bounds, never by the rows.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.data.engines.base import ARROW_TYPES
from cloister.data.mixed_rows import MixedRows
from cloister.data.profile import StorageType
from cloister.synth.domain import Attribute
from cloister.synth.evaluation.tables import Codes, Floats, Tables

__all__ = ["Features", "amounts", "row_codes", "scaled_amounts"]


def amounts(attribute: Attribute) -> Floats:
    """Return the number that each present cell of a numeric column stands for: its value, or the middle of its bin.

    Dates are days and times are seconds since the first edge.
    """
    if not attribute.is_binned:
        return np.array([float(item) for item in attribute.values])
    edges = np.array([_number(edge, attribute.edges[0]) for edge in attribute.edges])
    last = edges[1:] - (attribute.storage in (StorageType.INTEGER, StorageType.DATE))
    return np.asarray((edges[:-1] + last) / 2)


def row_codes(attribute: Attribute, values: pa.ChunkedArray) -> NDArray[np.int32]:
    """Return the cell of each value, in order; what is missing or not declared has the cell after the present ones."""
    kind = ARROW_TYPES[attribute.storage]
    cast = values.cast(kind, safe=False)
    if not attribute.is_binned:
        places = pc.index_in(cast, pa.array(attribute.values, kind))
        return np.asarray(places.fill_null(attribute.present).to_numpy(), dtype=np.int32)
    inner = pa.array(attribute.edges[1:-1], kind).to_numpy(zero_copy_only=False)
    filled = cast.fill_null(pa.scalar(attribute.edges[0], kind)).to_numpy()
    codes = np.searchsorted(inner, filled, side="right")
    return np.where(cast.is_null().to_numpy(), attribute.present, codes).astype(np.int32)


def scaled_amounts(attribute: Attribute) -> Floats:
    """Return the amounts of the present cells between 0 and 1."""
    found = amounts(attribute)
    spread = found[-1] - found[0] if len(found) > 1 else 1.0
    return np.asarray((found - found[0]) / spread)


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of cells as rows of numbers: an amount as one number, a name as an indicator per cell.

    Attributes:
        tables: whose cells.
        columns: which columns.
    """

    tables: Tables
    columns: tuple[int, ...]

    def of(self, codes: Codes) -> Floats:
        """Return one row of numbers per row of cells; a missing amount is one half, with an indicator beside it."""
        return np.hstack([self._column(codes[:, column], column) for column in self.columns])

    def distances(self, codes: Codes) -> Floats:
        """Return rows of which the squared Euclidean distance is the mean over columns of the squared difference.

        Two amounts differ by their distance between 0 and 1, two names by 1 unless they are the same, and any amount
        differs from a missing one by 0.87 to 1.
        """
        parts = []
        for column in self.columns:
            part = self._column(codes[:, column], column)
            if self.tables.numeric[column]:
                part[:, 1:] *= np.sqrt(0.75)  # one half squared is in the amount already
            else:
                part *= np.sqrt(0.5)
            parts.append(part)
        return np.asarray(np.hstack(parts) / np.sqrt(len(self.columns)))

    def mixed(self, codes: Codes) -> MixedRows:
        """Return rows of which distances are measured pair by pair: amounts between 0 and 1, names as their cells.

        Unlike in `distances`, any amount differs from a missing one by 1.
        """
        numeric = [column for column in self.columns if self.tables.numeric[column]]
        others = [column for column in self.columns if not self.tables.numeric[column]]
        shown = [np.append(scaled_amounts(self.tables.domain.attributes[column]), np.nan) for column in numeric]
        numbers = [amounts[codes[:, column]] for amounts, column in zip(shown, numeric, strict=True)]
        return MixedRows(
            columns=tuple(self.tables.names[column] for column in (*numeric, *others)),
            numbers=np.column_stack(numbers) if numbers else np.zeros((len(codes), 0)),
            codes=codes[:, others],
            lows=np.zeros(len(numeric)),
            highs=np.ones(len(numeric)),
        )

    def _column(self, codes: NDArray[np.int32], column: int) -> Floats:
        attribute = self.tables.domain.attributes[column]
        if not self.tables.numeric[column]:
            return np.asarray(np.eye(attribute.size)[codes])
        shown = scaled_amounts(attribute)
        if attribute.complete:
            return np.asarray(shown[codes][:, None])
        cells = np.zeros((attribute.size, 2))
        cells[:-1, 0], cells[-1] = shown, (0.5, 1.0)
        return np.asarray(cells[codes])


def _number(edge: Any, first: Any) -> float:  # numbers, dates or times, both of one kind
    if isinstance(edge, dt.datetime):
        return float((edge - first) / dt.timedelta(seconds=1))
    if isinstance(edge, dt.date):
        return float((edge - first).days)
    return float(edge)
