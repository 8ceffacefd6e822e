"""One exact draw from weights ``multiplicity * exp(rate * score)``, for any number of scores.

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
) -> Callable[[int, int], Interval]:
    times = [1] * len(exponents) if multiplicities is None else multiplicities.tolist()

    @lru_cache(maxsize=1)
    def sums(bits: int) -> list[Interval]:
        weights = (Interval.exp_of_minus(exponent, bits) for exponent in exponents)
        return list(accumulate(weight.times(count) for weight, count in zip(weights, times, strict=True)))

    return lambda index, bits: sums(bits)[index].over(sums(bits)[-1])
