"""Sums, means, variances and standard deviations of numbers within public bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cloister.queries._aggregates.base import AggregateKind, Answered, NumberAggregate, register
from cloister.queries._uncertainty import Linear, MomentsUncertainty, RatioUncertainty, ratio

if TYPE_CHECKING:
    from cloister.queries._measurements import MeasurementNeeds
    from cloister.queries._release import NoisyMeasurements

__all__ = ["Mean", "StandardDeviation", "Total", "Variance"]


@dataclass(frozen=True, slots=True)
class Total(NumberAggregate):
    """SUM(x)."""

    words: ClassVar[str] = "sum of"

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that the number is summed."""
        needs.total(self.of)

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the noisy sum."""
        totals = noisy.totals(self.of)
        center = float(noisy.center(self.of) * self.of.unit)
        if center:
            # What was measured around the center gets it back from the noisy count, whose noise comes along.
            totals = totals.plus(noisy.counts(self.of).times(center))
        return totals.values, Linear(totals.noises, len(totals.values))


@dataclass(frozen=True, slots=True)
class Mean(NumberAggregate):
    """AVG(x)."""

    words: ClassVar[str] = "mean of"

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that values are counted, and summed around the middle of the bounds."""
        needs.moments(self.of)

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the noisy sum over the noisy count."""
        number = self.of
        totals, counts = noisy.totals(number), noisy.counts(number)
        center, reach = float(number.center * number.unit), float(number.half_range * number.unit)
        error = RatioUncertainty(totals.noises, counts.noises, totals.values, counts.values, reach)
        low, high = map(float, number.bounds)
        # The exact mean is within the public bounds, so clipping can only bring the answer closer.
        return np.clip(center + ratio(totals.values, counts.values, reach), low, high), error


@dataclass(frozen=True, slots=True)
class _Spread(NumberAggregate):
    """How far numbers are apart, from the first two moments."""

    sample: bool = True

    is_root: ClassVar[bool]

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that values are counted, summed around the middle of the bounds, and their squares summed."""
        needs.moments(self.of, squares=True)

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the mean of squares less the square of the mean, or its root."""
        number = self.of
        counts, totals = noisy.counts(number), noisy.totals(number)
        squares = noisy.squares(number).plus(counts.times(noisy.middle(number)))
        error = MomentsUncertainty(
            (counts.noises, totals.noises, squares.noises),
            counts.values,
            totals.values,
            squares.values,
            float((number.half_range * number.unit) ** 2),
            self.sample,
            self.is_root,
        )
        return error.values(counts.values, totals.values, squares.values), error


@dataclass(frozen=True, slots=True)
class Variance(_Spread):
    """VAR_POP(x), or VAR_SAMP(x) with ``sample``."""

    words: ClassVar[str] = "variance of"
    is_root: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class StandardDeviation(_Spread):
    """STDDEV_POP(x), or STDDEV_SAMP(x) with ``sample``."""

    words: ClassVar[str] = "standard deviation of"
    is_root: ClassVar[bool] = True


register("sum", AggregateKind(make=Total, sql={"Sum": Total}))
register("mean", AggregateKind(make=Mean, sql={"Avg": Mean}))
register(
    "variance",
    AggregateKind(
        make=Variance,
        is_squared=True,
        sql={"Variance": Variance, "VAR": Variance, "VariancePop": partial(Variance, sample=False)},
    ),
)
register(
    "std",
    AggregateKind(
        make=StandardDeviation,
        is_squared=True,
        sql={
            "Stddev": StandardDeviation,
            "STD": StandardDeviation,
            "StddevSamp": StandardDeviation,
            "StddevPop": partial(StandardDeviation, sample=False),
        },
    ),
)
