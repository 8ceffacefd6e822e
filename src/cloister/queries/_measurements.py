"""What has to be measured for a question: as few noisy vectors as its aggregates need, each with its sensitivity.

Aggregates share measurements. A mean needs how many values are present and their sum around the middle of the bounds,
which moves half as far as a plain sum; a total that is asked beside a mean is put together from the same two; counting
all rows beside present values takes one measurement of (present, missing), since a row is in one of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.errors import UnsafeQueryError
from cloister.mechanisms.base import with_room
from cloister.queries._cells import Component, ExactCells, check_size
from cloister.queries._contribution import Contribution, Reach
from cloister.queries._question import (
    Aggregate,
    CountDistinct,
    CountPresent,
    CountRows,
    CountUnits,
    Extreme,
    FixedPointNumber,
    Mean,
    Quantile,
    Question,
    StandardDeviation,
    Total,
    Variance,
)

__all__ = ["Measurement", "MeasurementDesign", "Ranking", "design"]

ROWS = Component("rows")
UNITS = Component("units")
_LARGEST_SQUARE = 2**62


@dataclass(frozen=True, slots=True)
class Measurement:
    """A vector of whole numbers that gets noise.

    Attributes:
        component: what is measured in each cell.
        rest_of: for (part, rest): the component of which the first is a part, so that rest = whole - part.
        l1: the L1 sensitivity in steps.
        squared_l2: the squared L2 sensitivity in steps.
        unit: what one step is worth.
        offset: what each counted value adds beyond its steps (the middle of a square's range), in steps.
    """

    component: Component
    rest_of: Component | None
    l1: int
    squared_l2: int
    unit: Fraction
    offset: int = 0

    def vector(self, cells: ExactCells) -> NDArray[np.generic]:
        """Return the exact vector, one row per part."""
        first = cells.numbers[self.component]
        if self.rest_of is not None:
            return np.stack([first, cells.numbers[self.rest_of] - first])
        if self.offset:
            # A square lies between 0 and its largest; taken from the middle it moves half as far, and the noisy
            # count gives the middle back. Python's own integers, since the product can leave 64 bits.
            present = cells.numbers[present_of(self.component)].astype(object)
            first = with_room(first.astype(object) - self.offset * present)
        return first[np.newaxis, :]


@dataclass(frozen=True, slots=True)
class Ranking:
    """A quantile or an extreme, chosen by rank in every group."""

    aggregate: Quantile | Extreme
    sensitivity: Fraction

    @property
    def number(self) -> FixedPointNumber:
        """Return the number that is ranked."""
        return self.aggregate.of


@dataclass(frozen=True, slots=True)
class MeasurementDesign:
    """All measurements of a question, and what one unit can change."""

    question: Question
    reach: Reach
    measurements: dict[str, Measurement]
    rankings: tuple[Ranking, ...]
    selects_keys: bool

    @property
    def parts(self) -> int:
        """Return between how many parts a price is shared."""
        return len(self.measurements) + len(self.rankings)

    @property
    def components(self) -> list[Component]:
        """Return what the engine has to compute."""
        needed: list[Component] = []
        for measurement in self.measurements.values():
            needed += [measurement.component, *([measurement.rest_of] if measurement.rest_of else [])]
            if measurement.offset:
                needed.append(present_of(measurement.component))
        return list(dict.fromkeys(needed))


def design(question: Question, contribution: Contribution) -> MeasurementDesign:
    """Return the measurements that a question needs."""
    selects = any(key.values is None for key in question.keys)
    check_size(question.keys)
    aggregates = [_by_unit(aggregate, contribution) for aggregate in question.aggregates]
    reach = contribution.reach(question, largest=max([1, *(_largest(item) for item in aggregates)]))
    _check(aggregates, contribution, selects=selects)
    builder = _Builder(reach, cells=bool(question.keys), person=contribution.is_person)
    # Means come first: a total of the same number is then put together from their parts, at no further price.
    for number in _numbers_to_center(aggregates):
        builder.moments(number, squares=_needs_squares(aggregates, number))
    for aggregate in aggregates:
        builder.add(aggregate)
    # Rows come last, since they can be had as the rest of a measurement of present values.
    builder.count_rows(aggregates, selects=selects)
    rankings = tuple(
        Ranking(item, _rank_sensitivity(item, reach, cells=bool(question.keys)))
        for item in dict.fromkeys(aggregates)
        if isinstance(item, Quantile | Extreme)
    )
    return MeasurementDesign(question, reach, builder.found, rankings, selects)


class _Builder:
    def __init__(self, reach: Reach, *, cells: bool, person: bool) -> None:
        self._reach, self._cells, self._person = reach, cells, person
        self.found: dict[str, Measurement] = {}
        self._centers: dict[str, int] = {}

    def moments(self, number: FixedPointNumber, *, squares: bool) -> None:
        """Measure how many values are present, their centered sum, and the sum of their squares."""
        text = Component.of_number("present", number).text
        if text not in self._centers:
            self._centers[text] = center_of(number)
            self._count(f"present {text}", Component.of_number("present", number))
            self._sum(number, center_of(number))
        if squares:
            self._squares(number)

    def add(self, aggregate: Aggregate) -> None:
        """Measure what an aggregate needs beyond what is measured already."""
        match aggregate:
            case Total(of=number):
                if Component.of_number("present", number).text not in self._centers:
                    self._sum(number, 0)
            case CountPresent(of=of):
                component = Component.of_value("present", of)
                self._count(f"present {component.text}", component)
            case CountDistinct(of=of):
                component = Component.of_value("distinct", of)
                most = 2 if self._reach.moves else self._reach.rows
                # All values of a unit can be in one group, so that L2 is no smaller than L1.
                self.found[f"distinct {component.text}"] = Measurement(component, None, most, most**2, Fraction(1))

    def count_rows(self, aggregates: list[Aggregate], *, selects: bool) -> None:
        """Measure rows, and units, in as few vectors as possible; chosen groups are chosen by their count of units."""
        by_units = CountUnits() in aggregates or (selects and self._person)
        if by_units:
            most = self._reach.groups * self._reach.scale if self._cells else self._reach.scale
            unit = Fraction(1, self._reach.scale)
            self.found["units"] = Measurement(UNITS, None, most, most * self._reach.scale, unit)
        if CountRows() not in aggregates and not (selects and not self._person):
            return
        present = next((name for name in self.found if name.startswith("present ")), None)
        # Where groups are chosen, the count of rows chooses them, and has to be a vector of its own.
        if present is None or selects:
            self._count("rows", ROWS)
            return
        # Present and missing are two cells even without groups: a replaced row can leave one and enter the
        # other.
        l1, squared = self._reach.histogram(cells=True)
        alone = self.found[present]
        self.found[present] = Measurement(alone.component, ROWS, l1, squared, alone.unit)

    def _count(self, name: str, component: Component) -> None:
        l1, squared = self._reach.histogram(cells=self._cells)
        self.found[name] = Measurement(component, None, l1, squared, Fraction(1, self._reach.scale))

    def _sum(self, number: FixedPointNumber, center: int) -> None:
        component = Component.of_number("total", number, center)
        l1, squared = self._reach.sums(number.low - center, number.high - center, cells=self._cells)
        unit = number.unit / self._reach.scale
        self.found[f"total {component.text}"] = Measurement(component, None, l1, squared, unit)

    def _squares(self, number: FixedPointNumber) -> None:
        component = Component.of_number("square", number, center_of(number))
        middle = component.largest // 2
        l1, squared = self._reach.sums(-middle, component.largest - middle, cells=self._cells)
        unit = number.unit**2 / self._reach.scale
        self.found[f"square {component.text}"] = Measurement(component, None, l1, squared, unit, middle)


def center_of(number: FixedPointNumber) -> int:
    """Return the middle of the bounds, in steps."""
    return (number.low + number.high) // 2


def present_of(component: Component) -> Component:
    """Return the component that counts the values which another one sums."""
    return Component("present", component.of, 0, 1, component.text)


def _by_unit(aggregate: Aggregate, contribution: Contribution) -> Aggregate:
    """Return the aggregate with units counted as rows where rows are the units."""
    return CountRows() if isinstance(aggregate, CountUnits) and not contribution.is_person else aggregate


def _numbers_to_center(aggregates: list[Aggregate]) -> Iterator[FixedPointNumber]:
    return (item.of for item in aggregates if isinstance(item, Mean | Variance | StandardDeviation))


def _needs_squares(aggregates: list[Aggregate], number: FixedPointNumber) -> bool:
    return any(isinstance(item, Variance | StandardDeviation) and item.of == number for item in aggregates)


def _largest(aggregate: Aggregate) -> int:
    match aggregate:
        case Variance(of=number) | StandardDeviation(of=number):
            return max(number.high - number.low, 1) ** 2
        case Total(of=number) | Mean(of=number):
            return max(abs(number.low), abs(number.high), number.high - number.low, 1)
        case _:
            return 1


def _rank_sensitivity(aggregate: Quantile | Extreme, reach: Reach, *, cells: bool) -> Fraction:
    total = reach.rows * reach.scale
    fraction = aggregate.q if isinstance(aggregate, Quantile) else Fraction(1)
    # A person's rows may be spread over groups; the moves in all of them together are those of the whole
    # weight.
    moved = max(fraction, 1 - fraction) * total
    if not reach.moves:
        return moved
    # In groups a replaced row leaves one ranking and enters another, and both losses add up.
    return 2 * moved if cells else Fraction(total)


def _check(aggregates: list[Aggregate], contribution: Contribution, *, selects: bool) -> None:
    if max(map(_largest, aggregates)) > _LARGEST_SQUARE:
        raise UnsafeQueryError(
            "The squares of these numbers could become too large to be computed exactly.",
            fix="narrow the numbers, such as LEAST(x, 1000), or round them: ROUND(x, -3).",
        )
    if not selects:
        return
    unanswered = [item for item in aggregates if isinstance(item, Quantile | Extreme | CountDistinct)]
    if unanswered:
        raise UnsafeQueryError(
            "Quantiles, extremes and counts of different values are not answered in groups that are chosen privately.",
            fix="state the groups: categories in the schema, or keys=[...]; or ask for counts, sums and means.",
        )
    if contribution.adjacency == "replace":
        raise UnsafeQueryError(
            "Groups are not chosen privately under the replace relation.",
            fix="state the groups, or protect rows under add_remove.",
        )
