"""Exact inversion: compare a lazily extended uniform number with thresholds known to any precision.

A uniform number u in [0, 1) is drawn 64 bits at a time. A threshold c is a real number of which ``floor(c * 2**b)``
can be computed, with proof, for every b. With 64 bits of each, u and c are in different cells of the grid except with
probability 2**-64, and then their order is known for certain; in the same cell, 64 further bits decide, and so on.
The result is the law itself, not an approximation, for any real thresholds.

Rejection samplers such as that of Canonne, Kamath and Steinke (2020) are exact too; they are the reference in tests.

Thresholds are known by interval arithmetic on fixed-point integers: a real number in a pair (low, high) scaled by a
power of two.

`draw_exponential_weights` draws once from weights ``multiplicity * exp(rate * score)``, for any number of scores.
Cumulative float weights decide unless the uniform number lies within their error of a boundary; then, about once in
10**9 draws for a hundred candidates, certified weights and further random bits do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, floor
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.random import RandomSource


@dataclass(frozen=True, slots=True)
class FixedPointInterval:
    """A real number x >= 0 with ``low <= x * 2**bits <= high``."""

    low: int
    high: int
    bits: int

    @classmethod
    def of(cls, value: Fraction, bits: int) -> FixedPointInterval:
        """Return the tightest interval of a rational."""
        scaled = value * 2**bits
        return cls(floor(scaled), ceil(scaled), bits)

    @classmethod
    def exp_of_minus(cls, exponent: Fraction, bits: int) -> FixedPointInterval:
        """Return an interval of exp(-exponent), for an exponent that is not negative."""
        # A bit is 0.301 digits; five digits more keep the bounds tighter than a step of the grid.
        digits = int(bits * 0.302) + 5
        low, high = exact.exp_bounds(-exponent, digits=digits)
        return cls(floor(low * 2**bits), ceil(high * 2**bits), bits)

    def __add__(self, other: FixedPointInterval) -> FixedPointInterval:
        return FixedPointInterval(self.low + other.low, self.high + other.high, self.bits)

    def __mul__(self, other: FixedPointInterval) -> FixedPointInterval:
        # A shift rounds down, and up when both signs are turned: the interval can only become wider.
        return FixedPointInterval(
            (self.low * other.low) >> self.bits, -((-self.high * other.high) >> self.bits), self.bits
        )

    def times(self, count: int) -> FixedPointInterval:
        """Return x times a whole number."""
        return FixedPointInterval(self.low * count, self.high * count, self.bits)

    def minus(self, other: FixedPointInterval) -> FixedPointInterval:
        """Return x - y, for y not above x."""
        # The true difference is not negative, so that cutting the lower end at zero loses nothing.
        return FixedPointInterval(max(0, self.low - other.high), self.high - other.low, self.bits)

    def one_minus(self) -> FixedPointInterval:
        """Return 1 - x, for x in [0, 1]."""
        return FixedPointInterval.of(Fraction(1), self.bits).minus(self)

    def over(self, other: FixedPointInterval) -> FixedPointInterval:
        """Return x / y."""
        # The least quotient is rounded down and the largest up, so that x / y stays inside.
        return FixedPointInterval(
            (self.low << self.bits) // other.high, -((-self.high << self.bits) // other.low), self.bits
        )

    def floor_at(self, bits: int) -> int | None:
        """Return floor(x * 2**bits), capped just below 1, or None when the interval is too wide to tell."""
        shift, most = self.bits - bits, (1 << bits) - 1
        # A threshold of 1 has no cell of its own: it shares the last one, in which no word is decided at once.
        low, high = min(self.low >> shift, most), min(self.high >> shift, most)
        return low if low == high else None


WORD = 64
_GUARD = 96
CUT = 90
"""Thresholds closer to 1 than ``2**(CUT - precision)`` may be left out: they lie in the last cell, for CUT < _GUARD."""

_LAST = np.uint64(2**WORD - 1)

Reals: TypeAlias = Callable[[int], Iterable[FixedPointInterval]]
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
        # Thresholds that were left out of the table are all in the last cell, so that a word there says too little.
        undecided = words == _LAST
        if self._table.size:
            # Of the thresholds counted, only the last can share the cell of the word.
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
            # Only a threshold within the guard's error of a cell's edge stays open; more guard bits settle it.
            floors = [real.floor_at(bits) for real in self._thresholds(bits + guard)]
            if None not in floors:
                return [floor for floor in floors if floor is not None and floor != (1 << bits) - 1]
            guard *= 2


def search(
    source: RandomSource, cumulative: Callable[[int, int], FixedPointInterval], last: int, *, word: int | None = None
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
        # A number strictly below the cell of the lower bound is below it with all of its own cell.
        if value < bound.low >> _GUARD:
            high = middle
        elif value > bound.high >> _GUARD:
            low = middle + 1
        else:
            # Earlier decisions were certain, so that the bisection goes on where it stands with a finer number.
            value, bits = (value << WORD) | int(source.words(1)[0]), bits + WORD
    return low


def bernoulli(probability: Callable[[int], FixedPointInterval]) -> Inversion:
    """Return a sampler of 1 with a probability known to any precision, else 0."""
    # The draw counts thresholds not above the uniform number: with the only one at 1 - p it is 1 with probability p.
    return Inversion(lambda bits: [probability(bits).one_minus()])


_FAR = Fraction(1000)
_SMALL = Fraction(1, 10**290)


def deficits(scores: NDArray[Any], rate: Fraction) -> NDArray[np.float64]:
    """Return rate * (best - score) to a few roundings, cut where exp of minus that is zero anyway."""
    # A rate near either end of the doubles would lose digits when it is rounded.
    if scores.dtype == np.float64 and _SMALL < rate < 1 / _SMALL:
        with np.errstate(over="ignore"):
            below = scores.max() - scores
            if np.isfinite(below).all():
                return np.asarray(np.minimum(float(rate) * below, float(_FAR)))
    return np.array([float(min(exponent, _FAR)) for exponent in exact_deficits(scores, rate)])


def exact_deficits(scores: NDArray[Any], rate: Fraction) -> list[Fraction]:
    """Return rate * (best - score) exactly."""
    exactly = [Fraction(score) for score in scores.tolist()]
    best = max(exactly)
    return [rate * (best - score) for score in exactly]


def draw_exponential_weights(
    source: RandomSource,
    scores: NDArray[Any],
    rate: Fraction,
    *,
    multiplicities: NDArray[np.int64] | None = None,
) -> int:
    """Return an index with probability proportional to ``exp(rate * score)``, times a multiplicity if given.

    Args:
        source: where the random bits come from.
        scores: one number for each index.
        rate: by how much the exponent grows per point of score.
        multiplicities: for how many candidates of the same score each index stands; all at least 1.
    """
    # The best weighs 1: nothing overflows, and the sum is never small.
    weights = np.exp(-deficits(scores, rate))
    cumulative = np.cumsum(weights if multiplicities is None else weights * multiplicities)
    boundaries = cumulative[:-1] / cumulative[-1]
    word = int(source.words(1)[0])
    place = word * 2.0**-WORD
    if boundaries.size and np.abs(boundaries - place).min() <= _error(scores.size):
        exactly = _exact_cumulative(exact_deficits(scores, rate), multiplicities)
        return search(source, exactly, scores.size - 1, word=word)
    return int(np.searchsorted(boundaries, place, side="right"))


def _error(count: int) -> float:
    """Return a bound, with room to spare, of the error of the cumulative float weights.

    A difference of two floats is off by one rounding of itself, so an exponent e is off by a few e * 2**-53, and those
    beyond 750 give no weight, not even 2**63 times, since the best alone weighs 1; a multiplicity adds two roundings,
    and each of the sums one.
    """
    return 2.0**-50 * (8192 + count)


def _exact_cumulative(
    exponents: list[Fraction], multiplicities: NDArray[np.int64] | None
) -> Callable[[int, int], FixedPointInterval]:
    times = [1] * len(exponents) if multiplicities is None else multiplicities.tolist()

    # A bisection asks for many places at one precision, and never goes back to a lower one.
    @lru_cache(maxsize=1)
    def sums(bits: int) -> list[FixedPointInterval]:
        weights = (FixedPointInterval.exp_of_minus(exponent, bits) for exponent in exponents)
        return list(accumulate(weight.times(count) for weight, count in zip(weights, times, strict=True)))

    return lambda index, bits: sums(bits)[index].over(sums(bits)[-1])
