"""Generalization: a value is replaced by something that is true of it and of others (Samarati 2001).

Names: a value that the hierarchy or the intervals do not cover is an error, never a wrong name: 24 is not "25-49".
Integer codes for names are no generalization: they are the same values in other letters, so nothing here makes them.

Numbers, by top coding, bottom coding and rounding, say less and stay true when read as what they stand for. A top-coded
90 stands for "90 or more", a value rounded to a base for everything nearer to it than to its neighbors. Say so where
the table is published. Limits should be public round numbers, not quantiles of the protected data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cloister.anonymize.operations._arrow_columns import (
    MISSING,
    Integers,
    column_of,
    decode_column,
    encode_column,
    floats_of,
    is_moment,
    is_number,
    need_numbers,
    values_of,
    with_column,
)
from cloister.anonymize.operations.base import (
    Operation,
    OperationContext,
    hierarchy_for,
    need_column_name,
    need_text,
    operations,
)
from cloister.core import exact
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.validation import check_count, check_positive
from cloister.data.columns import Column, clean_moment
from cloister.data.hierarchy import ROOT, Hierarchy
from cloister.data.interval_labels import IntervalIndex, first_overlap, interval_in
from cloister.data.values import text_of
from cloister.errors import CloisterError, DataError, HierarchyError, ParameterError, ParameterTypeError


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

    def __init__(
        self,
        column: str,
        *,
        level: int | None = None,
        labels: Sequence[str] = (),
        intervals: Sequence[str] = (),
        hierarchy: Hierarchy | None = None,
    ) -> None:
        construct(self, column=column, level=level, labels=labels, intervals=intervals, hierarchy=hierarchy)

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", need_column_name(self.column))
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

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:
        """Return the rows with the column generalized."""
        column = column_of(rows, self.column)
        if self.intervals:
            return with_column(rows, self.column, self._into_intervals(column))
        hierarchy: Hierarchy = self.hierarchy or hierarchy_for(context, self.column, "Generalization")
        distinct, codes = encode_column(column)
        names, ancestors = self._ancestors(hierarchy)
        leaves = self._encode(hierarchy, distinct)
        missing = names.index(ROOT) if names == (ROOT,) else MISSING
        # A missing cell has the code -1, and picks the entry appended at the end.
        found = np.append(ancestors[leaves], missing)[codes]
        return with_column(rows, self.column, decode_column(names, found, pa.string()))

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
        # A missing number lies in no interval either, and that is not wrong.
        if ((found == MISSING) & ~np.isnan(numbers)).any():
            raise HierarchyError(
                f'A value of "{self.column}" lies in none of the intervals.',
                fix="widen the intervals until every value lies in one: a wrong interval would be a false statement.",
            )
        return decode_column(self.intervals, found, pa.string())


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


Limit: TypeAlias = "Fraction | date"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coding(Operation):
    """Replace what lies beyond a limit by the limit, or by a label.

    Attributes:
        column: a column of numbers, dates or times.
        limit: the limit: a number, or a date as ISO text.
        label: a text to write instead of the limit, such as ``"90+"``; the column becomes text.
    """

    column: str = field(kw_only=False)
    limit: Limit
    label: str | None = None

    is_beyond: ClassVar[Any] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", need_column_name(self.column))
        object.__setattr__(self, "limit", _limit(self.limit))
        if self.label is not None:
            need_text(self.label, name="label")

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with the column coded."""
        column = column_of(rows, self.column)
        limit = _scalar(self.limit, column, self.column)
        beyond = pc.fill_null(self.is_beyond(column, limit), False)  # noqa: FBT003  # Arrow's signature
        if self.label is None:
            return with_column(rows, self.column, pc.if_else(beyond, limit, column))
        distinct, codes = encode_column(column)
        texts = decode_column(map(text_of, distinct.to_pylist()), codes, pa.string())
        return with_column(rows, self.column, pc.if_else(beyond, pa.scalar(self.label), texts))

    def restate(self, column: Column) -> Column:
        """Return the column as it was where values stay in its domain."""
        return column if self.label is None else Operation.restate(self, column)


@operations.register("top_code")
@dataclass(frozen=True, slots=True, kw_only=True)
class TopCode(_Coding):
    """Replace everything above a limit by the limit, which then stands for "this or more".

    >>> import pyarrow as pa
    >>> TopCode("age", limit=90).apply(pa.table({"age": [34, 101]})).to_arrow()["age"].to_pylist()
    [34, 90]
    """

    name = "top_code"
    is_beyond = staticmethod(pc.greater)

    def __init__(
        self,
        column: str,
        *,
        limit: Number | date,
        label: str | None = None,
    ) -> None:
        construct(self, column=column, limit=limit, label=label)


@operations.register("bottom_code")
@dataclass(frozen=True, slots=True, kw_only=True)
class BottomCode(_Coding):
    """Replace everything below a limit by the limit, which then stands for "this or less"."""

    name = "bottom_code"
    is_beyond = staticmethod(pc.less)

    def __init__(
        self,
        column: str,
        *,
        limit: Number | date,
        label: str | None = None,
    ) -> None:
        construct(self, column=column, limit=limit, label=label)


@operations.register("round")
@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Operation):
    """Round numbers to the nearest multiple of a base, halves to the even multiple.

    Attributes:
        column: a column of numbers.
        base: the distance between rounded numbers, such as 1000.
    """

    name = "round"

    column: str = field(kw_only=False)
    base: Fraction

    def __init__(
        self,
        column: str,
        *,
        base: Number,
    ) -> None:
        construct(self, column=column, base=base)

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", need_column_name(self.column))
        object.__setattr__(self, "base", check_positive(self.base, name="base"))

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with the column rounded."""
        column = need_numbers(column_of(rows, self.column), self.column)
        if pa.types.is_integer(column.type) and self.base.denominator == 1:
            return with_column(rows, self.column, self._whole(column))
        base = float(self.base)
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            steps = numbers / base
        far = np.isinf(steps)
        # A quotient beyond the doubles belongs to a number so large that rounding would not change it.
        rounded = np.where(far, numbers, np.rint(steps) * base)
        # Adding zero turns -0.0 into 0.0.
        return with_column(
            rows, self.column, pa.array(rounded + 0.0, mask=column.is_null().to_numpy(zero_copy_only=False))
        )

    def _whole(self, column: pa.Array) -> pa.Array:
        """Return whole numbers rounded without a detour through floats."""
        base, missing = int(self.base), column.is_null().to_numpy(zero_copy_only=False)
        numbers = np.asarray(column.fill_null(0), dtype=np.int64)
        if base >= 2**62 or (numbers.size and max(abs(int(numbers.min())), abs(int(numbers.max()))) + base >= 2**63):
            raise DataError(f'Column "{self.column}" cannot be rounded within 64 bits.', fix="use a smaller base.")
        steps, rest = np.divmod(numbers, base)
        # Twice the remainder could pass 64 bits.
        up = (rest > base - rest) | ((rest == base - rest) & (steps % 2 == 1))
        return pa.array((steps + up) * base, mask=missing)


def _limit(value: object) -> Limit:
    if isinstance(value, date):
        return value
    try:
        return exact.number(value, name="limit")
    except CloisterError:
        if isinstance(value, str):
            return clean_moment(value)
        raise


def _scalar(limit: Limit, column: pa.Array, name: str) -> pa.Scalar:
    if isinstance(limit, date) != is_moment(column):
        raise DataError(
            f'The limit of "{name}" is of another kind than the column.',
            fix="use a number for numbers, and a date for dates and times.",
        )
    if isinstance(limit, date):
        as_time = datetime(limit.year, limit.month, limit.day)  # times here have no zone
        exactly = limit if isinstance(limit, datetime) else as_time
        return pa.scalar(exactly if pa.types.is_timestamp(column.type) else limit, column.type)
    if not is_number(column):  # infinite numbers are welcome: coding brings them back to a limit
        need_numbers(column, name)
    if pa.types.is_integer(column.type) and limit.denominator != 1:
        raise ParameterError(
            f'"{name}" holds whole numbers, and the limit is none.', fix="use a whole number, or a label=."
        )
    return pa.scalar(int(limit) if pa.types.is_integer(column.type) else float(limit), column.type)
