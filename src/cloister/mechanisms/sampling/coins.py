"""Exact coin tosses: very many of one coin, packed in bits or not, and of many different coins exp(-gamma).

`toss_coins` tosses one coin with a rational probability, from about one random byte each. A toss compares a uniform
number with the probability, a byte of both at a time. The first byte decides 255 of 256 tosses; those whose byte equals
that of the probability draw another one, and so on, until all differ or the probability has no further digits.

`packed_bernoulli` packs tosses eight to a byte, for reports of one bit per value. Each bit compares a uniform 64-bit
number with an integer threshold, so that it is 1 with probability exactly ``threshold / 2**64``. The numbers are drawn
lazily, digit by digit from the most significant, and bit-sliced: one random word holds the same digit of 64 numbers. A
number is decided at the first digit in which it differs from the threshold. After eight digits one number in 256 is
still undecided, and further words are drawn only where one is: about 8.5 random bits per toss in place of 64 (the lazy
comparison of Knuth and Yao 1976, side by side).

Floating point decides nothing, and which words are drawn depends on the randomness alone.

`toss_exponentials` puts a float filter in front of an exact decision. Each toss compares a uniform number with
exp(-gamma). The float value of exp(-gamma) is wrong by far less than `MARGIN`; when the two are further apart than
that, the order of the floats is the order of the reals. Otherwise, about once in 2**35 tosses, the comparison is made
with certified bounds and as many further random bits as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.random import RandomSource, Words
from cloister.errors import ParameterError
from cloister.mechanisms.sampling.inversion import WORD, FixedPointInterval

_DIGITS = 256


def toss_coins(source: RandomSource, probability: Fraction, count: int) -> NDArray[np.bool_]:
    """Return ``count`` independent tosses, True with exactly the probability given."""
    # A probability of 1 has the digit 256, which is above every byte.
    digit, rest = _next_digit(probability)
    drawn = _bytes(source, count)
    tosses = drawn < digit
    undecided = np.flatnonzero(drawn == digit)
    # Where the probability has no digits left, a number equal to it so far is not below it: the toss stays False.
    while undecided.size and rest:
        digit, rest = _next_digit(rest)
        drawn = _bytes(source, undecided.size)
        tosses[undecided[drawn < digit]] = True
        undecided = undecided[drawn == digit]
    return tosses


def _next_digit(probability: Fraction) -> tuple[int, Fraction]:
    digit = int(probability * _DIGITS)
    return digit, probability * _DIGITS - digit


def _bytes(source: RandomSource, count: int) -> NDArray[np.uint8]:
    return np.frombuffer(source.random_bytes(count), dtype=np.uint8)


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
        # Padding was tossed like the rest and would be counted by whoever adds up whole bytes.
        packed[:, -1] &= np.uint8((1 << columns % 8) - 1)
    return packed


def _fill(source: RandomSource, threshold: int, words: Words) -> None:
    """Write words of independent bits."""
    if threshold > _ALL:
        words.fill(_ALL)
        return
    # Where only zeros are left in the threshold nothing can fall below it any more: those digits need no words.
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
        # Only at a digit 1 of the threshold can a number fall below it, by a 0 of its own.
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


MARGIN = 2.0**-36
"""Relative and absolute errors of gamma and of ``numpy.exp`` must stay below 2**-40; callers see to gamma."""


def toss_exponentials(
    source: RandomSource, gammas: NDArray[np.float64], exactly: Callable[[int, int], FixedPointInterval]
) -> NDArray[np.bool_]:
    """Return independent tosses, True with probability exp(-gamma).

    Args:
        source: where the random bits come from.
        gammas: floats within 2**-40 of the true exponents, all at least 0.
        exactly: given an index and a precision in bits, an interval of the true exp(-gamma).
    """
    words = source.words(gammas.size)
    # Rounding a word to a double moves the uniform number by at most 2**-54, far less than the margin.
    distance = words.astype(np.float64) * 2.0**-WORD - np.exp(-gammas)
    tosses = distance < 0
    for index in np.flatnonzero(np.abs(distance) <= MARGIN):
        tosses[index] = _is_below(source, int(words[index]), partial(exactly, int(index)))
    return tosses


def _is_below(source: RandomSource, value: int, threshold: Callable[[int], FixedPointInterval]) -> bool:
    """Decide whether a uniform number that starts with a word is below a real threshold."""
    bits = WORD
    while True:
        bound = threshold(bits)
        # The number lies anywhere in [value, value + 1) of this grid: the whole cell has to be on one side.
        if value + 1 <= bound.low:
            return True
        if value >= bound.high:
            return False
        # Further bits refine the same number; a fresh one would favor the side that is easier to decide.
        value = (value << WORD) | int(source.words(1)[0])
        bits += WORD
