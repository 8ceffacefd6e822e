"""Rows of packed bits: how many ones each column holds, without unpacking them, and single bits written for all rows.

Rows are laid side by side until they fill a cache-sized line of 64-bit words. Lines are then added bit by bit into
vertical counters: a full adder on whole words turns two lines and the running sum into a new sum and a line of carries,
and the carries are added in the same way one level up (carry-save addition, Wallace 1964; the population count of
Harley and Seal). Five word operations per 64 bits; only the counters are unpacked at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.errors import ParameterError

_LINE = 2**15
"""Bytes in a line, roughly: some lines fit the cache."""


def column_counts(packed: NDArray[np.uint8], columns: int) -> NDArray[np.int64]:
    """Return the number of ones in each column.

    Args:
        packed: one row of bytes per report; bit ``j`` of a row is bit ``j % 8`` of byte ``j // 8``.
        columns: how many bits of a row count; the others are ignored.
    """
    columns = validation.check_count(columns, name="columns")
    if packed.ndim != 2 or packed.dtype != np.uint8 or packed.shape[1] != -(-columns // 8):
        raise ParameterError(
            "Packed rows are bytes, eight columns in each.",
            fix="give an array of uint8 with ceil(columns / 8) bytes in a row.",
        )
    if not packed.size:
        return np.zeros(columns, dtype=np.int64)
    counter = _VerticalCounter()
    # A multiple of eight rows always fills whole 64-bit words, whatever the width of a row is.
    beside = 8 * max(1, _LINE // (8 * packed.shape[1]))
    for start in range(0, len(packed), beside):
        counter.add(_line(packed[start : start + beside], beside))
    return counter.totals(packed.shape[1], columns)


def _line(rows: NDArray[np.uint8], beside: int) -> NDArray[np.uint64]:
    """Return rows side by side as words, with empty rows in place of missing ones."""
    if len(rows) < beside:
        rows = np.concatenate([rows, np.zeros((beside - len(rows), rows.shape[1]), dtype=np.uint8)])
    return np.ascontiguousarray(rows).reshape(-1).view(np.uint64)


class _VerticalCounter:
    """Counts the ones at each place of its lines; level ``k`` keeps digit ``k`` of all the counts."""

    def __init__(self) -> None:
        self._sums: list[NDArray[np.uint64]] = []
        self._waiting: list[NDArray[np.uint64] | None] = []

    def add(self, line: NDArray[np.uint64]) -> None:
        """Add a line of ones; it is kept, so it must not change until another one is added."""
        level, carry = 0, line
        while True:
            if level == len(self._sums):
                self._sums.append(np.zeros_like(carry))
                self._waiting.append(None)
            # Lines are added in pairs, as a full adder takes three inputs: two lines and the sum that waits.
            other = self._waiting[level]
            if other is None:
                self._waiting[level] = carry
                return
            self._waiting[level] = None
            carry = self._full_adder(level, other, carry)
            level += 1

    def _full_adder(self, level: int, first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Add two lines to the sum of a level and return the carries."""
        total = self._sums[level]
        # The majority of three bits is the carry and their parity the sum; the sum of the first two serves for both.
        carry = total & first
        total ^= first
        carry |= total & second
        total ^= second
        return carry

    def totals(self, width: int, columns: int) -> NDArray[np.int64]:
        """Return the counts per column of rows of so many bytes."""
        counts = np.zeros(columns, dtype=np.int64)
        for level, pair in enumerate(zip(self._sums, self._waiting, strict=True)):
            for line in pair:
                if line is not None:
                    # All rows of a line count for the same columns, so that places are added up only here, at the end.
                    rows = line.view(np.uint8).reshape(-1, width)
                    ones = np.unpackbits(rows, axis=1, count=columns, bitorder="little")
                    counts += ones.sum(axis=0, dtype=np.int64) << level
        return counts


def write_bits(packed: NDArray[np.uint8], codes: NDArray[np.int64], bits: NDArray[np.bool_]) -> None:
    """Write one bit into each row, in place: bit ``codes[i]`` of row ``i`` becomes ``bits[i]``.

    Args:
        packed: one row of bytes per report; bit ``j`` of a row is bit ``j % 8`` of byte ``j // 8``.
        codes: a column for each row.
        bits: what to write there.
    """
    rows, places = np.arange(len(packed)), codes >> 3
    shifts = (codes & 7).astype(np.uint8)
    # The place is cleared before it is written: what stood there was drawn for somebody else's bit.
    cleared = packed[rows, places] & ~(np.uint8(1) << shifts)
    packed[rows, places] = cleared | (bits.view(np.uint8) << shifts)
