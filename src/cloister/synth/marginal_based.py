"""Synthesizers that measure marginals and draw rows of codes from a model of them: what they spend, and their base.

Without a delta everything is paid in epsilon: Laplace noise, and choices that are epsilon-private. With one,
everything is paid in rho of zero-concentrated privacy: Gaussian noise, and choices by the exponential mechanism, of
which an epsilon-private one costs rho = epsilon**2 / 8 (Cesar and Rogers 2021). That holds for the exponential
mechanism and not for every private choice, so no other method is used then.

Privacy: neighbors differ in the rows of one unit. Adding or removing m rows moves the counts of a marginal by at most
m in L1 and m in L2 (all in one cell); replacing a row moves two cells by one each: 2 in L1, sqrt(2) in L2. A score
that one added row moves by at most 1 is moved by at most m, or 2. Budgets may be chosen from what was released
before, as long as their sum is bounded beforehand, which `PrivacyFilter` sees to (Feldman and Zrnic 2021 for rho;
sums of epsilon are plain).

The simplest member is here as well: every column by itself, the baseline that keeps no connection between columns.
Its privacy: each of d columns is one marginal that gets a d-th of the budget.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent, ZeroConcentratedEvent
from cloister.core import exact
from cloister.core.guarantees import Adjacency, Guarantee
from cloister.core.random import RandomSource
from cloister.data.table import Table
from cloister.errors import InternalError
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise
from cloister.mechanisms.selection import Select
from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps
from cloister.synth._cell_counts import CellCounts, Counts
from cloister.synth.base import SynthesisFacts, Synthesizer, synthesizers
from cloister.synth.conditions import allowed_cells
from cloister.synth.constraints import zeros_of
from cloister.synth.expectation import Expectation
from cloister.synth.inference._estimation import Estimator, NoisyMarginal, Zeros
from cloister.synth.inference._marginal_model import MarginalModel

__all__ = [
    "IndependentMarginals",
    "MarginalFit",
    "MarginalSynthesizer",
    "PrivacyFilter",
    "column_expectations",
    "possible_cells",
]


_LEAST_DEVIATION = 1e-3
"""What is stated of less noise: counts are weighted by its inverse square, which a float cannot hold for none."""


@dataclass(eq=False)
class PrivacyFilter:
    """Measures and chooses for shares of a budget, and refuses what the shares that are left do not cover.

    Attributes:
        calibration: the whole budget, and whom it protects.
        steps: what was done, one step per measurement and per choice.
    """

    calibration: NoiseCalibration
    steps: list[FitStep] = field(default_factory=list)
    _spent: Fraction = Fraction(0)

    @property
    def left(self) -> Fraction:
        """Return the share that is left."""
        return 1 - self._spent

    @property
    def is_pure(self) -> bool:
        """Return whether everything is paid in epsilon."""
        return self.calibration.is_pure

    @property
    def total(self) -> Fraction:
        """Return the whole budget: epsilon, or rho."""
        return self.calibration.budget.amount if self.is_pure else self.calibration.rho

    @property
    def event(self) -> Event:
        """Return what everything together is for the accountants, known before anything is spent."""
        if self.is_pure:
            return PureEvent(epsilon=self.calibration.budget.amount)
        return ZeroConcentratedEvent(rho=self.calibration.rho)

    def noise(self, share: Fraction) -> StepNoise:
        """Return the noise on counts that a share buys."""
        amount = self.total * share
        if self.is_pure:
            return LaplaceSteps(self.calibration.rows, amount)
        return GaussianSteps.for_rho(self.squared_move, amount)

    def choice_epsilon(self, share: Fraction) -> Fraction:
        """Return the epsilon of a choice that a share buys, rounded down."""
        amount = self.total * share
        return amount if self.is_pure else exact.sqrt_bounds(8 * amount)[0]

    def deviation(self, share: Fraction) -> float:
        """Return the standard deviation of the noise that a share buys, never quite nothing: it may be divided by."""
        return max(_LEAST_DEVIATION, self.noise(share).deviation)

    def measure(
        self,
        counts: CellCounts,
        columns: Sequence[int],
        share: Fraction,
        source: RandomSource,
        *,
        label: str,
        noise: StepNoise | None = None,
    ) -> NoisyMarginal:
        """Return a marginal with the noise that a share buys, or with some that is known to cost no more."""
        noise = self.noise(share) if noise is None else noise
        # The share is taken first: no count is read for a step that the budget does not cover.
        self._take(share, FitStep(label, noise.event))
        noisy = noise.add(counts.marginal(columns), source)
        return NoisyMarginal(tuple(columns), noisy.astype(np.float64), max(_LEAST_DEVIATION, noise.deviation))

    def choose(
        self,
        scores: NDArray[Any],
        candidates: Sequence[Any],
        share: Fraction,
        source: RandomSource,
        *,
        label: str,
        sensitivity: Fraction = Fraction(1),
    ) -> Any:  # one of the candidates
        """Return a candidate with a high score, by the exponential mechanism.

        Args:
            scores: one per candidate; an added row moves each by at most the sensitivity, in either direction.
            candidates: public.
            share: what it may cost.
            source: of the choice.
            label: what it is for.
            sensitivity: of the scores, for one row added or removed.
        """
        epsilon = self.choice_epsilon(share)
        event = PureEvent(epsilon=epsilon) if self.is_pure else ZeroConcentratedEvent(rho=self.total * share)
        self._take(share, FitStep(label, event))
        mechanism = Select(
            candidates=tuple(range(len(candidates))),
            score_sensitivity=sensitivity * self.calibration.rows,
            epsilon=epsilon,
            monotone=False,  # the error of a model can rise for one candidate and fall for another
            method="exponential",
        )
        return candidates[mechanism.release(scores, random_state=source).index]

    @property
    def squared_move(self) -> int:
        """Return the square of how far the protected unit can move the counts of a marginal in L2."""
        if self.calibration.adjacency is Adjacency.REPLACE:
            return 2 * self.calibration.max_rows_per_unit**2
        return self.calibration.rows**2

    def _take(self, share: Fraction, step: FitStep) -> None:
        if share <= 0 or share > self.left:
            raise InternalError("A synthesizer wanted to spend more than it may.")
        self._spent += share
        self.steps.append(step)


_FEW = 3.0
"""How many deviations of its noise a count of missing values must have to be believed."""


@dataclass(eq=False)
class MarginalFit:
    """A fit under way: the protected counts, and the only ways to let something of them out.

    Attributes:
        facts: what is public.
        counts: the exact counts. Protected.
        privacy_filter: sees to it that no more is spent than was paid.
        source: of the noise.
        seen: what was measured.
    """

    facts: SynthesisFacts
    counts: CellCounts = field(repr=False)
    privacy_filter: PrivacyFilter
    source: RandomSource
    seen: list[NoisyMarginal] = field(default_factory=list)

    def measure(self, columns: Sequence[int], share: Fraction) -> NoisyMarginal:
        """Return a marginal with noise, and remember it."""
        label = " x ".join(self.facts.domain.names[column] for column in columns)
        self.seen.append(self.privacy_filter.measure(self.counts, columns, share, self.source, label=label))
        return self.seen[-1]

    def measure_columns(self, share: Fraction) -> None:
        """Measure every column by itself."""
        many = len(self.facts.domain.names)
        for column in range(many):
            self.measure((column,), share / many)

    def choose(
        self,
        scores: Sequence[int] | Counts,
        candidates: Sequence[Any],
        share: Fraction,
        *,
        label: str,
        sensitivity: int = 1,
    ) -> Any:  # one of the candidates
        """Return a candidate with a high score, privately; an added row moves a score by at most the sensitivity."""
        exactly = np.asarray(scores)
        if exactly.dtype != np.int64:
            raise InternalError("Scores must be whole numbers, so that their sensitivity is exact.")
        return self.privacy_filter.choose(
            exactly, candidates, share, self.source, label=label, sensitivity=Fraction(sensitivity)
        )

    @cached_property
    def _impossible(self) -> tuple[Zeros, ...]:
        return zeros_of(self.facts.constraints, self.facts.domain)

    def estimate(self, estimator: Estimator, *, start: MarginalModel | None = None) -> MarginalModel:
        """Return the model of what was measured, without what is impossible or missing by noise alone."""
        zeros = [*self._impossible, *_never_missing(self.facts, self.seen)]
        return estimator.fit(self.facts.domain.sizes, self.seen, zeros=zeros, start=start)


def column_expectations(
    facts: SynthesisFacts, privacy_filter: PrivacyFilter, share: Fraction
) -> tuple[Expectation, ...]:
    """Return how exact `MarginalFit.measure_columns` will be."""
    noise = privacy_filter.noise(share / len(facts.domain.names))
    return tuple(Expectation.of(item.name, item.size, noise) for item in facts.domain.attributes)


def possible_cells(facts: SynthesisFacts) -> NDArray[np.bool_]:
    """Return which combinations of all columns' cells constraints leave possible."""
    possible = np.ones(facts.domain.sizes, dtype=np.bool_)
    for item in zeros_of(facts.constraints, facts.domain):
        shape = [size if column in item.columns else 1 for column, size in enumerate(facts.domain.sizes)]
        possible &= item.possible.reshape(shape)
    return possible


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalSynthesizer(Synthesizer):
    """A synthesizer that ends in a distribution over the declared cells."""

    model_: MarginalModel = field(init=False)
    measurements_: tuple[NoisyMarginal, ...] = field(init=False)

    def _promise(self, facts: SynthesisFacts) -> tuple[Guarantee, Event | None]:
        return self._calibration().guarantee(assumptions=facts.assumptions), self._privacy_filter().event

    def _privacy_filter(self) -> PrivacyFilter:
        return PrivacyFilter(self._calibration())

    def _learn(self, facts: SynthesisFacts, rows: Table, source: RandomSource) -> None:
        self._tell(0.0, "counting")
        work = MarginalFit(facts, CellCounts(rows, facts.domain), self._privacy_filter(), source)
        self.model_ = self._modeled(work)
        self.measurements_, self.steps_ = tuple(work.seen), tuple(work.privacy_filter.steps)
        self.rows_ = self.model_.total
        self._tell(1.0, "done")

    @abstractmethod
    def _modeled(self, work: MarginalFit) -> MarginalModel:
        """Return the model of what is measured."""

    def marginal(self, columns: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return how many rows the model has in each combination of some columns' cells; costs nothing.

        Args:
            columns: one axis each, in the order of the table.
        """
        places = self.fitted_facts.domain.positions(columns)
        return np.asarray(self.model_.marginal(places) * self.model_.total)

    def _draw(self, count: int, conditions: dict[str, Any], source: RandomSource) -> dict[str, Any]:
        domain = self.fitted_facts.domain
        wanted = {domain.positions([name])[0]: allowed_cells(domain[name], given) for name, given in conditions.items()}
        model = self.model_.given({place: cells for place, (cells, _) in wanted.items()}) if wanted else self.model_
        codes = model.sample(count, source)
        limits = {domain.names[place]: between for place, (_, between) in wanted.items()}
        return {
            item.name: item.decode(codes[:, place], source, between=limits.get(item.name))
            for place, item in enumerate(domain.attributes)
        }

    def _learned_state(self) -> dict[str, Any]:
        return {
            "model": self.model_.to_dict(),
            "measurements": [
                {"columns": list(item.columns), "values": item.values, "deviation": float(item.deviation)}
                for item in self.measurements_
            ],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.model_ = MarginalModel.from_dict(state["model"])
        self.measurements_ = tuple(
            NoisyMarginal(tuple(item["columns"]), item["values"], float(item["deviation"]))
            for item in state["measurements"]
        )
        self.rows_ = self.model_.total


def _never_missing(facts: SynthesisFacts, measurements: Sequence[NoisyMarginal]) -> list[Zeros]:
    """Return the columns whose count of missing values is not above its noise, as impossible to miss."""
    found = []
    for item in measurements:
        can_miss = len(item.columns) == 1 and not facts.domain.attributes[item.columns[0]].complete
        # A noisy count decides, so that this is post-processing.
        if can_miss and item.values[-1] < _FEW * item.deviation:
            possible = np.ones(item.values.shape, dtype=np.bool_)
            possible[-1] = False
            found.append(Zeros(item.columns, possible))
    return found


@synthesizers.register("independent")
@dataclass(kw_only=True, eq=False, repr=False)
class IndependentMarginals(MarginalSynthesizer):
    """Columns drawn independently of each other, each as it is distributed in the data.

    >>> IndependentMarginals(epsilon=0.5)
    IndependentMarginals(epsilon=0.5)
    """

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        return column_expectations(facts, self._privacy_filter(), Fraction(1))

    def _modeled(self, work: MarginalFit) -> MarginalModel:
        work.measure_columns(Fraction(1))
        return work.estimate(Estimator())
