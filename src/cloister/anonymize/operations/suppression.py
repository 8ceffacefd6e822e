"""Suppression of cells, records and columns: the value is gone, and nothing is put in its place.

A suppressed cell is missing, or ``*`` where that is asked for. It never becomes a value that does not occur otherwise:
that would be an invented fact, and easy to spot. What was suppressed is told to the custodian as counts only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from cloister.anonymize.operations._arrow_columns import column_of, rows_where, with_column, without_columns
from cloister.anonymize.operations.base import (
    SUPPRESSED,
    Operation,
    OperationContext,
    need_names,
    need_text,
    operations,
)
from cloister.core.construction import construct
from cloister.data.columns import Column
from cloister.errors import ParameterError


@operations.register("suppress_cells")
@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressCells(Operation):
    """Make cells say nothing, in all rows or where a condition holds.

    Attributes:
        columns: the columns.
        where: a SQL condition on rows, such as ``"age > 89"``; all rows if it is left out.
        marker: None makes the cells missing; ``"*"`` writes ``*`` and makes the columns text.
    """

    name = "suppress_cells"

    columns: tuple[str, ...] = field(kw_only=False)
    where: str | None = None
    marker: str | None = None

    def __init__(
        self,
        columns: str | Sequence[str],
        *,
        where: str | None = None,
        marker: str | None = None,
    ) -> None:
        construct(self, columns=columns, where=where, marker=marker)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", need_names(self.columns))
        if self.marker not in (None, SUPPRESSED):
            raise ParameterError(
                "A suppressed cell may not look like a value.", fix='use marker="*", or leave it out for missing cells.'
            )

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with the cells suppressed."""
        mask = pa.array(rows_where(rows, self.where))
        for name in self.columns:
            column = column_of(rows, name)
            kept = column if self.marker is None else _as_text(column)
            rows = with_column(rows, name, pc.if_else(mask, pa.scalar(self.marker, kept.type), kept))
        return rows

    def restate(self, column: Column) -> Column:
        """Return the column as it was when cells are missing now: the others are in its domain."""
        return column if self.marker is None else Operation.restate(self, column)


@operations.register("suppress_records")
@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressRecords(Operation):
    """Drop the rows for which a condition holds.

    Attributes:
        where: a SQL condition on rows, such as ``"age < 18"``.
    """

    name = "suppress_records"

    where: str

    def __post_init__(self) -> None:
        need_text(self.where, name="where")

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the other rows."""
        return rows.filter(pa.array(~rows_where(rows, self.where)))


@operations.register("drop_column")
@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn(Operation):
    """Drop whole columns, such as names.

    Attributes:
        columns: the columns.
    """

    name = "drop_column"

    columns: tuple[str, ...] = field(kw_only=False)

    def __init__(
        self,
        columns: str | Sequence[str],
    ) -> None:
        construct(self, columns=columns)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", need_names(self.columns))

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows without the columns."""
        for name in self.columns:
            column_of(rows, name)
        if len(self.columns) == rows.num_columns:
            raise ParameterError("Every column would be dropped.", fix="keep at least one column.")
        return without_columns(rows, self.columns)


def _as_text(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())
