"""Single bits of packed rows, written for all rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def write_bits(packed: NDArray[np.uint8], codes: NDArray[np.int64], bits: NDArray[np.bool_]) -> None:
    """Write one bit into each row, in place: bit ``codes[i]`` of row ``i`` becomes ``bits[i]``.

    Args:
        packed: one row of bytes per report; bit ``j`` of a row is bit ``j % 8`` of byte ``j // 8``.
        codes: a column for each row.
        bits: what to write there.
    """
    rows, places = np.arange(len(packed)), codes >> 3
    shifts = (codes & 7).astype(np.uint8)
    cleared = packed[rows, places] & ~(np.uint8(1) << shifts)
    packed[rows, places] = cleared | (bits.view(np.uint8) << shifts)
