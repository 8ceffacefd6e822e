"""What an operation did, for the custodian: rows removed, cells changed, cells suppressed. The counts are protected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cloister.anonymize.operations.cells import column_of, is_number

SUPPRESSED = "*"
"""What stands for a suppressed cell in a column of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLog:
    """What one operation did to a table.

    Attributes:
        operation: the operation's name.
        truthful: whether every released cell is still true, if less precise.
        rows: how many rows there were.
        rows_removed: how many rows were dropped.
        columns_dropped: which columns were dropped.
        cells_changed: per column, in how many cells another value stands than before; equal ones do not count.
        cells_suppressed: per column, how many of these say nothing any more.
        caution: what a reader of the release must know about the operation.
    """

    operation: str
    truthful: bool
    rows: int
    rows_removed: int
    columns_dropped: tuple[str, ...]
    cells_changed: Mapping[str, int]
    cells_suppressed: Mapping[str, int]
    caution: str = ""

    def share_changed(self, column: str) -> float:
        """Return the share of rows in which a column changed: for swaps, the swap rate."""
        return self.cells_changed.get(column, 0) / self.rows if self.rows else 0.0

    @property
    def suppression_rate(self) -> float:
        """Return the share of rows that were dropped."""
        return self.rows_removed / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        parts = [f'column "{name}" dropped' for name in self.columns_dropped]
        if self.rows_removed:
            parts.append(f"{self.rows_removed} of {self.rows} rows removed")
        parts += [f'{self._cells(name, count)} in "{name}"' for name, count in self.cells_changed.items() if count]
        truth = "" if self.truthful else " [not truthful]"
        return f"{self.operation}{truth}: {'; '.join(parts) or 'nothing changed'}"

    def _cells(self, name: str, count: int) -> str:
        suppressed = self.cells_suppressed.get(name, 0)
        return f"{count} of {self.rows} cells {'suppressed' if suppressed == count else 'changed'}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "operation": self.operation,
            "truthful": self.truthful,
            "rows": self.rows,
            "rows_removed": self.rows_removed,
            "columns_dropped": list(self.columns_dropped),
            "cells_changed": dict(self.cells_changed),
            "cells_suppressed": dict(self.cells_suppressed),
            "caution": self.caution,
        }


def compare(before: pa.Table, after: pa.Table, *, operation: str, truthful: bool, caution: str) -> StepLog:
    """Return what happened between two tables: rows were dropped, or cells changed in their places."""
    removed = before.num_rows - after.num_rows
    shared = [] if removed else [name for name in after.column_names if name in before.column_names]
    changed, suppressed = {}, {}
    for name in shared:
        old, new = column_of(before, name), column_of(after, name)
        if old is new or old.equals(new):
            continue
        differs = _differs(old, new)
        changed[name] = _count(differs)
        suppressed[name] = _count(pc.and_(differs, _says_nothing(new)))
    return StepLog(
        operation=operation,
        truthful=truthful,
        rows=before.num_rows,
        rows_removed=removed,
        columns_dropped=tuple(name for name in before.column_names if name not in after.column_names),
        cells_changed=changed,
        cells_suppressed=suppressed,
        caution=caution,
    )


def _differs(old: pa.Array, new: pa.Array) -> pa.Array:
    if old.type != new.type:
        common = pa.float64() if is_number(old) and is_number(new) else pa.string()
        old, new = old.cast(common, safe=False), new.cast(common, safe=False)
    unequal = pc.fill_null(pc.not_equal(old, new), False)  # noqa: FBT003  # Arrow's signature
    return pc.or_(unequal, pc.xor(old.is_null(), new.is_null()))


def _says_nothing(column: pa.Array) -> pa.Array:
    empty = column.is_null()
    if pa.types.is_string(column.type):
        return pc.or_(empty, pc.fill_null(pc.equal(column, SUPPRESSED), False))  # noqa: FBT003  # Arrow's signature
    return empty


def _count(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)
