"""Exact inversion: compare a lazily extended uniform number with thresholds known to any precision.

A uniform number u in [0, 1) is drawn 64 bits at a time. A threshold c is a real number of which ``floor(c * 2**b)``
can be computed, with proof, for every b. With 64 bits of each, u and c are in different cells of the grid except with
probability 2**-64, and then their order is known for certain; in the same cell, 64 further bits decide, and so on.
The result is the law itself, not an approximation, for any real thresholds.

Rejection samplers such as that of Canonne, Kamath and Steinke (2020) are exact too; they are the reference in tests.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.mechanisms.sampling.fixed import Interval

WORD = 64
_GUARD = 96
CUT = 90
"""Thresholds closer to 1 than ``2**(CUT - precision)`` may be left out: they lie in the last cell, for CUT < _GUARD."""

_LAST = np.uint64(2**WORD - 1)

Reals: TypeAlias = Callable[[int], Iterable[Interval]]
"""Given a precision in bits, increasing reals in [0, 1] as intervals of that precision.

An infinite sequence is cut where u cannot resolve it, see `CUT`.
"""


class Inversion:
    """Samples the number of thresholds that are not above a uniform number."""

    def __init__(self, thresholds: Reals) -> None:
        self._thresholds = thresholds
        self._table = np.array(self._floors(WORD), dtype=np.uint64)

    def draw(self, source: RandomSource, count: int) -> NDArray[np.int64]:
        """Return ``count`` independent draws."""
        words = source.words(count)
        draws = np.searchsorted(self._table, words, side="right")
        undecided = words == _LAST
        if self._table.size:
            undecided |= self._table[np.maximum(draws - 1, 0)] == words
        for index in np.flatnonzero(undecided):
            draws[index] = self.decide(source, int(words[index]))
        return draws

    def decide(self, source: RandomSource, value: int) -> int:
        """Return the draw whose uniform number starts with a word, taking further words until it is certain."""
        bits = WORD
        while True:
            value = (value << WORD) | int(source.words(1)[0])
            bits += WORD
            floors = self._floors(bits)
            place = bisect_left(floors, value)
            if value != (1 << bits) - 1 and (place == len(floors) or floors[place] != value):
                return place

    def _floors(self, bits: int) -> list[int]:
        """Return the cells of the thresholds, but for those in the last cell, which is never decided at once."""
        guard = _GUARD
        while True:
            floors = [real.floor_at(bits) for real in self._thresholds(bits + guard)]
            if None not in floors:
                return [floor for floor in floors if floor is not None and floor != (1 << bits) - 1]
            guard *= 2


def search(
    source: RandomSource, cumulative: Callable[[int, int], Interval], last: int, *, word: int | None = None
) -> int:
    """Return one exact draw from 0 .. last by bisection, where a table would be too long to build.

    Args:
        source: where the random bits come from.
        cumulative: given k and a precision in bits, an interval of the probability of at most k.
        last: the largest value.
        word: the first word of the uniform number, if it was drawn before.
    """
    value, bits = int(source.words(1)[0]) if word is None else word, WORD
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        bound = cumulative(middle, bits + _GUARD)
        if value < bound.low >> _GUARD:
            high = middle
        elif value > bound.high >> _GUARD:
            low = middle + 1
        else:
            value, bits = (value << WORD) | int(source.words(1)[0]), bits + WORD
    return low


def bernoulli(probability: Callable[[int], Interval]) -> Inversion:
    """Return a sampler of 1 with a probability known to any precision, else 0."""
    return Inversion(lambda bits: [probability(bits).one_minus()])
