"""A released table that checks, whenever its rows are read, that the original is still the one that was counted.

Rows are recoded in their engine when they are asked for. A file or a database table may have changed since its classes
were found and checked: a class may have lost rows, and new rows were in no class. After the rows were read, and before
they are handed out or a file gets its name, the original is counted again; any difference is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cloister.anonymize.cells import Cells
from cloister.data.engines.base import Engine
from cloister.data.table import Table
from cloister.errors import CloisterError, DataError

__all__ = ["ReleasedTable"]


class ReleasedTable(Table):
    """The rows of a release; reading them checks that the promise was made about the same rows."""

    def __init__(self, engine: Engine, *, schema: Any, promised: Cells, count: Callable[[], Cells]) -> None:
        super().__init__(engine, schema=schema)
        self._promised = promised
        self._count = count

    def with_schema(self, schema: Any) -> ReleasedTable:  # a Schema or None
        """Return the same rows under another schema."""
        return ReleasedTable(self._engine, schema=schema, promised=self._promised, count=self._count)

    def _verify_read(self) -> None:
        try:
            is_same = _are_equal(self._promised, self._count())
        except CloisterError:
            is_same = False
        if not is_same:
            raise DataError(
                "The original has changed since the release was made, so that its promise would not hold.",
                fix="anonymize it again, or copy it first to a place where nobody changes it.",
            )


def _are_equal(before: Cells, after: Cells) -> bool:
    """Return whether two counts of a table, one after the other, found the same rows."""
    return _coding(before) == _coding(after) and all(
        np.array_equal(first, second) for first, second in zip(_counts(before), _counts(after), strict=True)
    )


def _coding(cells: Cells) -> list[Any]:
    return [(source.name, source.storage, source.values) for source in cells.sources]


def _counts(cells: Cells) -> list[Any]:
    subjects = np.zeros(0) if cells.record_subjects is None else cells.record_subjects
    coding = [source.codes for source in cells.sources]
    return [
        *coding,
        cells.codes,
        cells.weights,
        cells.record_cells,
        cells.record_weights,
        cells.record_values,
        subjects,
    ]
