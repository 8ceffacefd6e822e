"""Multiplicative weights, after Hardt, Ligett and McSherry (2012, "MWEM").

A histogram over all combinations of cells starts even. In each round the query on which it is furthest from the data
is chosen privately: a query is one cell of one marginal of the workload. Its marginal is measured, and the weights
are moved towards what was measured: by exp((measured - weight) / (2 rows)) in each cell, going through all that was
measured several times in each round. Rows are drawn from the weights of the last round. Both is what the authors do
in practice; their proof of accuracy is for the average over rounds, which is worse here (on six columns of the Adult
table at epsilon 1, mean total variation of pairs .11 against .02), and is to be had with ``average=True``.

The whole marginal costs no more than the one cell, since a row is in one cell of it. The number of rows is measured
first, or given, where neighbors have the same number.

Privacy: the score of a query is the distance between a true count and a weight, which is released and does not change
with the data; an added row moves a true count, and so the score, by at most one, up or down. Of the budget that the
number of rows leaves, each of T rounds has a T-th, half for the choice and half for the measurement:
T * (2 * epsilon / (2 T)) = epsilon. See `cloister.synth.marginal_based`.

A workload is the sets of columns that somebody asks about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from cloister.core.guarantees import Adjacency
from cloister.core.validation import check_count
from cloister.errors import ParameterError, ParameterTypeError
from cloister.synth._cell_counts import Counts, whole_counts
from cloister.synth._domain import TableDomain
from cloister.synth.base import SynthesisFacts, synthesizers
from cloister.synth.expectation import Expectation
from cloister.synth.inference._estimation import NoisyMarginal
from cloister.synth.inference._junction_tree import Floats, junction_tree
from cloister.synth.inference._marginal_model import MarginalModel
from cloister.synth.marginal_based import MarginalFit, MarginalSynthesizer, possible_cells

__all__ = ["MultiplicativeWeights", "read_workload"]


def read_workload(workload: Any, domain: TableDomain, *, most: int = 6) -> list[tuple[int, ...]]:
    """Return sets of columns by position, each once, or refuse what is no list of lists of columns."""
    if isinstance(workload, str) or not isinstance(workload, Sequence):
        raise ParameterTypeError(
            "workload is not a list of lists of columns.", fix='write workload=[["age", "income"], ["sex", "age"]].'
        )
    asked = list(dict.fromkeys(domain.positions(item) for item in workload))
    if not asked or any(not 1 <= len(set(item)) <= most or len(set(item)) < len(item) for item in asked):
        raise ParameterError(
            f"Each set of the workload must name one to {most} columns, each once.",
            fix='write workload=[["age", "income"]].',
        )
    return asked


Columns = tuple[int, ...]

MOST_CELLS = 10**6
_ROWS = Fraction(1, 20)
_MOST_ROUNDS = 12
_MOST_PASSES = 100
_WORK = 10**9
"""About how many weights are moved in all rounds together."""


@synthesizers.register("mwem")
@dataclass(kw_only=True, eq=False, repr=False)
class MultiplicativeWeights(MarginalSynthesizer):
    """Weights of all combinations of cells, moved towards what is measured ("MWEM"): for few columns with few cells.

    Args:
        workload: the sets of columns whose counts matter, as lists of names; without it, all pairs of columns.
        rounds: how many marginals are measured; without it, one for each set of the workload, 12 at most.
        average: whether rows are drawn from the average over all rounds, as in the proof of accuracy.
        rows: how many rows there are, where that is public: only with ``adjacency="replace"``, which keeps the number.

    >>> MultiplicativeWeights(epsilon=0.5, columns=["sex", "race", "income"])
    MultiplicativeWeights(epsilon=0.5, columns=['sex', 'race', 'income'])
    """

    workload: Any = None
    rounds: int | None = None
    average: bool = False
    rows: int | None = None

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        cells = facts.domain.cells
        if cells > MOST_CELLS:
            raise ParameterError(
                f"These columns have {cells:,} combinations of cells; {MOST_CELLS:,} are possible.",
                fix="name fewer columns or bins, or use AdaptiveMarginals, which takes any number of columns.",
            )
        privacy_filter, (counted, each) = self._privacy_filter(), self._shares(facts)
        largest = max(self._asked(facts), key=lambda part: _size(facts, part))
        name = " x ".join(facts.domain.names[column] for column in largest)
        found = [Expectation.of(name, _size(facts, largest), privacy_filter.noise(each))]
        if counted:
            found.append(Expectation.of("the number of rows", 1, privacy_filter.noise(counted)))
        return tuple(found)

    def _asked(self, facts: SynthesisFacts) -> list[Columns]:
        many = len(facts.domain.names)
        if self.workload is None:
            return list(combinations(range(many), min(2, many)))
        return read_workload(self.workload, facts.domain)

    def _shares(self, facts: SynthesisFacts) -> tuple[Fraction, Fraction]:
        """Return what the number of rows costs, and each choice and each measurement."""
        if self.rows is not None:
            check_count(self.rows, name="rows", at_least=1)
            if self._calibration().adjacency is not Adjacency.REPLACE:
                raise ParameterError(
                    "The number of rows is not public where rows are added and removed.",
                    fix='leave rows out, so that it is measured, or use adjacency="replace".',
                )
        counted = Fraction(0) if self.rows is not None else _ROWS
        return counted, (1 - counted) / (2 * self._rounds(facts))

    def _rounds(self, facts: SynthesisFacts) -> int:
        if self.rounds is None:
            return min(_MOST_ROUNDS, len(self._asked(facts)))
        return check_count(self.rounds, name="rounds", at_least=1)

    def _modeled(self, work: MarginalFit) -> MarginalModel:
        counted, each = self._shares(work.facts)
        total = float(self.rows) if self.rows is not None else _measure_rows(work, counted)
        workload, rounds = self._asked(work.facts), self._rounds(work.facts)
        truth = [work.counts.marginal(part) for part in workload]
        # Impossible cells start at zero, and multiplication keeps them there.
        weights = possible_cells(work.facts).astype(np.float64)
        weights *= total / weights.sum()
        summed, queries = np.zeros_like(weights), _queries(truth)
        for place in range(rounds):
            self._tell(place / rounds, "choosing and measuring marginals")
            scores = [_gaps(weights, part, true) for part, true in zip(workload, truth, strict=True)]
            chosen = work.choose(np.concatenate(scores), queries, each, label="which count")
            work.measure(workload[chosen], each)
            update(weights, work.seen, total, passes=_passes(weights.size, rounds, len(work.seen)))
            summed += weights
        cells = summed if self.average else weights
        return MarginalModel(
            junction_tree(work.facts.domain.sizes, [range(weights.ndim)]), (cells / cells.sum(),), total
        )


def marginal_of(weights: Floats, columns: Columns) -> Floats:
    """Return the sums of weights over all columns but some."""
    return np.asarray(weights.sum(axis=tuple(axis for axis in range(weights.ndim) if axis not in columns)))


def update(weights: Floats, seen: Sequence[NoisyMarginal], total: float, *, passes: int = 1) -> None:
    """Move weights towards measurements, the last one first, and keep their sum; in place.

    Args:
        weights: one axis per column.
        seen: what was measured.
        total: the sum of the weights.
        passes: how often all measurements are gone through.
    """
    for _ in range(passes):
        for item in reversed(seen):
            gap = item.values - marginal_of(weights, item.columns)
            # A single count with much noise must not blow up the weights.
            factor = np.exp(np.clip(gap / (2 * total), -1.0, 1.0))
            weights *= factor.reshape([size if axis in item.columns else 1 for axis, size in enumerate(weights.shape)])
            weights *= total / weights.sum()


def _gaps(weights: Floats, columns: Columns, true: Counts) -> Counts:
    """Return how far each count is from what the weights have, in whole numbers. Protected."""
    return np.asarray(np.abs(whole_counts(marginal_of(weights, columns)) - true).ravel())


def _passes(cells: int, rounds: int, measured: int) -> int:
    """Return how often all measurements are gone through in a round: fewer times for many cells."""
    return max(2, min(_MOST_PASSES, _WORK // (cells * rounds * measured)))


def _measure_rows(work: MarginalFit, share: Fraction) -> float:
    seen = work.privacy_filter.measure(work.counts, (), share, work.source, label="the number of rows")
    return max(1.0, float(seen.values))


def _queries(truth: Sequence[Any]) -> list[int]:
    """Return for each query which set of the workload it belongs to."""
    return [place for place, true in enumerate(truth) for _ in range(true.size)]


def _size(facts: SynthesisFacts, columns: Columns) -> int:
    return math.prod(facts.domain.sizes[column] for column in columns)
