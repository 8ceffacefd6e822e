"""Information loss: how much less the released labels say than the raw values.

LM (Iyengar 2002; NCP for intervals), distortion MD (levels climbed), precision (Sweeney 2002), non-uniform entropy (de
Waal and Willenborg 1999), discernibility (Bayardo and Agrawal 2005), average class size (LeFevre et al. 2006). A
suppressed row counts as if every cell of it were ``*``.

Sums of squares say how far released numbers lie from the original ones (Domingo-Ferrer and Mateo-Sanz 2002).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.comparison import Comparison
from cloister.anonymize.labels import ReadLabels, leaf_numbers

__all__ = ["Losses", "SquaredError", "measure_losses", "measure_squares", "squared_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """How much less is said.

    Attributes:
        ncp: the mean LM loss over rows and columns, weighted by the columns' weights; between 0 and 1.
        lm: the sum of the rows' LM losses.
        by_column: the mean LM loss of each column.
        distortion: MD, the number of levels climbed, summed over all cells.
        precision: one less the mean share of the hierarchy's height that was climbed.
        entropy: the share of the columns' entropy that is no longer told, averaged over columns.
        discernibility: the sum over rows of the size of their class; all rows for a suppressed one.
        average_class: C_avg, the mean class size over k.
        suppressed: the share of rows that are not released.
    """

    ncp: float
    lm: float
    by_column: dict[str, float]
    distortion: int
    precision: float
    entropy: float
    discernibility: int
    average_class: float
    suppressed: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


def measure_losses(comparison: Comparison, *, k: int) -> Losses:
    """Measure the information loss of a release."""
    places = range(len(comparison.columns))
    total, out = comparison.total, comparison.suppressed
    shown = [comparison.label_rows(place) for place in places]
    heights = np.array([column.attribute.height for column in comparison.columns])
    # A suppressed row has climbed to the top of every hierarchy.
    climbed = np.array([comparison.sum_levels(place) for place in places]) + out * heights
    lost = np.array([comparison.lost(place) for place in places]) + out
    untold = [_untold(comparison, place, shown[place]) for place in places]
    weighted = float(lost @ comparison.original.weights_of_attributes)
    return Losses(
        ncp=weighted / total,
        lm=weighted,
        by_column={name: float(loss / total) for name, loss in zip(comparison.names, lost, strict=True)},
        distortion=int(climbed.sum()),
        precision=1 - float(np.mean(climbed / (total * np.maximum(heights, 1)))),
        entropy=float(np.mean(untold)),
        # Squares of large classes may pass 64 bits when they are added up.
        discernibility=int((comparison.rows.astype(object) ** 2).sum()) + total * out,
        average_class=comparison.kept / max(len(comparison.rows), 1) / k,
        suppressed=out / total,
    )


def _untold(comparison: Comparison, place: int, shown: NDArray[np.float64]) -> float:
    """Return the entropy that is left inside the labels, as a share of that of the column."""
    leaves = comparison.leaf_rows(place)
    everything = _entropy(leaves)
    if everything <= 0:
        return 0.0
    inside = _entropies(comparison.columns[place], leaves)
    return float((shown @ inside + comparison.suppressed * everything) / (comparison.total * everything))


def _entropies(column: ReadLabels, leaves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy of the raw values that each label allows, in bits."""
    counts = column.member * leaves
    totals = np.maximum(counts.sum(axis=1), 1e-300)
    logs = np.log2(leaves, out=np.zeros(len(leaves)), where=leaves > 0)
    # log(n) less the mean of log(count) is the entropy, without a share for each pair.
    return np.asarray(np.log2(np.maximum(totals, 1)) - (counts @ logs) / totals)


def _entropy(counts: NDArray[np.float64]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


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
        # Labels without a number, such as the root, have no distance.
        known = np.isfinite(before) & np.isfinite(after)
        if column.attribute.is_numeric and known.any():
            found.append(squared_error(column.attribute.name, before[known], after[known], counts[known]))
    return tuple(found)
