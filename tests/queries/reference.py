"""A slow and obvious reference of the exact core: plain Python over rows, whole numbers, no SQL."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from cloister.queries._contribution import Contribution, Reach

Group = tuple[Any, ...]
Table = dict[Group, int]


@dataclass(frozen=True)
class Row:
    """What a question sees of one row: whom it is about, its group, its number in steps, and its place in the order."""

    person: Any
    group: Group
    steps: int | None = None
    value: Any = None
    order: Any = None


def steps_of(item: Any, *, bounds: tuple[Any, Any], unit: Fraction) -> int | None:
    """Return a number clamped and rounded half up to whole steps; None if it is missing."""
    if item is None or (isinstance(item, float) and math.isnan(item)):
        return None
    low, high = map(Fraction, bounds)
    inside = high if item == math.inf else low if item == -math.inf else min(max(Fraction(item), low), high)
    return math.floor(inside / unit + Fraction(1, 2))


@dataclass(frozen=True)
class Reference:
    """The numbers of every group that occurs. Without a person every row counts once, in whole rows."""

    rows: list[Row]
    contribution: Contribution
    reach: Reach
    by_person: bool
    chooses_groups: bool = False
    looks_at_number: bool = True

    def counts(self, *, with_units: bool = False) -> Table:
        return _added((row.group, weight) for row, weight in self._counted(with_units=with_units))

    def present(self, *, with_units: bool = False) -> Table:
        counted = self._counted(with_units=with_units)
        return _added((row.group, weight) for row, weight in counted if row.steps is not None)

    def totals(self, center: int, power: int, *, with_units: bool = False) -> Table:
        return _added(
            (row.group, weight * (row.steps - center) ** power)
            for row, weight in self._counted(with_units=with_units)
            if row.steps is not None
        )

    def unit_counts(self) -> Table:
        """Return how many persons there are in each group, of those groups that are kept, by weight."""
        found: list[tuple[Group, int]] = []
        for own in self._persons():
            groups = self._kept(self._bounded(own))
            few = len(groups) <= self.reach.groups
            share = self.reach.scale if few else self.reach.scale * self.reach.groups // len(groups)
            found += [(group, share) for group in groups]
        return _added(found)

    def distinct(self) -> Table:
        """Return how many different values there are; each person brings a number of (group, value) pairs."""
        if not self.by_person:
            pairs = {(row.group, row.value) for row in self.rows if row.value is not None}
            return _added((group, 1) for group, _ in pairs)
        brought: set[tuple[Group, Any]] = set()
        for own in self._persons():
            pairs = {(row.group, row.value) for row in own if row.value is not None}
            first = sorted(pairs, key=lambda pair: _ordered([*pair[0], pair[1]]))
            brought |= set(first[: self.reach.rows])
        return _added((group, 1) for group, _ in brought)

    def ranks(self) -> dict[Group, dict[int, int]]:
        found: dict[Group, dict[int, int]] = {}
        for own in self._persons():
            kept = self._bounded(own)
            for row in kept:
                weight = self._share(len(kept))
                if row.steps is not None and weight:
                    at = found.setdefault(row.group, {})
                    at[row.steps] = at.get(row.steps, 0) + weight
        return found

    def units(self) -> Table:
        return _added((group, 1) for own in self._persons() for group in {row.group for row in own})

    # Weights ---------------------------------------------------------------------------------------------------------

    def _counted(self, *, with_units: bool) -> Iterable[tuple[Row, int]]:
        for own in self._persons():
            rows = self._bounded(own)
            if self.by_person and (with_units or self.chooses_groups or self.reach.per_group < self.reach.rows):
                yield from self._nested(rows)
            else:
                yield from ((row, self._share(len(rows))) for row in rows)

    def _nested(self, rows: list[Row]) -> Iterable[tuple[Row, int]]:
        reach, groups = self.reach, self._kept(rows)
        caps = reach.per_group < reach.rows
        capped = {group: min(len(own), reach.per_group) if caps else len(own) for group, own in groups.items()}
        total = sum(capped.values())
        for group, own in groups.items():
            part = Fraction(reach.scale * min(total, reach.rows), total) * Fraction(capped[group], len(own))
            yield from ((row, math.floor(part)) for row in own)

    def _share(self, rows: int) -> int:
        if not self.reach.is_weighted:
            return self.reach.scale
        return math.floor(self.reach.scale * min(Fraction(1), Fraction(self.reach.rows, rows)))

    def _persons(self) -> list[list[Row]]:
        if not self.by_person:
            return [[row] for row in self.rows]
        named = [row for row in self.rows if row.person is not None]
        return [list(own) for _, own in groupby(sorted(named, key=lambda row: row.person), key=lambda row: row.person)]

    def _bounded(self, own: list[Row]) -> list[Row]:
        """Return the rows of a person that stay: the first in the order, then by what the question looks at."""
        if not self.by_person or self.contribution.bounding == "weight":
            return own

        def place(row: Row) -> tuple[Any, ...]:
            seen = [*row.group, *([row.steps] if self.looks_at_number else [])]
            first = [] if self.contribution.order is None else [row.order]
            shuffled = [_digest([row.person, *seen])] if self.contribution.bounding == "sample" else []
            return _ordered([*first, *shuffled, *seen])

        return sorted(own, key=place)[: self.reach.rows]

    def _kept(self, own: list[Row]) -> dict[Group, list[Row]]:
        groups: dict[Group, list[Row]] = {}
        for row in own:
            groups.setdefault(row.group, []).append(row)
        if not self.chooses_groups or not own:
            return groups
        first = sorted(groups, key=lambda group: (_digest([own[0].person, *group]), _ordered(group)))
        return {group: groups[group] for group in first[: self.reach.groups]}


def _ordered(items: Iterable[Any]) -> tuple[Any, ...]:
    """Return a sorting key in which missing values are last."""
    return tuple((item is None, 0 if item is None else item) for item in items)


def _digest(items: Iterable[Any]) -> str:
    text = "".join(f"{'' if item is None else item}|" for item in items)
    return hashlib.md5(text.encode()).hexdigest()


def _added(pairs: Iterable[tuple[Hashable, int]]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for key, number in pairs:
        found[key] = found.get(key, 0) + number
    return found
