"""Random questions of two ranges each: what an analyst who counts rows would get wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cloister.core.random import RandomSource, integers_below, permutation
from cloister.synth.evaluation.tables import Floats, Tables

__all__ = ["RangeErrors", "range_errors"]

QUESTIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeErrors:
    """How far off the counts of random conjunctions of two ranges are, as shares of all rows.

    Attributes:
        questions: how many were asked.
        mean: the mean absolute error.
        median: the median absolute error.
        worst: the largest.
    """

    questions: int
    mean: float
    median: float
    worst: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


def range_errors(tables: Tables, source: RandomSource, *, questions: int = QUESTIONS) -> RangeErrors:
    """Return the errors of random questions, each a run of neighboring cells in one column and one in another.

    The questions depend on the declared cells and the source only.
    """
    count = len(tables.names)
    sizes = np.array([item.present for item in tables.domain.attributes])
    asked: dict[tuple[int, ...], list[tuple[tuple[int, int], ...]]] = {}
    for _ in range(questions):
        columns = tuple(sorted(permutation(source, count)[:2].tolist()))
        asked.setdefault(columns, []).append(tuple(_run(int(sizes[column]), source) for column in columns))
    errors: list[float] = []
    for columns, runs in asked.items():
        difference = tables.real.shares(columns) - tables.synthetic.shares(columns)
        errors.extend(_missed(difference, run) for run in runs)
    found = np.array(errors)
    return RangeErrors(
        questions=questions, mean=float(found.mean()), median=float(np.median(found)), worst=float(found.max())
    )


def _run(size: int, source: RandomSource) -> tuple[int, int]:
    """Return the ends of a run of cells, all runs being equally likely."""
    place = int(integers_below(source, size * (size + 1) // 2, 1)[0])
    low = 0
    while place >= size - low:
        place -= size - low
        low += 1
    return low, low + place + 1


def _missed(difference: Floats, runs: tuple[tuple[int, int], ...]) -> float:
    return abs(float(difference[tuple(slice(low, high) for low, high in runs)].sum()))
