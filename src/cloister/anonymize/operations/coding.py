"""Top coding, bottom coding and rounding: numbers that say less and stay true when read as what they stand for.

A top-coded 90 stands for "90 or more", a value rounded to a base for everything nearer to it than to its neighbors.
Say so where the table is published. Limits should be public round numbers, not quantiles of the protected data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cloister.anonymize.operations.base import Context, Operation, need_text, operations
from cloister.anonymize.operations.cells import (
    coded,
    column_of,
    decoded,
    is_moment,
    is_number,
    need_numbers,
    with_column,
)
from cloister.anonymize.operations.plain import name as column_name
from cloister.core import exact
from cloister.core.validation import check_positive
from cloister.data.columns import Column, clean_moment
from cloister.data.values import text_of
from cloister.errors import CloisterError, DataError, ParameterError

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
        object.__setattr__(self, "column", column_name(self.column))
        object.__setattr__(self, "limit", _limit(self.limit))
        if self.label is not None:
            need_text(self.label, name="label")

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with the column coded."""
        column = column_of(rows, self.column)
        limit = _scalar(self.limit, column, self.column)
        beyond = pc.fill_null(self.is_beyond(column, limit), False)  # noqa: FBT003  # Arrow's signature
        if self.label is None:
            return with_column(rows, self.column, pc.if_else(beyond, limit, column))
        distinct, codes = coded(column)
        texts = decoded(map(text_of, distinct.to_pylist()), codes, pa.string())
        return with_column(rows, self.column, pc.if_else(beyond, pa.scalar(self.label), texts))

    def restate(self, column: Column) -> Column:
        """Return the column as it was where values stay in its domain."""
        return column if self.label is None else Operation.restate(self, column)


@operations.register("top_code")
@dataclass(frozen=True, slots=True, kw_only=True)
class TopCode(_Coding):
    """Replace everything above a limit by the limit, which then stands for "this or more".

    >>> TopCode("age", limit=90).apply(pa.table({"age": [34, 101]})).to_arrow()["age"].to_pylist()
    [34, 90]
    """

    name = "top_code"
    is_beyond = staticmethod(pc.greater)


@operations.register("bottom_code")
@dataclass(frozen=True, slots=True, kw_only=True)
class BottomCode(_Coding):
    """Replace everything below a limit by the limit, which then stands for "this or less"."""

    name = "bottom_code"
    is_beyond = staticmethod(pc.less)


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", column_name(self.column))
        object.__setattr__(self, "base", check_positive(self.base, name="base"))

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with the column rounded."""
        column = need_numbers(column_of(rows, self.column), self.column)
        if pa.types.is_integer(column.type) and self.base.denominator == 1:
            return with_column(rows, self.column, self._whole(column))
        base = float(self.base)
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            steps = numbers / base
        far = np.isinf(steps)
        rounded = np.where(far, numbers, np.rint(steps) * base)
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
