"""Quantiles, minimum and maximum: numbers that are chosen by their rank among the rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from cloister.core import exact
from cloister.core.exact import Number
from cloister.errors import ParameterError
from cloister.queries._aggregates.base import AggregateKind, Answered, NumberAggregate, register
from cloister.queries._question import FixedPointNumber, RankTarget

if TYPE_CHECKING:
    from cloister.queries._measurements import MeasurementNeeds
    from cloister.queries._release import NoisyMeasurements

__all__ = ["Extreme", "Quantile", "share"]


@dataclass(frozen=True, slots=True)
class Quantile(NumberAggregate):
    """The value below which a fraction ``q`` of the rows lies, 0 < q < 1."""

    q: Fraction

    @property
    def title(self) -> str:
        """Return what it is called."""
        return f"{float(self.q):g} quantile of {self.of.label}"

    @property
    def target(self) -> RankTarget:
        """Return the rank that is looked for."""
        return RankTarget(self.of, self.q)

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that a rank is looked for."""
        needs.rank(self.target)

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the number that was chosen."""
        return noisy.rank(self.target)


@dataclass(frozen=True, slots=True)
class Extreme(NumberAggregate):
    """MIN(x) or MAX(x): a value that only a few rows lie beyond: ``beyond``, or more if epsilon needs it."""

    largest: bool
    beyond: int | None = None

    @property
    def title(self) -> str:
        """Return what it is called."""
        return f"{'maximum' if self.largest else 'minimum'} of {self.of.label}"

    @property
    def target(self) -> RankTarget:
        """Return the rank that is looked for."""
        return RankTarget(self.of, Fraction(int(self.largest)), self.beyond)

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that a rank is looked for."""
        needs.rank(self.target)

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the number that was chosen."""
        return noisy.rank(self.target)


def share(q: Number) -> Fraction:
    """Return the fraction of rows that a quantile stands for."""
    share = exact.number(q, name="q")
    if not 0 < share < 1:
        raise ParameterError("A quantile lies strictly between 0 and 1.", fix="use q=0.5; or min and max for the ends.")
    if share.denominator > 10**6:
        raise ParameterError("q has too many digits.", fix="round q to six digits.")
    return share


def _median(number: FixedPointNumber) -> Quantile:
    return Quantile(number, Fraction(1, 2))


def _quantile(number: FixedPointNumber, q: Number) -> Quantile:
    return Quantile(number, share(q))


_minimum, _maximum = partial(Extreme, largest=False), partial(Extreme, largest=True)
register("min", AggregateKind(make=_minimum, sql={"Min": _minimum}))
register("max", AggregateKind(make=_maximum, sql={"Max": _maximum}))
register("median", AggregateKind(make=_median, sql={"Median": _median, "MEDIAN": _median}))
# QUANTILE has several spellings in SQL; see `cloister.queries.sql.aggregation`.
register("quantile", AggregateKind(make=_quantile, examples=("0.9",)))
