"""One exact draw from weights ``exp(rate * score)``, for any number of scores.

Cumulative float weights decide unless the uniform number lies within their error of a boundary; then, about once in
10**9 draws for a hundred candidates, certified weights and further random bits do.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.mechanisms.sampling.fixed import Interval
from cloister.mechanisms.sampling.inversion import WORD, Inversion


def draw_exponential_weights(source: RandomSource, scores: NDArray[np.float64], rate: Fraction) -> int:
    """Return an index with probability proportional to ``exp(rate * score)``."""
    exponents = float(rate) * (scores - scores.max())
    cumulative = np.cumsum(np.exp(exponents))
    boundaries = cumulative[:-1] / cumulative[-1]
    word = int(source.words(1)[0])
    place = word * 2.0**-WORD
    if boundaries.size and np.abs(boundaries - place).min() <= _error(scores.size):
        return _exact_inversion(scores, rate).decide(source, word)
    return int(np.searchsorted(boundaries, place, side="right"))


def _error(count: int) -> float:
    """Return a bound, with room to spare, of the error of the cumulative float weights.

    A difference of two floats is off by one rounding of itself, so an exponent e is off by a few e * 2**-53, and those
    beyond 750 give no weight; each of the sums adds one rounding.
    """
    return 2.0**-50 * (8192 + count)


def _exact_inversion(scores: NDArray[np.float64], rate: Fraction) -> Inversion:
    best = Fraction(float(scores.max()))
    exponents = [rate * (best - Fraction(float(score))) for score in scores]

    def thresholds(bits: int) -> list[Interval]:
        partial, sums = Interval(0, 0, bits), []
        for exponent in exponents:
            partial = partial + Interval.exp_of_minus(exponent, bits)
            sums.append(partial)
        return [item.over(partial) for item in sums[:-1]]

    return Inversion(thresholds)
