"""Poisson samples of rows: how often to draw them (and the default), how many steps, and how much noise that needs.

A sample is drawn by exact tosses of one coin for each row. Everything else here comes from public numbers.

Each step is Gaussian noise on a Poisson sample, and the steps are composed by the accountants: the privacy loss
distribution of the sampled Gaussian, for a row added and for a row removed (`cloister.accounting`). The number of rows
is private. The rate of the sample is therefore a parameter, or follows from a declared number of rows; without a
declared number, a noisy count is paid for, with a hundredth of what one release could take, and is used for nothing but
the scale of the gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, GaussianEvent, RepeatedEvent, SequenceEvent, SubsampledEvent
from cloister.accounting.planner import calibrate_multiplier
from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.learn._outlook import FitOutlook
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.mechanisms.sampling.coins import toss_coins
from cloister.mechanisms.step_noise import GaussianSteps

__all__ = [
    "MOST_AT_ONCE",
    "Schedule",
    "check_sampling",
    "noisy_row_count",
    "plan_schedule",
    "poisson_sample",
    "sample_rate",
]


MOST_AT_ONCE = 2**12
"""A row that is sampled more often is listed several times."""

_TOSSES = 2**22


def poisson_sample(
    weights: NDArray[np.int64], rate: Fraction, source: RandomSource
) -> tuple[NDArray[np.int64], Floats]:
    """Return places of sampled rows, and how often each is in the sample; a row of weight w has w tosses of its own."""
    if weights.size == 0 or int(weights.max()) <= 1:
        places = np.flatnonzero(toss_coins(source, rate, int(weights.sum())))
        return np.flatnonzero(weights)[places], np.ones(len(places))
    counts = _counts(weights, rate, source)
    sampled = np.flatnonzero(counts)
    times = -(-counts[sampled] // MOST_AT_ONCE)
    places = np.repeat(sampled, times)
    pieces = np.full(len(places), float(MOST_AT_ONCE))
    pieces[np.cumsum(times) - 1] = counts[sampled] - (times - 1) * MOST_AT_ONCE
    return places, pieces


def _counts(weights: NDArray[np.int64], rate: Fraction, source: RandomSource) -> NDArray[np.int64]:
    """Return for each row how many of its tosses came up."""
    ends = np.cumsum(weights)
    successes = [
        start + np.flatnonzero(toss_coins(source, rate, min(_TOSSES, int(ends[-1]) - start)))
        for start in range(0, int(ends[-1]), _TOSSES)
    ]
    # Tosses are numbered through all rows, and where a row's tosses end tells to whom one belongs.
    rows = np.searchsorted(ends, np.concatenate(successes), side="right")
    return np.bincount(rows, minlength=len(weights)).astype(np.int64)


_COUNT_SHARE = Fraction(1, 100)
_SLACK = Fraction(1, 10**12)
_DEFAULT_RATE = Fraction(1, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A private descent: samples, steps and noise."""

    rate: Fraction
    count: int
    noise: GaussianSteps
    expected_rows: int | None
    count_noise: GaussianSteps | None

    @property
    def multiplier(self) -> float:
        """Return the noise of one step, in units of the clip norm."""
        return math.sqrt(self._sampled.squared_multiplier)

    @property
    def _sampled(self) -> GaussianEvent:
        event = self.noise.event
        if not isinstance(event, GaussianEvent):  # pragma: no cover  # what `plan_schedule` made
            raise TypeError
        return event

    @property
    def steps(self) -> tuple[FitStep, ...]:
        """Return what is paid for."""
        sampled = SubsampledEvent(rate=self.rate, event=self._sampled)
        descent = FitStep("noisy gradients of samples", RepeatedEvent(event=sampled, count=self.count))
        if self.count_noise is None:
            return (descent,)
        return FitStep("number of rows", self.count_noise.event), descent

    @property
    def outlook(self) -> FitOutlook:
        """Return how the noise of all steps together, in each coordinate, compares with gradients of the clip norm."""
        rows = self.multiplier / (float(self.rate) * math.sqrt(self.count))
        return FitOutlook(rows=rows, what="all gradients together", compared="the largest that they can be")


def check_sampling(calibration: NoiseCalibration, *, what: str) -> None:
    """Raise unless a budget can pay for Gaussian noise on Poisson samples.

    Samples are accounted for when a row is added or removed. A budget for a replaced row is, by group privacy, one
    for two such rows, and is charged as a whole.
    """
    if calibration.is_pure:
        raise ParameterError(
            f"{what} adds Gaussian noise, which needs a delta.", fix="give for example delta=1e-6, well below 1/rows."
        )


def sample_rate(*, rate: Any, rows: Any, batch: Any) -> tuple[Fraction, int | None]:
    """Return the rate of the samples, and the declared number of rows.

    Args:
        rate: the share of rows in a sample, or None.
        rows: the declared number of rows, or None.
        batch: the expected number of rows in a sample, or None.
    """
    known = None if rows is None else validation.check_count(rows, name="expected_rows", at_least=1)
    if batch is not None and (known is None or rate is not None):
        raise ParameterError(
            "batch_size is for a declared number of rows, and excludes sample_rate: the true number is private.",
            fix="give batch_size with expected_rows, or sample_rate alone.",
        )
    if batch is not None and known is not None:
        size = validation.check_count(batch, name="batch_size", at_least=1)
        return min(Fraction(1), Fraction(size, known)), known
    found = _DEFAULT_RATE if rate is None else validation.check_probability(rate, name="sample_rate")
    if not found:
        raise ParameterError("sample_rate must be above 0.", fix="use for example sample_rate=0.05.")
    return found, known


def plan_schedule(
    calibration: NoiseCalibration, *, rate: Fraction, expected_rows: int | None, count: int, squared_sensitivity: int
) -> Schedule:
    """Return the noise with which a number of steps takes all of a budget.

    Args:
        calibration: what may be spent.
        rate: the rate of the samples.
        expected_rows: the declared number of rows; without it, a noisy count is part of the plan.
        count: the number of steps.
        squared_sensitivity: the square of the steps by which a row may move the sum.
    """
    counting = None if expected_rows is not None else calibration.gaussian(_COUNT_SHARE, squared_sensitivity=1)
    squared = _multiplier(
        calibration.epsilon * (1 - _SLACK), calibration.delta, rate, count, None if counting is None else counting.event
    )
    noise = GaussianSteps.dominating(squared_sensitivity, squared)
    return Schedule(rate=rate, count=count, noise=noise, expected_rows=expected_rows, count_noise=counting)


def noisy_row_count(schedule: Schedule, weights: NDArray[np.int64], source: RandomSource) -> float:
    """Return the declared or noisy number of rows, at least as many as make one expected row in a sample."""
    if schedule.count_noise is None:
        return float(schedule.expected_rows or 1)
    noisy = schedule.count_noise.add(np.array([int(weights.sum())]), source)
    # An expected sample of less than one row would blow up the gradients by noise in the count alone.
    return max(float(noisy[0]), float(1 / schedule.rate))


@lru_cache(maxsize=256)
def _multiplier(epsilon: Fraction, delta: Fraction, rate: Fraction, count: int, besides: Event | None) -> Fraction:
    """Return the squared noise multiplier of each step; recent ones are kept, since they are public."""

    def plan(squared: Fraction) -> Event:
        sampled = SubsampledEvent(rate=rate, event=GaussianEvent(squared_multiplier=squared))
        steps = RepeatedEvent(event=sampled, count=count)
        return steps if besides is None else SequenceEvent(events=(besides, steps))

    return calibrate_multiplier(plan, epsilon=epsilon, delta=delta)
