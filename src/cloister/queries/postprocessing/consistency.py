"""Numbers that look like counts and add up: not negative, whole, with a total, and tables with their margins.

Clipping at zero biases small cells upward: cells that are truly 0 average half a noise scale afterwards. Sums
over many cells then drift, so add cells up first or use `with_total`. A histogram also implies a mean.

`with_total` is the projection onto the simplex (Held, Wolfe and Crowder 1974; with weights): the nearest cells that
are not negative and add up to a total. `consistent_table` is generalized least squares: of all tables, the one
nearest to the noisy cells and the noisy margins, each counted with one over its variance. With independent, unbiased
noise it is the best linear unbiased estimate (Gauss and Markov; Hay, Rastogi, Miklau and Suciu 2010 for private
counts), so that cells gain from margins and margins from cells. A variance of 0 marks a public, exact margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core.postprocessing import project_to_simplex
from cloister.errors import ParameterError
from cloister.mechanisms.base import unwrap
from cloister.queries.postprocessing import _released_numbers as released_numbers

__all__ = [
    "ConsistentTable",
    "consistent_table",
    "mean_from_histogram",
    "nonnegative",
    "normalized",
    "rounded",
    "with_total",
]


_MOST = 2**62


def nonnegative(values: object) -> Any:
    """Return numbers with the negative ones set to 0: a number for a number, an array for an array.

    >>> nonnegative([3, -2, 0])
    array([3, 0, 0])
    """
    return unwrap(np.maximum(released_numbers.numbers(values), 0))


def rounded(values: object, *, keep_total: bool = False) -> Any:
    """Return whole numbers, the nearest ones, halves going to the even one.

    Args:
        values: released numbers.
        keep_total: round down or up so that the sum is that of the values, rounded: the largest remainders go up.

    >>> rounded([1.4, 1.4, 1.4]), rounded([1.4, 1.4, 1.4], keep_total=True)
    (array([1, 1, 1]), array([2, 1, 1]))
    """
    given = released_numbers.floats(values)
    if np.abs(given).sum() >= _MOST:
        raise ParameterError("The values are too large for 64-bit integers.", fix="use larger units.")
    if not keep_total:
        return unwrap(np.rint(given).astype(np.int64))
    whole = np.asarray(np.floor(given), dtype=np.int64)
    missing = round(float(given.sum())) - int(whole.sum())
    largest = np.argsort(-(given - whole), axis=None, kind="stable")[:missing]
    whole.flat[largest] += 1
    return unwrap(whole)


def normalized(values: object) -> NDArray[np.float64]:
    """Return shares: negative numbers set to 0, then divided by their sum; equal shares if nothing is left.

    >>> normalized([3.0, -1.0, 1.0])
    array([0.75, 0.  , 0.25])
    """
    clipped = np.maximum(released_numbers.floats(values), 0)
    largest = clipped.max()
    if largest <= 0:
        return np.full(clipped.shape, 1 / clipped.size)
    # Dividing by the largest first keeps the sum from overflowing.
    scaled = clipped / largest
    return np.asarray(scaled / scaled.sum())


def mean_from_histogram(counts: object, midpoints: object) -> float:
    """Return the mean that counts of buckets imply, each row counting as the midpoint of its bucket.

    Post-processing of one noisy histogram: it costs nothing beyond that. Besides the noise it is off by up to half a
    bucket. Where noise pushes it out of the range of the midpoints it is their nearest end, and without any positive
    total their middle.

    >>> mean_from_histogram([5, 7, 4], [1500, 2500, 3500])
    2437.5
    """
    weights, middles = released_numbers.row(counts, name="counts"), released_numbers.row(midpoints, name="midpoints")
    if weights.shape != middles.shape:
        raise ParameterError("Counts and midpoints differ in number.", fix="give one midpoint for each bucket.")
    low, high, total = middles.min(), middles.max(), weights.sum()
    if total <= 0:
        return float((low + high) / 2)
    return float(np.clip(weights @ middles / total, low, high))


Floats: TypeAlias = NDArray[np.float64]

_CONTRADICTION = 1e-6


def with_total(values: object, *, total: object, variances: object = None, signed: bool = False) -> Floats:
    """Return the nearest cells that are not negative and add up to a total; a negative (noisy) total counts as 0.

    Args:
        values: noisy cells, of any shape.
        total: what they must add up to: public, or a noisy total that is better known than their sum.
        variances: those of the cells' noise, where they differ; cells with more noise give way more.
        signed: let cells be negative; then only the total is enforced, and the estimate stays unbiased.

    >>> with_total([6.0, 5.0, -2.0], total=10)
    array([5.5, 4.5, 0. ])
    """
    cells = released_numbers.floats(values)
    spread = released_numbers.variances(
        1 if variances is None else variances, None, name="variances", shape=cells.shape
    )
    if not (spread > 0).all():
        raise ParameterError("A cell has no noise.", fix="give variances above 0, and take exact cells out first.")
    target = released_numbers.floats(total, name="total")
    if target.ndim:
        raise ParameterError("The total is not one number.", fix="give total= as a number.")
    if signed:
        # The difference is shared by variance: cells that are known worse move more.
        return np.asarray(cells + spread * (float(target) - cells.sum()) / spread.sum())
    near = project_to_simplex(cells.ravel(), total=max(float(target), 0.0), variances=spread.ravel())
    return near.reshape(cells.shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConsistentTable:
    """Cells and the margins that they add up to."""

    cells: Floats

    @property
    def rows(self) -> Floats:
        """Return the sum of each row."""
        return np.asarray(self.cells.sum(axis=1))

    @property
    def columns(self) -> Floats:
        """Return the sum of each column."""
        return np.asarray(self.cells.sum(axis=0))

    @property
    def total(self) -> float:
        """Return the sum of all cells."""
        return float(self.cells.sum())


def consistent_table(
    cells: object,
    *,
    variance: object = None,
    rows: object = None,
    row_variance: object = None,
    columns: object = None,
    column_variance: object = None,
    total: object = None,
    total_variance: object = None,
) -> ConsistentTable:
    """Return the table nearest to noisy cells and noisy margins, by least squares with inverse-variance weights.

    Args:
        cells: noisy cells, one row for each row of the table.
        variance: of the noise of the cells: one number, or one for each; an answer states its own.
        rows: noisy sums of the rows.
        row_variance: theirs; 0 for public sums.
        columns: noisy sums of the columns.
        column_variance: theirs.
        total: the noisy sum of all.
        total_variance: its own.

    Cells may come out negative: `nonnegative` them last, knowing that sums then drift upward.

    >>> table = consistent_table([[4.0, 6.0], [9.0, 1.0]], variance=2, rows=[12.0, 12.0], row_variance=4)
    >>> table.rows
    array([11., 11.])
    """
    given = released_numbers.floats(cells, name="cells")
    if given.ndim != 2:
        raise ParameterError("The cells are not a table.", fix="pass one list of cells for each row.")
    spread = released_numbers.variances(variance, cells, name="variance", shape=given.shape)
    sums = [
        _margin(rows, row_variance, "row_variance", given, axis=1),
        _margin(columns, column_variance, "column_variance", given, axis=0),
        _margin(total, total_variance, "total_variance", given, axis=None),
    ]
    gaps, noise = (np.concatenate([part[side] for part in sums]) for side in (0, 1))
    # A variance of NaN marks a margin that was not given, which is left out of the equations below.
    shares = _normal_matrix(spread) + np.diag(np.where(np.isnan(noise), 0.0, noise))
    used = ~np.isnan(noise)
    shifts = np.zeros(gaps.size)
    shifts[used] = _solve_margins(shares[np.ix_(used, used)], gaps[used])
    height, width = given.shape
    # A cell moves by its variance times the multipliers of all sums that it is in.
    moved = shifts[:height, None] + shifts[None, height : height + width] + shifts[-1]
    return ConsistentTable(cells=given + spread * moved)


def _margin(sums: object, variance: object, name: str, cells: Floats, *, axis: int | None) -> tuple[Floats, Floats]:
    """Return how far given sums are from those of the cells, and their variances; NaN variances if none are given."""
    added = np.atleast_1d(cells.sum(axis=axis))
    if sums is None:
        return np.zeros(added.shape), np.full(added.shape, np.nan)
    given = np.atleast_1d(released_numbers.floats(sums, name="margins"))
    if given.shape != added.shape:
        raise ParameterError("A margin does not fit the table.", fix="give one sum for each row or column.")
    return given - added, released_numbers.variances(variance, sums, name=name, shape=given.shape)


def _normal_matrix(spread: Floats) -> Floats:
    """Return the covariances of the noise in the cells' own sums: of rows, of columns and of all."""
    rows, columns = spread.sum(axis=1), spread.sum(axis=0)
    total = np.array([[spread.sum()]])
    return np.block(
        [
            [np.diag(rows), spread, rows[:, None]],
            [spread.T, np.diag(columns), columns[:, None]],
            [rows[None, :], columns[None, :], total],
        ]
    )


def _solve_margins(matrix: Floats, gaps: Floats) -> Floats:
    """Return the multipliers of the margins; exact margins that repeat each other are fine, contradictions are not."""
    solution = np.linalg.lstsq(matrix, gaps, rcond=None)[0]
    left = np.abs(matrix @ solution - gaps).max(initial=0.0)
    if left > _CONTRADICTION * max(1.0, np.abs(gaps).max(initial=0.0)):
        raise ParameterError(
            "The exact margins contradict each other or the exact cells.",
            fix="give a variance above 0 to those that are noisy, or correct the public ones.",
        )
    return np.asarray(solution)
