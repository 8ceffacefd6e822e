"""How well the released table answers questions of the form "how many rows have these values?".

A released class counts with the share of its labels that a question covers, as if rows were spread evenly (LeFevre et
al. 2006; Xiao and Tao 2006). The error is relative to the true count, or to 0.1 % of all rows where the truth is
smaller. The same questions are asked of every table with the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.comparison import Comparison
from cloister.core.random import RandomSource, SeededRandomSource, integers_below, permutation

__all__ = ["QueryErrors", "count_original", "count_released", "measure_queries"]

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


def _question(source: RandomSource, attributes: Sequence[Attribute], width: int, selectivity: float) -> Question:
    chosen = permutation(source, len(attributes))[:width]
    share = selectivity ** (1 / width)
    return {int(place): _leaves(source, attributes[place], share) for place in chosen}


def _leaves(source: RandomSource, attribute: Attribute, share: float) -> NDArray[np.bool_]:
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
