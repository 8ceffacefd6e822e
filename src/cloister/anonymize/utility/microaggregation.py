"""Sums of squares: how far released numbers lie from the original ones (Domingo-Ferrer and Mateo-Sanz 2002)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.comparison import Comparison
from cloister.anonymize.labels import leaf_numbers

__all__ = ["SquaredError", "measure_squares", "squared_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredError:
    """The squared error of one numeric column.

    Attributes:
        column: the column.
        sse: the sum of squared differences between released and original numbers.
        sst: the sum of squared differences between the original numbers and their mean.
    """

    column: str
    sse: float
    sst: float

    @property
    def loss(self) -> float:
        """Return the information loss, SSE / SST."""
        return self.sse / self.sst if self.sst else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**asdict(self), "loss": self.loss}


def squared_error(
    column: str, original: NDArray[np.float64], released: NDArray[np.float64], counts: NDArray[np.int64]
) -> SquaredError:
    """Return the squared error of pairs of numbers, each with the number of rows that have it."""
    mean = float(counts @ original) / float(counts.sum())
    return SquaredError(
        column=column,
        sse=float(counts @ (original - released) ** 2),
        sst=float(counts @ (original - mean) ** 2),
    )


def measure_squares(comparison: Comparison) -> tuple[SquaredError, ...]:
    """Return the squared error of every column of numbers, over the rows that are released."""
    lines = comparison.lines
    if lines is None:
        return ()
    kept = lines.classes >= 0
    cells, classes, counts = lines.cells[kept], lines.classes[kept], lines.counts[kept]
    found = []
    for place, column in enumerate(comparison.columns):
        numbers = leaf_numbers(column.attribute)
        before = numbers[comparison.original.codes[cells, place]]
        after = column.numbers[comparison.codes[classes, place]]
        known = np.isfinite(before) & np.isfinite(after)
        if column.attribute.is_numeric and known.any():
            found.append(squared_error(column.attribute.name, before[known], after[known], counts[known]))
    return tuple(found)
