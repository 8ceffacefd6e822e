"""One exact draw from weights ``exp(rate * score)``, for any number of scores.

Cumulative float weights decide unless the uniform number lies within their error of a boundary; then, about once in
10**9 draws for a hundred candidates, certified weights and further random bits do.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.mechanisms.sampling.fixed import Interval
from cloister.mechanisms.sampling.inversion import WORD, search

_FAR = Fraction(1000)
_SMALL = Fraction(1, 10**290)


def deficits(scores: NDArray[Any], rate: Fraction) -> NDArray[np.float64]:
    """Return rate * (best - score) to a few roundings, cut where exp of minus that is zero anyway."""
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


def draw_exponential_weights(source: RandomSource, scores: NDArray[Any], rate: Fraction) -> int:
    """Return an index with probability proportional to ``exp(rate * score)``."""
    cumulative = np.cumsum(np.exp(-deficits(scores, rate)))
    boundaries = cumulative[:-1] / cumulative[-1]
    word = int(source.words(1)[0])
    place = word * 2.0**-WORD
    if boundaries.size and np.abs(boundaries - place).min() <= _error(scores.size):
        return search(source, _exact_cumulative(scores, rate), scores.size - 1, word=word)
    return int(np.searchsorted(boundaries, place, side="right"))


def _error(count: int) -> float:
    """Return a bound, with room to spare, of the error of the cumulative float weights.

    A difference of two floats is off by one rounding of itself, so an exponent e is off by a few e * 2**-53, and those
    beyond 750 give no weight; each of the sums adds one rounding.
    """
    return 2.0**-50 * (8192 + count)


def _exact_cumulative(scores: NDArray[Any], rate: Fraction) -> Callable[[int, int], Interval]:
    exponents = exact_deficits(scores, rate)

    @lru_cache(maxsize=1)
    def sums(bits: int) -> list[Interval]:
        return list(accumulate(Interval.exp_of_minus(exponent, bits) for exponent in exponents))

    return lambda index, bits: sums(bits)[index].over(sums(bits)[-1])
