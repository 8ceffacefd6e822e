"""Very many exact tosses of one coin with a rational probability, from about one random byte each.

A toss compares a uniform number with the probability, a byte of both at a time. The first byte decides 255 of 256
tosses; those whose byte equals that of the probability draw another one, and so on, until all differ or the
probability has no further digits.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource

_DIGITS = 256


def toss_coins(source: RandomSource, probability: Fraction, count: int) -> NDArray[np.bool_]:
    """Return ``count`` independent tosses, True with exactly the probability given."""
    digit, rest = _next_digit(probability)
    drawn = _bytes(source, count)
    tosses = drawn < digit
    undecided = np.flatnonzero(drawn == digit)
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
