"""Exact coin tosses with many different probabilities exp(-gamma): a float filter in front of an exact decision.

Each toss compares a uniform number with exp(-gamma). The float value of exp(-gamma) is wrong by far less than `MARGIN`;
when the two are further apart than that, the order of the floats is the order of the reals. Otherwise, about once in
2**35 tosses, the comparison is made with certified bounds and as many further random bits as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.mechanisms.sampling.fixed import Interval
from cloister.mechanisms.sampling.inversion import WORD

MARGIN = 2.0**-36
"""Relative and absolute errors of gamma and of ``numpy.exp`` must stay below 2**-40; callers see to gamma."""


def toss_exponentials(
    source: RandomSource, gammas: NDArray[np.float64], exactly: Callable[[int, int], Interval]
) -> NDArray[np.bool_]:
    """Return independent tosses, True with probability exp(-gamma).

    Args:
        source: where the random bits come from.
        gammas: floats within 2**-40 of the true exponents, all at least 0.
        exactly: given an index and a precision in bits, an interval of the true exp(-gamma).
    """
    words = source.words(gammas.size)
    distance = words.astype(np.float64) * 2.0**-WORD - np.exp(-gammas)
    tosses = distance < 0
    for index in np.flatnonzero(np.abs(distance) <= MARGIN):
        tosses[index] = _is_below(source, int(words[index]), partial(exactly, int(index)))
    return tosses


def _is_below(source: RandomSource, value: int, threshold: Callable[[int], Interval]) -> bool:
    """Decide whether a uniform number that starts with a word is below a real threshold."""
    bits = WORD
    while True:
        bound = threshold(bits)
        if value + 1 <= bound.low:
            return True
        if value >= bound.high:
            return False
        value = (value << WORD) | int(source.words(1)[0])
        bits += WORD
