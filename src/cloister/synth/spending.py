"""What a fit may spend, share by share: noise for marginals, and private choices between public candidates.

Without a delta everything is paid in epsilon: Laplace noise, and choices that are epsilon-private. With one, everything
is paid in rho of zero-concentrated privacy: Gaussian noise, and choices by the exponential mechanism, of which an
epsilon-private one costs rho = epsilon**2 / 8 (Cesar and Rogers 2021). That holds for the exponential mechanism and not
for every private choice, so no other method is used then.

Privacy: neighbors differ in the rows of one unit. Adding or removing m rows moves the counts of a marginal by at most m
in L1 and m in L2 (all in one cell); replacing a row moves two cells by one each: 2 in L1, sqrt(2) in L2. A score that
one added row moves by at most 1 is moved by at most m, or 2. Budgets may be chosen from what was released before, as
long as their sum is bounded beforehand, which `Purse` sees to (Feldman and Zrnic 2021 for rho; sums of epsilon are
plain).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, PureEvent, ZeroConcentratedEvent
from cloister.core import exact
from cloister.core.guarantees import Adjacency
from cloister.core.random import RandomSource
from cloister.errors import InternalError
from cloister.mechanisms.allowance import Allowance, Step, StepNoise
from cloister.mechanisms.selection import Select
from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps
from cloister.synth.counting import CellCounts
from cloister.synth.inference.measurement import Measurement

__all__ = ["Purse"]

_LEAST_DEVIATION = 1e-3
"""What is stated of less noise: counts are weighted by its inverse square, which a float cannot hold for none."""


@dataclass(eq=False)
class Purse:
    """A budget that is used up step by step; shares are parts of the whole.

    Attributes:
        allowance: the whole budget.
        steps: what was done, one step per measurement and per choice.
    """

    allowance: Allowance
    steps: list[Step] = field(default_factory=list)
    _spent: Fraction = Fraction(0)

    @property
    def left(self) -> Fraction:
        """Return the share that is left."""
        return 1 - self._spent

    @property
    def is_pure(self) -> bool:
        """Return whether everything is paid in epsilon."""
        return self.allowance.is_pure

    @property
    def total(self) -> Fraction:
        """Return the whole budget: epsilon, or rho."""
        return self.allowance.total_epsilon if self.is_pure else self.allowance.rho

    @property
    def event(self) -> Event:
        """Return what everything together is for the accountants, known before anything is spent."""
        if self.is_pure:
            return PureEvent(epsilon=self.allowance.total_epsilon)
        return ZeroConcentratedEvent(rho=self.allowance.rho)

    def noise(self, share: Fraction) -> StepNoise:
        """Return the noise on counts that a share buys."""
        amount = self.total * share
        if self.is_pure:
            return LaplaceSteps(self.allowance.rows, amount)
        return GaussianSteps.concentrated(self.squared_move, amount)

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
    ) -> Measurement:
        """Return a marginal with the noise that a share buys, or with some that is known to cost no more."""
        noise = self.noise(share) if noise is None else noise
        self._take(share, Step(label, noise.event))
        noisy = noise.add(counts.marginal(columns), source)
        return Measurement(tuple(columns), noisy.astype(np.float64), max(_LEAST_DEVIATION, noise.deviation))

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
        self._take(share, Step(label, event))
        mechanism = Select(
            candidates=tuple(range(len(candidates))),
            score_sensitivity=sensitivity * self.allowance.rows,
            epsilon=epsilon,
            monotone=False,  # the error of a model can rise for one candidate and fall for another
            method="exponential",
        )
        return candidates[mechanism.release(scores, random_state=source).index]

    @property
    def squared_move(self) -> int:
        """Return the square of how far the protected unit can move the counts of a marginal in L2."""
        if self.allowance.adjacency is Adjacency.REPLACE:
            return 2 * self.allowance.max_rows_per_unit**2
        return self.allowance.rows**2

    def _take(self, share: Fraction, step: Step) -> None:
        if share <= 0 or share > self.left:
            raise InternalError("A synthesizer wanted to spend more than it may.")
        self._spent += share
        self.steps.append(step)
