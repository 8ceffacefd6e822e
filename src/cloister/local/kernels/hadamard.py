"""Rows of the Hadamard matrix of Sylvester's kind, and counts of the reports that agree with each of them.

The entry in row r and column j is -1 to the number of ones in ``r & j``. Value v has row v + 1: row 0 is constant and
would tell nothing. Every other row has as many entries +1 as -1, and any two rows agree in exactly half of the columns.
A report is a column; it supports v when the entry there is +1. The supports of all values together are one fast Walsh
transform of the counts of columns, ``order * log2(order)`` additions (Acharya, Sun and Zhang 2019).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.errors import ParameterError

Integers = NDArray[np.int64]

LARGEST_ORDER = 2**32
"""Half-words hold a column."""

_FOLDS = (16, 8, 4, 2, 1)


def order_for(domain_size: int) -> int:
    """Return the smallest power of two above a domain size.

    >>> order_for(127), order_for(128)
    (128, 256)
    """
    size = validation.check_count(domain_size, name="domain_size", at_least=1)
    order = 1 << size.bit_length()
    if order > LARGEST_ORDER:
        raise ParameterError("Hadamard response takes domains below 2**32 values.", fix="use a smaller domain.")
    return order


def parities(columns: Integers, codes: Integers) -> Integers:
    """Return 0 where the entry of a value's row in a column is +1, and 1 where it is -1."""
    return _parities(columns & (codes + 1))


def signs(columns: Integers, codes: Integers) -> Integers:
    """Return the entries, +1 or -1, of the values' rows in columns."""
    return 1 - 2 * parities(columns, codes)


def with_parities(columns: Integers, codes: Integers, wanted: Integers) -> Integers:
    """Return uniform columns moved to where the values' rows have the wanted parities, 0 or 1.

    A column on the wrong side has one bit flipped, the lowest one of the value's row. Flipping it pairs the columns of
    the two sides one to one, so that a uniform column becomes uniform on the wanted side.
    """
    rows = codes + 1
    flips = _parities(columns & rows) ^ wanted
    rows &= -rows
    rows *= flips
    return columns ^ rows


def walsh_transform(counts: Integers) -> None:
    """Replace a vector whose length is a power of two by its product with the Hadamard matrix, in place.

    Twice in a row it multiplies by the length. Sums must fit 64 bits: the absolute values must not add up to 2**63.
    """
    order = counts.size
    if counts.ndim != 1 or order & (order - 1) or not order:
        raise ParameterError("The length of the vector is not a power of two.", fix="pad it with zeros.")
    half = 1
    while half < order:
        pairs = counts.reshape(-1, 2, half)
        left, right = pairs[:, 0], pairs[:, 1]
        left += right
        right *= -2
        right += left
        half *= 2


def support_counts(columns: Integers, order: int, domain_size: int) -> Integers:
    """Return, for each code below the domain size, how many reports support it.

    Raises:
        ParameterError: if a report lies outside the output space, or the order does not suit the domain.
    """
    if order & (order - 1) or not validation.check_count(domain_size, name="domain_size", at_least=1) < order:
        raise ParameterError("The order is no power of two above the domain.", fix="use order_for(domain_size).")
    if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < order:
        raise ParameterError("A report lies outside the output space.", fix="validate reports before counting.")
    counts = np.bincount(columns, minlength=order)
    walsh_transform(counts)
    return (counts[1 : domain_size + 1] + columns.size) // 2


def _parities(numbers: Integers) -> Integers:
    """Return the parities of the numbers of ones in numbers from 0 up to 2**32."""
    if hasattr(np, "bitwise_count"):
        return (np.bitwise_count(numbers) & np.uint8(1)).astype(np.int64)
    return _folded_parities(numbers)


def _folded_parities(numbers: Integers) -> Integers:
    """Return parities where NumPy, before its version 2, cannot count ones."""
    folded = numbers ^ (numbers >> 32)
    for shift in _FOLDS:
        folded ^= folded >> shift
    folded &= 1
    return folded
