"""Counts: of rows, of units of privacy, of values that are there, and of different values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cloister.queries._aggregates.base import (
    Aggregate,
    AggregateKind,
    AggregateOperand,
    Answered,
    ValueAggregate,
    register,
)

if TYPE_CHECKING:
    from cloister.queries._measurements import MeasurementNeeds
    from cloister.queries._release import NoisyMeasurements

__all__ = ["CountDistinct", "CountNotNull", "CountRows", "CountUnits"]


@dataclass(frozen=True, slots=True)
class CountRows(Aggregate):
    """COUNT(*): how many rows."""

    words: ClassVar[str] = "count"

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that rows are counted."""
        needs.rows()

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the noisy count."""
        return noisy.rows()


@dataclass(frozen=True, slots=True)
class CountUnits(Aggregate):
    """COUNT(DISTINCT person): how many units of privacy."""

    words: ClassVar[str] = "units"
    needs_limit: ClassVar[bool] = False

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that units are counted."""
        needs.units()

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the noisy count."""
        return noisy.units()


@dataclass(frozen=True, slots=True)
class CountNotNull(ValueAggregate):
    """COUNT(x): how many rows in which SQL is not NULL."""

    words: ClassVar[str] = "rows with"
    key: ClassVar[str] = "CountPresent"

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that values are counted."""
        needs.present(self.of)

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the noisy count."""
        return noisy.present(self.of)


@dataclass(frozen=True, slots=True)
class CountDistinct(ValueAggregate):
    """COUNT(DISTINCT x): how many different values that are not NULL."""

    words: ClassVar[str] = "different values of"

    def measure(self, needs: MeasurementNeeds) -> None:
        """Say that different values are counted."""
        needs.distinct(self.of)

    def answer(self, noisy: NoisyMeasurements) -> Answered:
        """Return the noisy count."""
        return noisy.distinct(self.of)


# COUNT has a grammar of its own in SQL; see `cloister.queries.sql.aggregation`.
register("count", AggregateKind(make=CountRows, operand=AggregateOperand.ROWS))
register("units", AggregateKind(make=CountUnits, operand=AggregateOperand.ROWS))
register("present", AggregateKind(make=CountNotNull, operand=AggregateOperand.VALUE))
register("distinct", AggregateKind(make=CountDistinct, operand=AggregateOperand.VALUE))
