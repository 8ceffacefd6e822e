"""A Bayesian network of low degree, after Zhang, Cormode, Procopiuc, Srivastava and Xiao (2017, "PrivBayes").

Each column is measured by itself. Then the network grows column by column: a column and its parents are chosen
privately by how strongly they depend on each other, and are measured together. Only families that are *useful* are
candidates: a column and its parents have so few cells that the average count is at least theta times the noise on it,
for the number of rows that is public or that the columns' noisy counts show. So the number of parents follows from what
the budget can bear.

Parents are taken from one earlier family. Families then form a junction tree, and rows are drawn from the most even
distribution that fits all noisy counts, instead of family by family from counts that contradict each other: estimates
are better, conditions on rows are exact, and the model is about as large as its families. What is lost are networks
with parents from all over, which the original allows.

Privacy: the score of a family is the L1 distance between its true counts and the product of what was released before:
the column's noisy counts and, since the parents lie in a family that is measured, the parents'. These do not change
with the data: an added row moves one true count by one, and so each score by at most one, up or down, so that the
choice is not monotone. (The paper's score R compares with true products, and moves up to four times as far.) From a
score a public number is taken away, what noise alone would make of it. Which families are useful, and what is spent on
them, follows from public numbers and earlier releases. Noise and choices are composed by
`cloister.synth.marginal_based`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from cloister.core.exact import number
from cloister.core.validation import check_count, check_positive
from cloister.synth._cell_counts import whole_counts
from cloister.synth.base import SynthesisFacts, synthesizers
from cloister.synth.expectation import Expectation
from cloister.synth.inference._estimation import Estimator, NoisyMarginal, total_of
from cloister.synth.inference._junction_tree import Floats
from cloister.synth.inference._marginal_model import MarginalModel
from cloister.synth.marginal_based import MarginalFit, MarginalSynthesizer, column_expectations

__all__ = ["BayesianNetwork"]

Columns = tuple[int, ...]

_COLUMNS = Fraction(1, 5)
_CHOICES = Fraction(1, 5)
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
_ESTIMATOR = Estimator(iterations=500, entropy=10.0)


@dataclass(frozen=True, slots=True)
class NetworkFamily:
    """A column and its parents, by position."""

    column: int
    parents: Columns

    @property
    def members(self) -> Columns:
        """Return all of them in order."""
        return tuple(sorted((self.column, *self.parents)))


@synthesizers.register("bayesian_network")
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianNetwork(MarginalSynthesizer):
    """Each column given a few others ("PrivBayes").

    Args:
        degree: how many parents a column has at most; fewer, where more would drown in noise.
        theta: how many times its noise the average count of a family must be.
        max_cells: how many cells a family may have.

    >>> BayesianNetwork(epsilon=0.5, delta=1e-6, degree=2)
    BayesianNetwork(epsilon=0.5, delta=1e-06, degree=2)
    """

    degree: int = 3
    theta: float = 4.0
    max_cells: int = 50_000

    network_: tuple[NetworkFamily, ...] = field(init=False)

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        check_count(self.degree, name="degree", at_least=1)
        check_count(self.max_cells, name="max_cells", at_least=1)
        check_positive(number(self.theta, name="theta"), name="theta")
        privacy_filter = self._privacy_filter()
        columns = column_expectations(facts, privacy_filter, self._shares(facts)[0])
        if len(columns) == 1:
            return columns
        pair = math.prod(sorted(facts.domain.sizes)[-2:])
        return (
            *columns,
            Expectation.of("the largest pair of columns", pair, privacy_filter.noise(self._shares(facts)[2])),
        )

    def _shares(self, facts: SynthesisFacts) -> tuple[Fraction, Fraction, Fraction]:
        """Return what goes to columns, to each choice and to each family."""
        steps = len(facts.domain.names) - 1
        if not steps:
            return Fraction(1), Fraction(0), Fraction(0)
        return _COLUMNS, _CHOICES / steps, (1 - _COLUMNS - _CHOICES) / steps

    def _family_noise(self, facts: SynthesisFacts) -> float:
        share = self._shares(facts)[2]
        return self._privacy_filter().deviation(share) if share else math.inf

    def _modeled(self, work: MarginalFit) -> MarginalModel:
        single, choice, family = self._shares(work.facts)
        work.measure_columns(single)
        rows = float(self.expected_rows or total_of(work.seen))
        growth = _Growth(work, self._largest(work.facts, rows), self.degree, self._family_noise(work.facts))
        # Candidates follow from public numbers and earlier releases, and so does when there are none left.
        while candidates := list(growth.candidates()):
            self._tell(len(growth.network) / len(work.facts.domain.names), "choosing and measuring families")
            scores = [growth.score(item) for item in candidates]
            chosen: NetworkFamily = work.choose(scores, candidates, choice, label="which column with which parents")
            work.measure(chosen.members, family)
            growth.add(chosen)
        self.network_ = (*growth.network, *(NetworkFamily(column, ()) for column in growth.left))
        if work.privacy_filter.left > 0:
            _measure_again(work, growth.left)
        self._tell(0.8, "estimating")
        return work.estimate(_ESTIMATOR)

    def _largest(self, facts: SynthesisFacts, rows: float) -> float:
        """Return how many cells a useful family has at most."""
        return min(float(self.max_cells), rows / (float(self.theta) * self._family_noise(facts)))

    def _learned_state(self) -> dict[str, Any]:
        network = [{"column": item.column, "parents": list(item.parents)} for item in self.network_]
        return {**super()._learned_state(), "network": network}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self.network_ = tuple(
            NetworkFamily(int(item["column"]), tuple(map(int, item["parents"]))) for item in state["network"]
        )


@dataclass(eq=False)
class _Growth:
    """A network that grows family by family.

    Attributes:
        work: the fit.
        largest: how many cells a useful family has at most.
        degree: how many parents a column has at most.
        noise: the deviation of the noise on a family's counts.
        network: what was chosen, parents before children.
    """

    work: MarginalFit
    largest: float
    degree: int
    noise: float
    network: list[NetworkFamily] = field(default_factory=list)
    _scores: dict[NetworkFamily, int] = field(default_factory=dict)
    _parents: dict[Columns, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sizes = self.work.facts.domain.sizes
        self._rows = total_of(self.work.seen)

    @property
    def left(self) -> list[int]:
        """Return the columns that are not in the network."""
        inside = {item.column for item in self.network}
        return [column for column in range(len(self._sizes)) if column not in inside]

    def candidates(self) -> Iterator[NetworkFamily]:
        """Return the largest useful families of columns that are not in the network, or pairs that start a new one."""
        found = False
        for column in self.left:
            useful = [part for part in self._parents if self._cells((column, *part)) <= self.largest]
            for part in useful:
                # A smaller set of parents tells no more than a larger one that is useful, too.
                if not any(set(part) < set(other) for other in useful):
                    found = True
                    yield NetworkFamily(column, part)
        if not found:
            for first, second in combinations(self.left, 2):
                if self._cells((first, second)) <= self.largest:
                    yield NetworkFamily(second, (first,))

    def add(self, chosen: NetworkFamily) -> None:
        """Take a family into the network; parents of others may come from it from now on."""
        self.network += [NetworkFamily(column, ()) for column in chosen.parents if column in self.left]
        self.network.append(chosen)
        for many in range(1, min(self.degree, len(chosen.members)) + 1):
            self._parents |= dict.fromkeys(combinations(chosen.members, many))

    def score(self, family: NetworkFamily) -> int:
        """Return how far a family is from independence, beyond what noise would show. Protected."""
        if family not in self._scores:
            self._scores[family] = self._dependence(family)
        return self._scores[family]

    def _dependence(self, family: NetworkFamily) -> int:
        column, parents = _seen(self.work.seen, (family.column,)), _seen(self.work.seen, family.parents)
        # Counts below zero come from noise, and would turn the sign of products.
        first, rest = np.maximum(column.values, 0.0), np.maximum(parents.values, 0.0)
        product = np.multiply.outer(first, rest) * (self._rows / max(1.0, float(first.sum() * rest.sum())))
        order = (family.column, *family.parents)
        aligned = np.transpose(product, [order.index(member) for member in family.members])
        expected = whole_counts(aligned)
        distance = int(np.abs(self.work.counts.marginal(family.members) - expected).sum())
        # What noise alone would show grows with the cells, and large families would otherwise always win.
        return distance - round(_MEAN_ABSOLUTE * self.noise * aligned.size)

    def _cells(self, columns: Columns) -> int:
        return math.prod(self._sizes[column] for column in columns)


def _seen(measurements: Sequence[NoisyMarginal], columns: Columns) -> NoisyMarginal:
    """Return the counts of some columns from the measurement that shows them with least noise."""
    within = [item for item in measurements if set(columns) <= set(item.columns)]
    found = [_sum_out(item, columns) for item in within]
    return min(found, key=lambda item: item.deviation)


def _sum_out(item: NoisyMarginal, columns: Columns) -> NoisyMarginal:
    gone = tuple(axis for axis, column in enumerate(item.columns) if column not in columns)
    values: Floats = np.asarray(item.values.sum(axis=gone))
    # The noise of cells that are added up is independent, so that its variances add up.
    return NoisyMarginal(columns, values, item.deviation * math.sqrt(item.values.size / values.size))


def _measure_again(work: MarginalFit, columns: Sequence[int]) -> None:
    """Spend what is left on columns by themselves: on those that are connected with no other, if there are any."""
    again = list(columns) or list(range(len(work.facts.domain.names)))
    each = work.privacy_filter.left / len(again)
    for column in again:
        work.measure((column,), each)
