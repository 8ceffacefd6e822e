"""Answers under inference control: exact or treated numbers that promise nothing, and say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from cloister.core.guarantees import NoGuarantee
from cloister.core.result import Result
from cloister.data.bins import Interval
from cloister.errors import ParameterError, did_you_mean
from cloister.queries.answers import plain, show_number

__all__ = ["NOT_PRIVATE", "ControlledAnswer", "ControlledFrame"]

NOT_PRIVATE = NoGuarantee(
    reason="inference control refuses questions that are known to be harmful, and is not differential privacy"
)
"""What every answer under inference control promises."""

MISSING = "suppressed"
"""What is printed for a number that is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledAnswer(Result):
    """One number, or the range that it is in.

    Attributes:
        name: what was asked, such as ``mean of salary``.
        value: the number, the range, or None where there is none.
        notes: what the reader has to know, in words.
    """

    schema: ClassVar[str] = "cloister.controlled_answer/1"

    name: str
    value: Any  # a number, a range or None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{_text(self.value)}, {self.guarantee.brief()}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            (self.name, str(self)),
            ("promise", self.guarantee.explain()),
            *(("note", note) for note in self.notes),
        )

    def _fields(self) -> dict[str, Any]:
        return {"name": self.name, "value": plain(self.value), "notes": list(self.notes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledFrame(Result):
    """A table of numbers by group; a number that is not shown is None.

    Attributes:
        names: the columns.
        cells: the values of each column.
        keys: which columns are groups.
        notes: what the reader has to know, in words.
    """

    schema: ClassVar[str] = "cloister.controlled_frame/1"

    names: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...] = field(repr=False)
    keys: tuple[bool, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.cells[0]) if self.cells else 0

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        if name not in self.names:
            raise ParameterError(
                f'The answer has no column "{name}".{did_you_mean(str(name), self.names)}',
                fix=f"use one of {', '.join(self.names)}.",
            )
        return self.cells[self.names.index(name)]

    @property
    def suppressed(self) -> int:
        """Return how many numbers are not shown."""
        return sum(
            value is None
            for column, is_key in zip(self.cells, self.keys, strict=True)
            if not is_key
            for value in column
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values."""
        return [dict(zip(self.names, map(plain, row), strict=True)) for row in zip(*self.cells, strict=True)]

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table; ranges are texts."""
        arrays = [pa.array([_stored(value) for value in column]) for column in self.cells]
        return pa.table(arrays, names=list(self.names))

    def __str__(self) -> str:
        columns = [
            [name, *(str(value) if is_key else _text(value) for value in column)]
            for name, column, is_key in zip(self.names, self.cells, self.keys, strict=True)
        ]
        widths = [max(map(len, column)) for column in columns]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in zip(*columns, strict=True)
        )
        return "\n".join([*lines, self.guarantee.brief()])

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            ("answer", f"{len(self)} rows: {', '.join(self.names)}"),
            ("suppressed", f"{self.suppressed:,} numbers"),
            ("promise", self.guarantee.explain()),
            *(("note", note) for note in self.notes),
        )

    def _fields(self) -> dict[str, Any]:
        columns = [
            {"name": name, "is_key": is_key, "values": [plain(value) for value in column]}
            for name, column, is_key in zip(self.names, self.cells, self.keys, strict=True)
        ]
        return {"columns": columns, "notes": list(self.notes)}


def _text(value: Any) -> str:
    return MISSING if value is None else show_number(value, 0.0)


def _stored(value: Any) -> Any:
    return str(value) if isinstance(value, Interval) else value
