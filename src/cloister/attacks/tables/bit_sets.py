"""Which members fit several conditions at once: one bit set per condition, intersected block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BitSets", "bit_sets"]

_BLOCK = 1 << 26


@dataclass(frozen=True, eq=False)
class BitSets:
    """For each column and each code in it, the members that fit, as packed bits; the last code fits everybody.

    Attributes:
        columns: one line of bits per code, for each column.
        weights: how much each member counts.
    """

    columns: tuple[NDArray[np.uint8], ...]
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"BitSets({len(self.columns)} columns)"

    def masks(self, codes: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Give, block by block of lines of codes, which members (columns) fit each line."""
        for block, found in self._blocks(codes):
            yield block, np.unpackbits(found, axis=1, count=len(self.weights)).view(np.bool_)

    def totals(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the weight of all that fit each line: set bits, counted once for each binary digit of the weights."""
        digits = range(int(self.weights.max(initial=0)).bit_length())
        chosen = [(digit, np.packbits(self.weights >> digit & 1 == 1)) for digit in digits]
        found = np.zeros(len(codes), dtype=np.int64)
        for block, fitting in self._blocks(codes):
            for digit, members in chosen:
                found[block] += _set_bits(fitting & members) << digit
        return found

    def _blocks(self, codes: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.uint8]]]:
        step = max(_BLOCK // max(len(self.weights), 1), 1)
        for start in range(0, len(codes), step):
            block = slice(start, min(start + step, len(codes)))
            found = self.columns[0][codes[block, 0]]
            for place, bits in enumerate(self.columns[1:], start=1):
                found &= bits[codes[block, place]]
            yield block, found


def bit_sets(allowed: Sequence[NDArray[np.bool_]], members: NDArray[np.integer], weights: NDArray[np.int64]) -> BitSets:
    """Return bit sets.

    Args:
        allowed: for each column, whether each code (row) allows what a member shows (column).
        members: what each member (row) shows in each column.
        weights: how much each member counts.
    """
    return BitSets(
        tuple(np.packbits(table[:, members[:, place]], axis=1) for place, table in enumerate(allowed)), weights
    )


def _set_bits(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how many bits of each row are set."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(rows).sum(axis=1, dtype=np.int64))
    return np.asarray(np.unpackbits(rows, axis=1).sum(axis=1, dtype=np.int64))
