"""What has to be measured for a question: as few noisy vectors as its aggregates need, each with its sensitivity.

Aggregates share measurements. A mean needs how many values are present and their sum around the middle of the bounds,
which moves half as far as a plain sum; a total that is asked beside a mean is put together from the same two; counting
all rows beside present values takes one measurement of (present, missing), since a row is in one of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cloister.errors import UnsafeQueryError
from cloister.mechanisms.base import with_room
from cloister.queries._cells import Component, ExactCells, check_size
from cloister.queries._contribution import Contribution, Reach
from cloister.queries._question import FixedPointNumber, Question, RankTarget

__all__ = ["Measurement", "MeasurementDesign", "MeasurementNeeds", "Ranking", "design"]

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
    """A number that is chosen by its rank in every group."""

    target: RankTarget
    sensitivity: Fraction

    @property
    def number(self) -> FixedPointNumber:
        """Return the number that is ranked."""
        return self.target.number


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
    def depends_on_size(self) -> bool:
        """Return whether the error of an answer depends on how many rows are counted: sums are divided by counts."""
        return any(
            item.component.kind == "total" and f"present {item.component.text}" in self.measurements
            for item in self.measurements.values()
        )

    @property
    def components(self) -> list[Component]:
        """Return what the engine has to compute."""
        needed: list[Component] = []
        for measurement in self.measurements.values():
            needed += [measurement.component, *([measurement.rest_of] if measurement.rest_of else [])]
            if measurement.offset:
                needed.append(present_of(measurement.component))
        return list(dict.fromkeys(needed))


class MeasurementNeeds:
    """Collects what the aggregates of a question need measured, whatever it takes to measure it; see `design`."""

    def __init__(self, *, is_person: bool) -> None:
        self._is_person = is_person
        self.counts_rows, self.counts_units = False, False
        self.largest = 1
        self.centered: dict[str, tuple[FixedPointNumber, bool]] = {}
        self.others: list[tuple[Component, FixedPointNumber | None]] = []
        self.targets: dict[RankTarget, None] = {}

    def rows(self) -> None:
        """Count rows."""
        self.counts_rows = True

    def units(self) -> None:
        """Count units of privacy, which are rows where no persons are told apart."""
        if self._is_person:
            self.counts_units = True
        else:
            self.counts_rows = True

    def present(self, of: exp.Expression) -> None:
        """Count the rows in which something is not NULL."""
        self.others.append((Component.of_value("present", of), None))

    def distinct(self, of: exp.Expression) -> None:
        """Count the different values of something."""
        self.others.append((Component.of_value("distinct", of), None))

    def total(self, number: FixedPointNumber) -> None:
        """Sum a number."""
        self.others.append((Component.of_number("total", number), number))
        self._reach_to(abs(number.low), abs(number.high), number.high - number.low)

    def moments(self, number: FixedPointNumber, *, squares: bool = False) -> None:
        """Count the values of a number, sum them around the middle of the bounds, and sum the squares of that."""
        known = self.centered.get(number.text)
        self.centered[number.text] = (number, squares) if known is None else (known[0], known[1] or squares)
        if squares:
            self._reach_to(max(number.high - number.low, 1) ** 2)
        else:
            self._reach_to(abs(number.low), abs(number.high), number.high - number.low)

    def rank(self, target: RankTarget) -> None:
        """Choose a number by its rank."""
        self.targets[target] = None

    @property
    def answers_public_groups_only(self) -> bool:
        """Return whether something cannot be had in groups that are chosen privately."""
        return bool(self.targets) or any(part.kind == "distinct" for part, _ in self.others)

    def _reach_to(self, *steps: int) -> None:
        """Note how large the numbers are that one row adds."""
        self.largest = max(self.largest, *steps)


def design(question: Question, contribution: Contribution) -> MeasurementDesign:
    """Return the measurements that a question needs."""
    selects = any(key.values is None for key in question.keys)
    check_size(question.keys)
    needs = MeasurementNeeds(is_person=contribution.is_person)
    for aggregate in question.aggregates:
        aggregate.measure(needs)
    reach = contribution.reach(question, largest=needs.largest)
    _check(needs, contribution, selects=selects)
    cells = bool(question.keys)
    builder = _Builder(reach, cells=cells, person=contribution.is_person)
    # Means come first: a total of the same number is then put together from their parts, at no further price.
    for centered, squares in needs.centered.values():
        builder.moments(centered, squares=squares)
    for component, number in needs.others:
        if number is None:
            builder.count(component)
        elif number.text not in needs.centered:
            builder.sum(number, 0)
    # Rows come last, since they can be had as the rest of a measurement of present values.
    builder.count_rows(needs, selects=selects)
    rankings = tuple(Ranking(target, reach.ranks(target.fraction, cells=cells)) for target in needs.targets)
    return MeasurementDesign(question, reach, builder.found, rankings, selects)


class _Builder:
    def __init__(self, reach: Reach, *, cells: bool, person: bool) -> None:
        self._reach, self._cells, self._person = reach, cells, person
        self.found: dict[str, Measurement] = {}

    def moments(self, number: FixedPointNumber, *, squares: bool) -> None:
        """Measure how many values are present, their centered sum, and the sum of their squares."""
        self.count(Component.of_number("present", number))
        self.sum(number, number.center)
        if squares:
            self._squares(number)

    def count(self, component: Component) -> None:
        """Measure how many rows, present values or different values there are."""
        if component.kind != "distinct":
            l1, squared = self._reach.histogram(cells=self._cells)
            self.found[component.name] = Measurement(component, None, l1, squared, Fraction(1, self._reach.scale))
            return
        most = 2 if self._reach.moves else self._reach.rows
        # All values of a unit can be in one group, so that L2 is no smaller than L1.
        self.found[component.name] = Measurement(component, None, most, most**2, Fraction(1))

    def sum(self, number: FixedPointNumber, center: int) -> None:
        """Measure a sum around a center."""
        component = Component.of_number("total", number, center)
        l1, squared = self._reach.sums(number.low - center, number.high - center, cells=self._cells)
        self.found[component.name] = Measurement(component, None, l1, squared, number.unit / self._reach.scale)

    def count_rows(self, needs: MeasurementNeeds, *, selects: bool) -> None:
        """Measure rows, and units, in as few vectors as possible; chosen groups are chosen by their count of units."""
        if needs.counts_units or (selects and self._person):
            most = self._reach.groups * self._reach.scale if self._cells else self._reach.scale
            unit = Fraction(1, self._reach.scale)
            self.found["units"] = Measurement(UNITS, None, most, most * self._reach.scale, unit)
        if not needs.counts_rows and not (selects and not self._person):
            return
        present = next((name for name in self.found if name.startswith("present ")), None)
        # Where groups are chosen, the count of rows chooses them, and has to be a vector of its own.
        if present is None or selects:
            self.count(ROWS)
            return
        # Present and missing are two cells even without groups: a replaced row can leave one and enter the
        # other.
        l1, squared = self._reach.histogram(cells=True)
        alone = self.found[present]
        self.found[present] = Measurement(alone.component, ROWS, l1, squared, alone.unit)

    def _squares(self, number: FixedPointNumber) -> None:
        component = Component.of_number("square", number, number.center)
        middle = component.largest // 2
        l1, squared = self._reach.sums(-middle, component.largest - middle, cells=self._cells)
        unit = number.unit**2 / self._reach.scale
        self.found[component.name] = Measurement(component, None, l1, squared, unit, middle)


def present_of(component: Component) -> Component:
    """Return the component that counts the values which another one sums."""
    return Component("present", component.of, 0, 1, component.text)


def _check(needs: MeasurementNeeds, contribution: Contribution, *, selects: bool) -> None:
    if needs.largest > _LARGEST_SQUARE:
        raise UnsafeQueryError(
            "The squares of these numbers could become too large to be computed exactly.",
            fix="narrow the numbers, such as LEAST(x, 1000), or round them: ROUND(x, -3).",
        )
    if not selects:
        return
    if needs.answers_public_groups_only:
        raise UnsafeQueryError(
            "Quantiles, extremes and counts of different values are not answered in groups that are chosen privately.",
            fix="state the groups: categories in the schema, or keys=[...]; or ask for counts, sums and means.",
        )
    if contribution.adjacency == "replace":
        raise UnsafeQueryError(
            "Groups are not chosen privately under the replace relation.",
            fix="state the groups, or protect rows under add_remove.",
        )
