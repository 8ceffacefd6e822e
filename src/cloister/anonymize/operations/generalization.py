"""Generalization: a value is replaced by a name that is true of it and of others (Samarati 2001).

A value that the hierarchy or the intervals do not cover is an error, never a wrong name: 24 is not "25-49". Integer
codes for names are no generalization: they are the same values in other letters, so nothing here makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from cloister.anonymize.operations.base import Context, Operation, hierarchy_for, operations
from cloister.anonymize.operations.cells import (
    MISSING,
    Integers,
    coded,
    column_of,
    decoded,
    floats_of,
    values_of,
    with_column,
)
from cloister.anonymize.operations.plain import name as column_name
from cloister.core.validation import check_count
from cloister.data.hierarchy import ROOT, Hierarchy
from cloister.data.interval_labels import IntervalIndex, first_overlap, interval_in
from cloister.errors import HierarchyError, ParameterError, ParameterTypeError


@operations.register("generalize")
@dataclass(frozen=True, slots=True, kw_only=True)
class Generalize(Operation):
    """Replace values by less precise names: a level of a hierarchy, chosen names of it, or intervals of numbers.

    Attributes:
        column: the column.
        level: how far up the hierarchy; missing values stay missing below the root.
        labels: instead of a level, the names to use, which together cover every value once.
        intervals: instead of a hierarchy, intervals such as ``"20-39"`` or ``"[20, 40)"`` that do not overlap; where
            two names with a dash share an end (``"20-40"``, ``"40-60"``), it belongs to the upper one.
        hierarchy: the hierarchy; that of the table's schema if it is left out.

    >>> import pyarrow as pa
    >>> bands = Generalize("salary", intervals=["0-50000", "50000-100000"])
    >>> bands.apply(pa.table({"salary": [56000]})).to_arrow()["salary"].to_pylist()
    ['50000-100000']
    """

    name = "generalize"

    column: str = field(kw_only=False)
    level: int | None = None
    labels: tuple[str, ...] = ()
    intervals: tuple[str, ...] = ()
    hierarchy: Hierarchy | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", column_name(self.column))
        object.__setattr__(self, "labels", _texts(self.labels, name="labels"))
        object.__setattr__(self, "intervals", _texts(self.intervals, name="intervals"))
        if (self.level is not None) + bool(self.labels) + bool(self.intervals) != 1:
            raise ParameterError(
                "Generalizing needs one of level, labels and intervals.",
                fix='write for example Generalize("age", level=2) or Generalize("age", intervals=["0-39", "40-110"]).',
            )
        if self.level is not None:
            check_count(self.level, name="level")
        if self.intervals:
            _check_intervals(self.intervals, self.hierarchy)

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:
        """Return the rows with the column generalized."""
        column = column_of(rows, self.column)
        if self.intervals:
            return with_column(rows, self.column, self._into_intervals(column))
        hierarchy: Hierarchy = self.hierarchy or hierarchy_for(context, self.column, "Generalization")
        distinct, codes = coded(column)
        names, ancestors = self._ancestors(hierarchy)
        leaves = self._encode(hierarchy, distinct)
        missing = names.index(ROOT) if names == (ROOT,) else MISSING
        found = np.append(ancestors[leaves], missing)[codes]
        return with_column(rows, self.column, decoded(names, found, pa.string()))

    def _encode(self, hierarchy: Hierarchy, distinct: pa.Array) -> Integers:
        try:
            return hierarchy.encode(values_of(distinct))
        except HierarchyError:
            raise HierarchyError(
                f'A value of "{self.column}" is not covered by its hierarchy.',
                fix="list them with hierarchy.uncovered(values), then add them to the hierarchy or mend the data.",
            ) from None

    def _ancestors(self, hierarchy: Hierarchy) -> tuple[tuple[str, ...], Integers]:
        """Return names, and for each leaf the place of the name to use."""
        if self.level is not None:
            return hierarchy.levels[_at_most(self.level, hierarchy)], hierarchy.codes_at(self.level)
        result = np.full(len(hierarchy.leaves), MISSING, dtype=np.int64)
        places = {leaf: place for place, leaf in enumerate(hierarchy.leaves)}
        for number, label in enumerate(self.labels):
            under = np.array([places[leaf] for leaf in hierarchy.leaves_under(label)])
            if (result[under] != MISSING).any():
                raise ParameterError(
                    f'The label "{label}" and another one cover the same values.', fix="drop one of them."
                )
            result[under] = number
        if (result == MISSING).any():
            uncovered = hierarchy.leaves[int(np.argmax(result == MISSING))]
            raise ParameterError(
                f'No label covers "{uncovered}" of the hierarchy.', fix="choose names that cover every value once."
            )
        return self.labels, result

    def _into_intervals(self, column: pa.Array) -> pa.Array:
        numbers = floats_of(column, self.column)
        parts = [(place, interval_in(label)) for place, label in enumerate(self.intervals)]
        index = IntervalIndex((place, part) for place, part in parts if part is not None)
        found = index.locate(numbers, otherwise=MISSING)
        if ((found == MISSING) & ~np.isnan(numbers)).any():
            raise HierarchyError(
                f'A value of "{self.column}" lies in none of the intervals.',
                fix="widen the intervals until every value lies in one: a wrong interval would be a false statement.",
            )
        return decoded(self.intervals, found, pa.string())


def _at_most(level: int, hierarchy: Hierarchy) -> int:
    hierarchy.codes_at(level)
    return level


def _check_intervals(intervals: Sequence[str], hierarchy: Hierarchy | None) -> None:
    if hierarchy is not None:
        raise ParameterError("intervals need no hierarchy.", fix="give either intervals or a hierarchy.")
    broken = next((label for label in intervals if interval_in(label) is None), None)
    if broken is not None:
        raise ParameterError(f'"{broken}" is not an interval.', fix='write intervals as "20-39", "[20, 40)" or ">=65".')
    overlap = first_overlap(intervals)
    if overlap is not None:
        raise ParameterError(
            f'The intervals "{overlap[0]}" and "{overlap[1]}" overlap, so that a value would have two names.',
            fix="choose intervals that do not overlap.",
        )


def _texts(value: object, *, name: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise ParameterTypeError(f"{name} is not a list of texts.", fix=f'write for example {name}=["20-39", "40-59"].')
    return tuple(value)
