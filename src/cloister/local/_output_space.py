"""Output spaces: what a protocol's reports may look like, and the only thing that a collector accepts.

A report is one row of a few public fields: an integer in a range, a string of bits, or a list of integers in a range.
The same description gives the rows of an array, their bytes, their JSON, and the check that refuses everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.errors import MalformedReportError

__all__ = ["Bits", "Field", "Integer", "Integers", "OutputSpace", "Payload"]

_HEAD, _DIGITS = 2**16, 24
"""Characters of the rest of a report, with room to spare, and of one integer."""

Payload: TypeAlias = NDArray[Any]
"""One structured row for each report."""


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer in low .. high."""

    name: str
    low: int
    high: int

    @property
    def longest(self) -> int:
        """Return an upper bound of the characters of its JSON value."""
        return _DIGITS

    @property
    def dtype(self) -> tuple[Any, ...]:
        """Return the column of a structured array."""
        return (self.name, _narrowest(self.low, self.high))

    def fits(self, column: NDArray[Any]) -> bool:
        """Return whether all rows are in the range."""
        return bool(((column >= self.low) & (column <= self.high)).all())

    def parse(self, value: object) -> Any:
        """Return the array value of a JSON value."""
        # True counts as an integer in Python; in a report it is something that no device made.
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise report_error()
        return value

    def column(self, values: Sequence[Any]) -> Any:
        """Return the array column of many JSON values at once; None unless all are plain and in the range."""
        # Exact types, since True would pass for 1; whatever is not plain goes the slow way, which says what is wrong.
        if set(map(type, values)) != {int} or not (self.low <= min(values) and max(values) <= self.high):
            return None
        return np.array(values, dtype=_narrowest(self.low, self.high))

    def show(self, value: Any) -> Any:
        """Return the JSON value of an array value."""
        return int(value)

    def shown(self, column: NDArray[Any]) -> list[Any]:
        """Return the JSON values of many array values."""
        found: list[Any] = column.tolist()
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the field as JSON-ready values."""
        return {"name": self.name, "kind": "integer", "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Integers:
    """A list of integers in low .. high, of a fixed length."""

    name: str
    length: int
    low: int
    high: int

    @property
    def longest(self) -> int:
        """Return an upper bound of the characters of its JSON value."""
        return _DIGITS * self.length

    @property
    def dtype(self) -> tuple[Any, ...]:
        """Return the column of a structured array."""
        return (self.name, _narrowest(self.low, self.high), (self.length,))

    def fits(self, column: NDArray[Any]) -> bool:
        """Return whether all rows are in the range."""
        return bool(((column >= self.low) & (column <= self.high)).all())

    def parse(self, value: object) -> Any:
        """Return the array value of a JSON value."""
        if not isinstance(value, list) or len(value) != self.length:
            raise report_error()
        one = Integer(self.name, self.low, self.high)
        return [one.parse(item) for item in value]

    def column(self, values: Sequence[Any]) -> Any:
        """Return the array column of many JSON values at once; None unless all are plain and in the range."""
        if set(map(type, values)) != {list} or set(map(len, values)) != {self.length}:
            return None
        one = Integer(self.name, self.low, self.high)
        found = one.column(list(chain.from_iterable(values)))
        return None if found is None else found.reshape(len(values), self.length)

    def show(self, value: Any) -> Any:
        """Return the JSON value of an array value."""
        return [int(item) for item in value]

    def shown(self, column: NDArray[Any]) -> list[Any]:
        """Return the JSON values of many array values."""
        found: list[Any] = column.tolist()
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the field as JSON-ready values."""
        return {"name": self.name, "kind": "integers", "length": self.length, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Bits:
    """Bits in domain order, packed eight to a byte from the lowest; ``ones`` is how many are set, if that is fixed."""

    name: str
    length: int
    ones: int | None = None

    @property
    def width(self) -> int:
        """Return the number of bytes."""
        return (self.length + 7) // 8

    @property
    def longest(self) -> int:
        """Return an upper bound of the characters of its JSON value."""
        return self.length + 2

    @property
    def dtype(self) -> tuple[Any, ...]:
        """Return the column of a structured array."""
        return (self.name, "u1", (self.width,))

    def fits(self, column: NDArray[Any]) -> bool:
        """Return whether the padding is empty and the number of ones is right."""
        # Spare bits could carry a message, and would make reports that count the same look different.
        spare = 8 * self.width - self.length
        if spare and (column[:, -1] >> (8 - spare)).any():
            return False
        return self.ones is None or bool((np.unpackbits(column, axis=1).sum(axis=1) == self.ones).all())

    def parse(self, value: object) -> Any:
        """Return the array value of a JSON value."""
        if not isinstance(value, str) or len(value) != self.length or value.strip("01"):
            raise report_error()
        if self.ones is not None and value.count("1") != self.ones:
            raise report_error()
        return np.packbits(np.frombuffer(value.encode(), np.uint8) - ord("0"), bitorder="little")

    def column(self, values: Sequence[Any]) -> Any:
        """Return the array column of many JSON values at once; None unless all are texts of so many bits."""
        if set(map(type, values)) != {str} or set(map(len, values)) != {self.length}:
            return None
        text = "".join(values)
        # One character must be one byte, or the digits would slip out of their rows.
        if not text.isascii():
            return None
        bits = np.frombuffer(text.encode(), np.uint8).reshape(len(values), self.length) - ord("0")
        # Characters below the digits wrap around to large bytes, so that this one comparison refuses both sides.
        if (bits > 1).any() or (self.ones is not None and (bits.sum(axis=1) != self.ones).any()):
            return None
        return np.packbits(bits, axis=1, bitorder="little")

    def show(self, value: Any) -> Any:
        """Return the JSON value of an array value."""
        bits = np.unpackbits(value, count=self.length, bitorder="little")
        return (bits + ord("0")).tobytes().decode()

    def shown(self, column: NDArray[Any]) -> list[Any]:
        """Return the JSON values of many array values."""
        bits = np.unpackbits(column, axis=1, count=self.length, bitorder="little")
        text = (bits + ord("0")).tobytes().decode()
        return [text[start : start + self.length] for start in range(0, len(text), self.length)]

    def to_dict(self) -> dict[str, Any]:
        """Return the field as JSON-ready values."""
        fixed = {} if self.ones is None else {"ones": self.ones}
        return {"name": self.name, "kind": "bits", "length": self.length, **fixed}


Field: TypeAlias = Integer | Integers | Bits


@dataclass(frozen=True)
class OutputSpace:
    """The fields of a report, in order."""

    fields: tuple[Field, ...]

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of a row: packed, little-endian."""
        return np.dtype([field.dtype for field in self.fields])

    @property
    def longest(self) -> int:
        """Return an upper bound of the characters of a report as JSON."""
        return _HEAD + sum(field.longest for field in self.fields)

    def rows(self, **columns: NDArray[Any]) -> Payload:
        """Return one row per report from the columns of all fields."""
        payload = np.empty(len(next(iter(columns.values()))), dtype=self.dtype)
        for field in self.fields:
            payload[field.name] = columns[field.name]
        return payload

    def check(self, payload: Payload) -> Payload:
        """Return the rows, or raise.

        Raises:
            MalformedReportError: if a row is outside of this space.
        """
        if payload.dtype != self.dtype or payload.ndim != 1:
            raise report_error()
        if not all(field.fits(payload[field.name]) for field in self.fields):
            raise report_error()
        return payload

    def parse(self, values: Sequence[object]) -> Payload:
        """Return the rows of JSON values.

        Raises:
            MalformedReportError: if a value is outside of this space.
        """
        columns = self._columns(values)
        # Reports are read one by one only to say which of them is wrong, or to find that none is.
        if columns is None:
            places = [None] if len(values) == 1 else range(len(values))
            return np.array([self._read_row(*each) for each in zip(places, values, strict=True)], dtype=self.dtype)
        return self.rows(**dict(zip((field.name for field in self.fields), columns, strict=True)))

    def show(self, row: Any) -> Any:
        """Return a row as a JSON value: of its only field, or a list with one for each field."""
        shown = [field.show(row[field.name]) for field in self.fields]
        return shown[0] if len(shown) == 1 else shown

    def shown(self, payload: Payload) -> list[Any]:
        """Return many rows as JSON values."""
        columns = [field.shown(payload[field.name]) for field in self.fields]
        return columns[0] if len(columns) == 1 else list(map(list, zip(*columns, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Return the space as JSON-ready values."""
        return {"fields": [field.to_dict() for field in self.fields]}

    def _columns(self, values: Sequence[Any]) -> list[Any] | None:
        """Return columns of many values that are plainly in this space; None where each has to be looked at."""
        parts: Sequence[Sequence[Any]] = [values]
        if not values:
            return None
        if len(self.fields) > 1:
            if set(map(type, values)) != {list} or set(map(len, values)) != {len(self.fields)}:
                return None
            parts = list(zip(*values, strict=True))
        columns = [field.column(part) for field, part in zip(self.fields, parts, strict=True)]
        return None if any(column is None for column in columns) else columns

    def _read_row(self, place: int | None, value: object) -> tuple[Any, ...]:
        try:
            return self._row(value)
        except MalformedReportError:
            raise report_error(place) from None

    def _row(self, value: object) -> tuple[Any, ...]:
        if len(self.fields) == 1:
            return (self.fields[0].parse(value),)
        if not isinstance(value, list) or len(value) != len(self.fields):
            raise report_error()
        return tuple(field.parse(item) for field, item in zip(self.fields, value, strict=True))


def which_report(place: int | None) -> str:
    """Return which of several reports is meant, counted from one; a single one has no number."""
    return "A report" if place is None else f"Report {place + 1:,}"


def more_than_a_report(place: int | None = None) -> MalformedReportError:
    """Return the error for a report that something was sent beside; it is not shown."""
    return MalformedReportError(
        f"{which_report(place)} holds more than a report.", fix="send what the device made, and nothing beside it."
    )


def report_error(place: int | None = None) -> MalformedReportError:
    """Return the error for a report that no device with this protocol can have made; it is not shown."""
    return MalformedReportError(
        f"{which_report(place)} is not one that this protocol can make: it is truncated, oversized or out of range.",
        fix="have the device make its report anew with this protocol; never send plain answers.",
    )


def _narrowest(low: int, high: int) -> str:
    kind = "u" if low >= 0 else "i"
    return next(
        # The byte order is fixed, as these rows are also what devices send and files hold.
        f"<{kind}{size}"
        for size in (1, 2, 4, 8)
        if np.iinfo(f"{kind}{size}").min <= low and high <= np.iinfo(f"{kind}{size}").max
    )
