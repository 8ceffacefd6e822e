"""Distance-based record linkage: how often the released row nearest to an original one is the right one.

The attacker has the original quasi-identifiers and takes the nearest class (Pagliuca and Seri 1999), one of its rows at
random. A label is near where it allows the raw value, the nearer the fewer values it allows; a number is as far away as
its distance on the column's scale.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.comparison import Comparison
from cloister.anonymize.labels import ReadLabels, leaf_numbers
from cloister.core.random import SeededRandomSource, permutation
from cloister.core.wordings import format_points, percent

__all__ = ["LinkageRate", "measure_linkage"]

SAMPLE = 200
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageRate:
    """How often a link by distance is right.

    Attributes:
        rate: the share of links to the right row.
        baseline: the share that a random link gets right.
        sample: how many original rows were linked.
        margin: the half width of a 95 % interval of the rate, from the sample.
    """

    rate: float
    baseline: float
    sample: int
    margin: float

    def __str__(self) -> str:
        margin = format_points(self.margin, digits=2)
        return f"{percent(self.rate)} ± {margin} right by distance, {percent(self.baseline)} by chance"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


def measure_linkage(comparison: Comparison, *, sample: int = SAMPLE) -> LinkageRate | None:
    """Link a sample of original rows; None where it is not known which released row is theirs."""
    lines = comparison.lines
    if lines is None or not comparison.kept:
        return None
    chosen = _rows(lines.counts, sample)
    distances = _distances(comparison)
    hits = np.zeros(len(chosen))
    step = max(_BLOCK // max(len(comparison.rows), 1), 1)
    for start in range(0, len(chosen), step):
        block = chosen[start : start + step]
        hits[start : start + step] = _hits(comparison, distances, lines.cells[block], lines.classes[block])
    error = float(hits.std() / np.sqrt(len(hits))) if len(hits) > 1 else 0.5
    return LinkageRate(rate=float(hits.mean()), baseline=1 / comparison.kept, sample=len(chosen), margin=1.96 * error)


def _rows(counts: NDArray[np.int64], sample: int) -> NDArray[np.int64]:
    """Return the lines of a random sample of rows, the same every time."""
    total = int(counts.sum())
    # The sample hides nothing, so that a fixed seed is right: the same tables give the same figure.
    rows = np.arange(total) if total <= sample else permutation(SeededRandomSource(2), total)[:sample]
    return np.searchsorted(np.cumsum(counts), rows, side="right")


def _distances(comparison: Comparison) -> list[NDArray[np.float64]]:
    """Return, for each column, the distance of every leaf (row) from every label (column)."""
    return [_column_distances(column) for column in comparison.columns]


def _column_distances(column: ReadLabels) -> NDArray[np.float64]:
    # A raw value lies about half of the label's width from its middle; a label that excludes it is as far as can be.
    inside = np.where(column.member.T, column.losses / 2, 1.0)
    numbers = leaf_numbers(column.attribute)
    span = float(np.nanmax(numbers) - np.nanmin(numbers)) if np.isfinite(numbers).any() else 0.0
    if not column.attribute.is_numeric or not span:
        return inside
    apart = np.abs(numbers[:, None] - column.numbers) / span
    # At equal distance a label that allows the value is the nearer one.
    return np.where(np.isfinite(apart), np.maximum(np.minimum(apart, 1.0), np.where(column.member.T, 0, 1e-9)), inside)


def _hits(
    comparison: Comparison, distances: list[NDArray[np.float64]], cells: NDArray[np.int64], classes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the chance of each right link: one over the rows of all nearest classes, if its own is among them."""
    total = np.zeros((len(cells), len(comparison.rows)))
    for place, apart in enumerate(distances):
        leaves = comparison.original.codes[cells, place]
        total += apart[leaves][:, comparison.codes[:, place]]
    # Sums of the same distances in another order may differ by rounding.
    nearest = total <= total.min(axis=1, keepdims=True) + 1e-12
    own = (classes >= 0) & nearest[np.arange(len(cells)), np.maximum(classes, 0)]
    return np.asarray(own / (nearest @ comparison.rows))
