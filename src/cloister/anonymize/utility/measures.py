"""Everything that is measured about the utility of a release, from counts of both tables.

*Queries*: how well the released table answers questions of the form "how many rows have these values?". A released
class counts with the share of its labels that a question covers, as if rows were spread evenly (LeFevre et al. 2006;
Xiao and Tao 2006). The error is relative to the true count, or to 0.1 % of all rows where the truth is smaller. The
same questions are asked of every table with the same columns.

*Distributions*: how far the released table's are from the original's, each label spread evenly over what it allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.comparison import Comparison
from cloister.anonymize.risk._linkage import LinkageRate, measure_linkage
from cloister.anonymize.utility._learning import Learning, measure_learning
from cloister.anonymize.utility.losses import Losses, SquaredError, measure_losses, measure_squares
from cloister.core.random import RandomSource, SeededRandomSource, integers_below, permutation
from cloister.core.wordings import format_points, percent

__all__ = [
    "QueryErrors",
    "ReleaseUtility",
    "association_difference",
    "count_original",
    "count_released",
    "marginal_distances",
    "measure_queries",
    "measure_utility",
]


Question = Mapping[int, NDArray[np.bool_]]
"""For the place of each column that is asked about, which of its leaves count."""

SANITY = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryErrors:
    """Relative errors of a workload of count questions.

    Attributes:
        queries: how many questions were asked.
        columns: how many columns each was about, at most.
        mean: the mean relative error.
        median: the median relative error.
        worst: the relative error that one question in twenty exceeds.
    """

    queries: int
    columns: int
    mean: float
    median: float
    worst: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


def measure_queries(
    comparison: Comparison, *, queries: int = 200, columns: int = 3, selectivity: float = 0.1
) -> QueryErrors:
    """Ask random questions of both tables.

    Args:
        comparison: the tables.
        queries: how many questions.
        columns: how many columns a question is about, at most.
        selectivity: the share of all combinations that a question covers, roughly.
    """
    source = SeededRandomSource(1)  # public questions, the same every time: nothing rests on their secrecy
    width = min(columns, len(comparison.columns))
    errors = []
    for _ in range(queries):
        question = _question(source, comparison.original.attributes, width, selectivity)
        truth, answer = count_original(comparison, question), count_released(comparison, question)
        errors.append(abs(truth - answer) / max(truth, SANITY * comparison.total))
    return QueryErrors(
        queries=queries,
        columns=width,
        mean=float(np.mean(errors)),
        median=float(np.median(errors)),
        worst=float(np.quantile(errors, 0.95)),
    )


def count_original(comparison: Comparison, question: Question) -> float:
    """Return the true answer."""
    original = comparison.original
    fits = np.ones(len(original), dtype=bool)
    for place, leaves in question.items():
        fits &= leaves[comparison.original_columns[place]]
    return float(original.weights[fits].sum())


def count_released(comparison: Comparison, question: Question) -> float:
    """Return the answer of the released table: rows times the share of each label that the question covers."""
    covered = comparison.rows.astype(np.float64)
    for place, leaves in question.items():
        covered *= (comparison.columns[place].shares @ leaves)[comparison.codes[:, place]]
    return float(covered.sum())


def _question(source: RandomSource, attributes: Sequence[CodedAttribute], width: int, selectivity: float) -> Question:
    chosen = permutation(source, len(attributes))[:width]
    # Columns are chosen independently, so that the shares of a question multiply.
    share = selectivity ** (1 / width)
    return {int(place): _leaves(source, attributes[place], share) for place in chosen}


def _leaves(source: RandomSource, attribute: CodedAttribute, share: float) -> NDArray[np.bool_]:
    """Return a random range of an ordered column, or a random set of values of another."""
    size = len(attribute.leaves)
    wanted = max(1, round(share * size))
    leaves = np.zeros(size, dtype=bool)
    if attribute.is_ordered:
        start = int(integers_below(source, size - wanted + 1, 1)[0])
        leaves[start : start + wanted] = True
    else:
        leaves[permutation(source, size)[:wanted]] = True
    return leaves


_LARGEST = 4_000_000


def marginal_distances(comparison: Comparison) -> dict[str, float]:
    """Return the total variation distance between original and released shares of each column."""
    return {name: _distance(comparison, place) for place, name in enumerate(comparison.names)}


def _distance(comparison: Comparison, place: int) -> float:
    released = comparison.label_rows(place) @ comparison.columns[place].shares
    original = comparison.leaf_rows(place)
    return float(np.abs(released / max(released.sum(), 1) - original / original.sum()).sum() / 2)


def association_difference(comparison: Comparison) -> float | None:
    """Return the mean absolute difference of Cramer's V over all pairs of columns; None for fewer than two columns."""
    found = [
        abs(
            _association(_count_original_pairs(comparison, *pair))
            - _association(_count_released_pairs(comparison, *pair))
        )
        for pair in itertools.combinations(range(len(comparison.columns)), 2)
        if _cells(comparison, *pair) <= _LARGEST
    ]
    return float(np.mean(found)) if found else None


def _cells(comparison: Comparison, first: int, second: int) -> int:
    attributes = comparison.original.attributes
    columns = comparison.columns
    raw = len(attributes[first].leaves) * len(attributes[second].leaves)
    return max(raw, len(columns[first].losses) * len(columns[second].losses))


def _count_original_pairs(comparison: Comparison, first: int, second: int) -> NDArray[np.float64]:
    attributes = comparison.original.attributes
    shape = len(attributes[first].leaves), len(attributes[second].leaves)
    return _counts(comparison.original.codes, comparison.original.weights, (first, second), shape)


def _count_released_pairs(comparison: Comparison, first: int, second: int) -> NDArray[np.float64]:
    left, right = comparison.columns[first], comparison.columns[second]
    shape = len(left.losses), len(right.losses)
    # Each label is spread over its leaves on both sides, as if the two columns were independent within a class.
    return np.asarray(left.shares.T @ _counts(comparison.codes, comparison.rows, (first, second), shape) @ right.shares)


def _counts(
    codes: NDArray[np.int32], weights: NDArray[np.int64], pair: tuple[int, int], shape: tuple[int, int]
) -> NDArray[np.float64]:
    key = codes[:, pair[0]].astype(np.int64) * shape[1] + codes[:, pair[1]]
    return np.bincount(key, weights=weights, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _association(counts: NDArray[np.float64]) -> float:
    """Return Cramer's V of a table of counts."""
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    counts = counts[rows > 0][:, columns > 0]
    freedom = min(counts.shape) - 1
    total = counts.sum()
    if freedom < 1 or total <= 0:
        return 0.0
    expected = np.outer(rows[rows > 0], columns[columns > 0]) / total
    # The squares over their expectations, less the total, are chi-square; rounding may take it below zero.
    return float(np.sqrt(max(((counts**2) / expected).sum() - total, 0.0) / (total * freedom)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseUtility:
    """What a release is still good for.

    Attributes:
        losses: how much less the labels say.
        marginals: the total variation distance of each column's shares.
        associations: the mean change of the association of two columns, or None for a single column.
        queries: the errors of count questions.
        squares: the squared error of each column of numbers, where rows can be matched with their originals.
        linkage: how often the nearest released row is the right one, where rows can be matched with their originals.
        learning: how well a column is predicted after training on the release, if that was asked for.
    """

    losses: Losses
    marginals: dict[str, float]
    associations: float | None
    queries: QueryErrors
    squares: tuple[SquaredError, ...] = ()
    linkage: LinkageRate | None = None
    learning: Learning | None = None

    def __str__(self) -> str:
        return f"loss {self.losses.ncp:.4f}, count questions off by {percent(self.queries.median)} (median)"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        losses = self.losses
        farthest = format_points(max(self.marginals.values()), rounding="up")
        worst = max(losses.by_column, key=losses.by_column.__getitem__)
        rows = [
            ("loss (NCP)", f"{losses.ncp:.4f}; most in {worst} ({losses.by_column[worst]:.3g})"),
            ("suppressed", f"{percent(losses.suppressed)} of the rows"),
            ("precision", f"{losses.precision:.3g}"),
            ("untold entropy", percent(losses.entropy)),
            ("discernibility", f"{losses.discernibility:,}; average class {losses.average_class:.3g} times k"),
            (
                "count questions",
                f"off by {percent(self.queries.median)} (median), {percent(self.queries.mean)} (mean)",
            ),
            ("shares of values", f"off by {farthest} points at most"),
        ]
        if self.linkage is not None:
            rows.append(("record linkage", str(self.linkage)))
        if self.learning is not None:
            rows.append(("learning", str(self.learning)))
        return tuple(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "losses": self.losses.to_dict(),
            "marginals": dict(self.marginals),
            "associations": self.associations,
            "queries": self.queries.to_dict(),
            "squares": [item.to_dict() for item in self.squares],
            "linkage": None if self.linkage is None else self.linkage.to_dict(),
            "learning": None if self.learning is None else self.learning.to_dict(),
        }


def measure_utility(comparison: Comparison, *, k: int, targets: CodedCells | None = None) -> ReleaseUtility:
    """Measure the utility of a release.

    Args:
        comparison: the tables.
        k: what the average class size is divided by.
        targets: the original counted with a column to be learned as its only sensitive one.
    """
    return ReleaseUtility(
        losses=measure_losses(comparison, k=k),
        marginals=marginal_distances(comparison),
        associations=association_difference(comparison),
        queries=measure_queries(comparison),
        squares=measure_squares(comparison),
        linkage=measure_linkage(comparison),
        learning=None if targets is None else measure_learning(comparison, targets),
    )
