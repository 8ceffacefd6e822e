"""Adaptive marginals: chosen where the model is worst, after McKenna, Mullins, Sheldon and Miklau (2022, "AIM").

A part of the budget measures each column. Then rounds follow, each as exact as the others: the model so far is held
against the data on every candidate marginal, one is chosen privately by how much there is to learn from it beyond the
noise it would get, weighted by how much the workload asks for it, and is measured; the model is estimated anew.
Candidates that would make the model too large are left out, by its predicted size. The model's own marginals are taken
from a sample of it, as large as the data seem to be, four million rows at most.

Two things differ from the paper. The noise that a candidate would get counts in each cell up to twice what the model
has there: estimation keeps counts from falling below zero, so that noise hardly shows in cells that are almost empty,
and large, sparse marginals are worth measuring. And the number of rounds follows from how the noise compares with the
released number of rows, rather than from what earlier rounds taught.

Privacy: a round's score of a candidate is the L1 distance between its true counts and counts of the released model,
less a number that is public then, times a public weight, all in whole numbers. An added row moves one true count by
one: each score by at most its weight, up or down, so that the choice is not monotone. The number of rounds depends on
earlier releases only, and all rounds together never exceed the budget (see `cloister.synth.marginal_based`).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from cloister.core.validation import check_count
from cloister.errors import ParameterError, ParameterTypeError
from cloister.synth._cell_counts import count_cells, whole_counts
from cloister.synth.base import SynthesisFacts, synthesizers
from cloister.synth.constraints import zeros_of
from cloister.synth.expectation import Expectation
from cloister.synth.inference._estimation import Estimator
from cloister.synth.inference._junction_tree import TreeSizes, mask_of, neighbor_masks
from cloister.synth.inference._marginal_model import MarginalModel
from cloister.synth.marginal_based import MarginalFit, MarginalSynthesizer, column_expectations

__all__ = ["AdaptiveMarginals"]

Columns = tuple[int, ...]

_FIRST = Fraction(1, 5)
_CHOICE = Fraction(1, 10)
_FEWEST, _USUAL, _MOST = Fraction(1, 2), 2, 3
"""How many rounds there are, per column."""
_BEARABLE = 0.085
"""The expected distance by noise of a middling candidate with which the usual number of rounds is best."""
_LARGEST_CANDIDATE = 100_000
_LARGEST_SET, _MOST_SETS, _MOST_CELLS = 6, 50_000, 10**8
"""How large a workload may be: the columns of a set, the sets, and the counts of all candidates together."""
_LARGEST_SAMPLE = 4_000_000
"""How many rows a sample of the model has at most, which noise alone can make it seem to need."""
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
_SHOWN = 2.0
"""How much noise shows in a cell, at most, as a multiple of what the model has there."""
_ROUND = Estimator(iterations=150, entropy=10.0)
_LAST = Estimator(iterations=500, entropy=10.0)


@synthesizers.register("adaptive")
@dataclass(kw_only=True, eq=False, repr=False)
class AdaptiveMarginals(MarginalSynthesizer):
    """The best choice for most tables: marginals chosen where they are needed ("AIM").

    Args:
        workload: the sets of columns that matter, as lists of names; without it, all sets of ``degree`` columns.
        degree: how many columns the sets of the default workload have, six at most.
        max_cells: how many cells the model may have.

    >>> AdaptiveMarginals(epsilon=0.5, delta=1e-6)
    AdaptiveMarginals(epsilon=0.5, delta=1e-06)
    """

    workload: Any = None
    degree: int = 2
    max_cells: int = 100_000

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        privacy_filter = self._privacy_filter()
        self._weights(facts)
        check_count(self.max_cells, name="max_cells", at_least=1)
        columns = column_expectations(facts, privacy_filter, self._first(facts))
        if len(columns) == 1:
            return columns
        largest = sorted(facts.domain.sizes)[-2:]
        each = (1 - self._first(facts)) / (_USUAL * len(columns))
        noise = privacy_filter.noise(each * (1 - _CHOICE))
        return (*columns, Expectation.of("the largest pair of columns", math.prod(largest), noise))

    def _first(self, facts: SynthesisFacts) -> Fraction:
        return _FIRST if len(facts.domain.names) > 1 else Fraction(1)

    def _rounds(self, work: MarginalFit, rows: float, candidates: Sequence[Columns]) -> int:
        """Return how many rounds there are: more where noise is small for a released number of rows."""
        sizes = work.facts.domain.sizes
        usual = work.privacy_filter.deviation(work.privacy_filter.left * (1 - _CHOICE) / (_USUAL * len(sizes)))
        cells = statistics.median(math.prod(sizes[column] for column in part) for part in candidates)
        per_column = _USUAL * _BEARABLE / Expectation("a candidate", round(cells), usual).error(round(rows))
        return max(1, round(len(sizes) * min(max(per_column, float(_FEWEST)), float(_MOST))))

    def _weights(self, facts: SynthesisFacts) -> dict[Columns, int]:
        """Return the candidates: all subsets of the workload, weighted by how much of it they overlap."""
        domain = facts.domain
        asked = self._all_sets(facts) if self.workload is None else self._stated_sets(facts)
        candidates = {
            part
            for item in set(asked)
            for size in range(2, len(item) + 1)
            for part in combinations(item, size)
            if math.prod(domain.sizes[column] for column in part) <= _LARGEST_CANDIDATE
        }
        if sum(math.prod(domain.sizes[column] for column in part) for part in candidates) > _MOST_CELLS:
            raise _too_large()
        times = Counter(column for item in asked for column in item)
        return {part: sum(times[column] for column in part) for part in sorted(candidates)}

    def _all_sets(self, facts: SynthesisFacts) -> list[Columns]:
        columns = len(facts.domain.names)
        many = min(check_count(self.degree, name="degree", at_least=2), columns)
        if many > _LARGEST_SET or math.comb(columns, many) > _MOST_SETS:
            raise _too_large()
        return list(combinations(range(columns), many))

    def _stated_sets(self, facts: SynthesisFacts) -> list[Columns]:
        if isinstance(self.workload, str) or not isinstance(self.workload, Sequence):
            raise ParameterTypeError(
                "workload is not a list of lists of columns.", fix='write workload=[["age", "income"], ["sex", "age"]].'
            )
        asked = [facts.domain.positions(item) for item in self.workload]
        if not asked or any(not 1 < len(set(item)) <= _LARGEST_SET or len(set(item)) < len(item) for item in asked):
            raise ParameterError(
                "Each set of the workload must name two to six columns, each once.",
                fix='write workload=[["age", "income"]].',
            )
        return asked

    def _modeled(self, work: MarginalFit) -> MarginalModel:
        first = self._first(work.facts)
        work.measure_columns(first)
        model = work.estimate(_LAST)
        if work.privacy_filter.left <= 0:
            return model
        candidates = self._weights(work.facts)
        rounds = self._rounds(work, model.total, list(candidates))
        picking = _Picking(work, candidates, self.max_cells)
        for number in range(rounds):
            self._tell(number / rounds, "choosing and measuring marginals")
            # What is left is shared by the rounds that are left: rounding never overspends, and an early end
            # leaves the rest unspent.
            if not picking.measure_next(model, work.privacy_filter.left / (rounds - number)):
                break
            model = work.estimate(_ROUND, start=model)
        self._tell(0.95, "estimating")
        return work.estimate(_LAST, start=model)


@dataclass(eq=False)
class _Picking:
    """Picks the marginals of one fit.

    Attributes:
        work: the fit.
        weights: the candidates.
        max_cells: how many cells the model may have in the end.
    """

    work: MarginalFit
    weights: dict[Columns, int]
    max_cells: int

    def __post_init__(self) -> None:
        domain = self.work.facts.domain
        self._groups = [item.columns for item in zeros_of(self.work.facts.constraints, domain)]
        self._sizes = TreeSizes(domain.sizes)
        self._truth = {part: self.work.counts.marginal(part) for part in self.weights}

    def measure_next(self, model: MarginalModel, share: Fraction) -> bool:
        """Choose a marginal and measure it, or return False where no candidate fits."""
        candidates = self._fitting(1 - self.work.privacy_filter.left + share)
        if not candidates:
            return False
        deviation = self.work.privacy_filter.deviation(share * (1 - _CHOICE))
        scores = self._scores(model, candidates, deviation)
        # A score moves by its own weight at most, and the choice is calibrated to the largest of them.
        top = max(self.weights[part] for part in candidates)
        chosen: Columns = self.work.choose(scores, candidates, share * _CHOICE, label="which marginal", sensitivity=top)
        self.work.measure(chosen, share * (1 - _CHOICE))
        self._groups.append(chosen)
        return True

    def _fitting(self, used: Fraction) -> list[Columns]:
        """Return the candidates with which the model stays small enough for the budget that is used by then."""
        neighbors = neighbor_masks(len(self.work.facts.domain.sizes), self._groups)
        # A candidate within the present model does not let it grow, and always fits.
        limit = max(float(self.max_cells * used), self._sizes.total(neighbors))
        return [part for part in self.weights if self._sizes.total(neighbors, mask_of(part)) <= limit]

    def _scores(self, model: MarginalModel, candidates: Sequence[Columns], deviation: float) -> list[int]:
        """Return how much there is to learn beyond noise, weighted, as exact whole numbers. Protected."""
        count = min(max(1, round(model.total)), _LARGEST_SAMPLE)
        # A sample of the released model costs no privacy, and gives the counts of any set of columns without
        # summing across the tree for each.
        codes = model.sample(count, self.work.source)
        columns = [codes[:, place] for place in range(codes.shape[1])]
        scale, sizes = model.total / count, self.work.facts.domain.sizes
        scores = []
        for part in candidates:
            shape = tuple(sizes[column] for column in part)
            modeled = whole_counts(scale * count_cells([columns[column] for column in part], shape))
            noise = np.minimum(_MEAN_ABSOLUTE * deviation, _SHOWN * (modeled + 1)).sum()
            distance = int(np.abs(self._truth[part] - modeled).sum())
            # In whole numbers a row moves the distance by exactly one at most; rounding in floats could add to
            # that.
            scores.append(self.weights[part] * (distance - round(float(noise))))
        return scores


def _too_large() -> ParameterError:
    return ParameterError(
        "The workload has more sets of columns, or more counts in them, than can be held.",
        fix="use degree=2, name fewer columns or bins, or say which sets matter: workload=[[...], ...].",
    )
