"""Very many exact tosses of one coin, packed eight to a byte, for reports of one bit per value.

Each bit compares a uniform 64-bit number with an integer threshold, so that it is 1 with probability exactly
``threshold / 2**64``. The numbers are drawn lazily, digit by digit from the most significant, and bit-sliced: one
random word holds the same digit of 64 numbers. A number is decided at the first digit in which it differs from the
threshold. After eight digits one number in 256 is still undecided, and further words are drawn only where one is: about
8.5 random bits per toss in place of 64 (the lazy comparison of Knuth and Yao 1976, side by side).

Floating point decides nothing, and which words are drawn depends on the randomness alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.random import RandomSource, Words
from cloister.errors import ParameterError

DIGITS = 64
_ALL = 2**DIGITS - 1
_HEAD = 8
"""How many digits are compared for all numbers, before the undecided ones are picked out."""

_SLICE = 2**13
_BLOCK = 2**17
"""Words at a time, for the cache: in a slice every digit is drawn, in a block the undecided are picked out."""


def packed_bernoulli(source: RandomSource, threshold: int, rows: int, columns: int) -> NDArray[np.uint8]:
    """Return independent bits, each 1 with probability exactly ``threshold / 2**64``.

    Args:
        source: where the random bits come from.
        threshold: a whole number from 0 to 2**64.
        rows: how many rows.
        columns: how many bits in a row.

    Returns:
        The rows, packed: bit ``j`` of a row is bit ``j % 8``, counted from the least significant, of byte ``j // 8``;
        the bits beyond the last column are 0. `numpy.unpackbits` with ``bitorder="little"`` unpacks them.
    """
    threshold = validation.check_count(threshold, name="threshold")
    if threshold > _ALL + 1:
        raise ParameterError("threshold must be at most 2**64.", fix="give the probability times 2**64, rounded.")
    rows = validation.check_count(rows, name="rows")
    columns = validation.check_count(columns, name="columns", at_least=1)
    width = -(-columns // 8)
    words = np.empty(-(-rows * width // 8), dtype=np.uint64)
    _fill(source, threshold, words)
    packed = words.view(np.uint8)[: rows * width].reshape(rows, width)
    if columns % 8:
        packed[:, -1] &= np.uint8((1 << columns % 8) - 1)
    return packed


def _fill(source: RandomSource, threshold: int, words: Words) -> None:
    """Write words of independent bits."""
    if threshold > _ALL:
        words.fill(_ALL)
        return
    digits = f"{threshold:0{DIGITS}b}".rstrip("0")
    room = np.empty(min(_BLOCK, words.size), dtype=np.uint64)
    for start in range(0, words.size, _BLOCK):
        below = words[start : start + _BLOCK]
        undecided = room[: below.size]
        for first in range(0, below.size, _SLICE):
            _compare_all(source, digits[:_HEAD], below[first : first + _SLICE], undecided[first : first + _SLICE])
        _compare_undecided(source, digits[_HEAD:], below, undecided)


def _compare_all(source: RandomSource, digits: str, below: Words, undecided: Words) -> None:
    """Compare the first digits of all numbers; write which are below and which are undecided."""
    below.fill(0)
    undecided.fill(_ALL)
    for digit in digits:
        drawn = source.words(below.size)
        if digit == "1":
            below |= undecided & ~drawn
            undecided &= drawn
        else:
            undecided &= ~drawn


def _compare_undecided(source: RandomSource, digits: str, below: Words, undecided: Words) -> None:
    """Compare further digits where numbers are undecided; those that equal the threshold to the end are not below."""
    places = np.flatnonzero(undecided)
    left = undecided[places]
    for digit in digits:
        if not places.size:
            return
        drawn = source.words(places.size)
        if digit == "1":
            below[places] |= left & ~drawn
            left &= drawn
        else:
            left &= ~drawn
        kept = np.flatnonzero(left)
        places, left = places[kept], left[kept]
