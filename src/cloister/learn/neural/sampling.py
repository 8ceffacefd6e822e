"""Poisson samples of rows, by exact tosses of one coin for each row."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.learn.rows import Floats
from cloister.mechanisms.sampling.coins import toss_coins

__all__ = ["MOST_AT_ONCE", "poisson_sample"]

MOST_AT_ONCE = 2**12
"""A row that is sampled more often is listed several times."""

_TOSSES = 2**22


def poisson_sample(
    weights: NDArray[np.int64], rate: Fraction, source: RandomSource
) -> tuple[NDArray[np.int64], Floats]:
    """Return places of sampled rows, and how often each is in the sample; a row of weight w has w tosses of its own."""
    if weights.size == 0 or int(weights.max()) <= 1:
        places = np.flatnonzero(toss_coins(source, rate, int(weights.sum())))
        return np.flatnonzero(weights)[places], np.ones(len(places))
    counts = _counts(weights, rate, source)
    sampled = np.flatnonzero(counts)
    times = -(-counts[sampled] // MOST_AT_ONCE)
    places = np.repeat(sampled, times)
    pieces = np.full(len(places), float(MOST_AT_ONCE))
    pieces[np.cumsum(times) - 1] = counts[sampled] - (times - 1) * MOST_AT_ONCE
    return places, pieces


def _counts(weights: NDArray[np.int64], rate: Fraction, source: RandomSource) -> NDArray[np.int64]:
    """Return for each row how many of its tosses came up."""
    ends = np.cumsum(weights)
    successes = [
        start + np.flatnonzero(toss_coins(source, rate, min(_TOSSES, int(ends[-1]) - start)))
        for start in range(0, int(ends[-1]), _TOSSES)
    ]
    rows = np.searchsorted(ends, np.concatenate(successes), side="right")
    return np.bincount(rows, minlength=len(weights)).astype(np.int64)
