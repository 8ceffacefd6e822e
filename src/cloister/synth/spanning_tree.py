"""A tree of pairs of columns, after McKenna, Miklau and Sheldon (2021, "MST").

A third of the budget measures each column, a third chooses the pairs that the columns by themselves explain worst, one
after the other until all columns are connected, and a third measures these pairs. Rows are drawn from the most even
distribution that fits all measurements.

Privacy: the score of a pair is the L1 distance between its true counts and the product of released marginals, in whole
numbers, which do not change with the data: an added row moves one true count by one, and so each score by at most one,
up or down. Scores of different pairs can move in different directions, so that the choice is not monotone. Noise and
choices are composed by `cloister.synth.marginal_based`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from cloister.synth._cell_counts import whole_counts
from cloister.synth.base import SynthesisFacts, synthesizers
from cloister.synth.expectation import Expectation
from cloister.synth.inference._estimation import Estimator
from cloister.synth.inference._marginal_model import MarginalModel
from cloister.synth.marginal_based import MarginalFit, MarginalSynthesizer, column_expectations

__all__ = ["SpanningTree"]

_THIRD = Fraction(1, 3)
_ESTIMATOR = Estimator(iterations=1000, entropy=30.0)

Pair = tuple[int, int]


@synthesizers.register("spanning_tree")
@dataclass(kw_only=True, eq=False, repr=False)
class SpanningTree(MarginalSynthesizer):
    """Columns connected by a tree of pairs ("MST").

    Args:
        center: a column that every other one is paired with, such as the label of a classification; without it, pairs
            are chosen privately.

    >>> SpanningTree(epsilon=0.5, delta=1e-6)
    SpanningTree(epsilon=0.5, delta=1e-06)
    """

    center: str | None = None

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        privacy_filter, domain = self._privacy_filter(), facts.domain
        single, _, paired = self._shares(facts)
        columns = column_expectations(facts, privacy_filter, single)
        if len(columns) == 1:
            return columns
        if self.center is not None:
            domain.positions([self.center])
        *_, second, first = sorted(domain.sizes)
        noise = privacy_filter.noise(paired / (len(columns) - 1))
        return (*columns, Expectation.of("the largest pair of columns", first * second, noise))

    def _shares(self, facts: SynthesisFacts) -> tuple[Fraction, Fraction, Fraction]:
        """Return what goes to columns, to choices and to pairs."""
        if len(facts.domain.names) == 1:
            return Fraction(1), Fraction(0), Fraction(0)
        return (_THIRD, Fraction(0), 2 * _THIRD) if self.center is not None else (_THIRD, _THIRD, _THIRD)

    def _modeled(self, work: MarginalFit) -> MarginalModel:
        single, chosen, paired = self._shares(work.facts)
        work.measure_columns(single)
        self._tell(0.2, "choosing pairs of columns")
        pairs = self._pairs(work, chosen)
        for pair in pairs:
            work.measure(pair, paired / len(pairs))
        self._tell(0.6, "estimating")
        return work.estimate(_ESTIMATOR)

    def _pairs(self, work: MarginalFit, share: Fraction) -> list[Pair]:
        domain = work.facts.domain
        many = len(domain.names)
        if self.center is not None:
            (middle,) = domain.positions([self.center])
            return [(min(middle, other), max(middle, other)) for other in range(many) if other != middle]
        scores = {pair: _dependence(work, pair) for pair in combinations(range(many), 2)}
        part, pairs = list(range(many)), list[Pair]()
        while len(pairs) < many - 1:
            # Only pairs that join two parts are left, so that whatever is chosen ends as a tree.
            joining = [pair for pair in scores if part[pair[0]] != part[pair[1]]]
            found = [scores[pair] for pair in joining]
            pairs.append(work.choose(found, joining, share / (many - 1), label="which pair of columns"))
            first, second = pairs[-1]
            part = [part[first] if item == part[second] else item for item in part]
        return pairs


def _dependence(work: MarginalFit, pair: Pair) -> int:
    """Return how far a pair's counts are from what its columns by themselves would give. Protected."""
    first, second = (np.maximum(work.seen[column].values, 0.0) for column in pair)
    rows = max(1.0, (first.sum() + second.sum()) / 2)
    product = np.outer(first, second) * (rows / max(1.0, first.sum() * second.sum()))
    return int(np.abs(work.counts.marginal(pair) - whole_counts(product)).sum())
