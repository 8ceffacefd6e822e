"""Real numbers from `core.random` for operations that promise nothing: normal noise, uniform numbers.

Noise is drawn by the exact discrete Gaussian sampler of `mechanisms` on a grid of 2**-24 standard deviations and then
becomes a float. That is close to a normal law for any statistic, and no claim of differential privacy rests on it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cloister.anonymize.operations.cells import Floats
from cloister.core.random import RandomSource
from cloister.mechanisms.sampling.discrete_gaussian import discrete_gaussian

_STEPS = 2**24


def standard_normals(source: RandomSource, count: int) -> Floats:
    """Return independent draws from the standard normal law."""
    steps = discrete_gaussian(Fraction(_STEPS**2)).draw(source, count)
    return np.asarray(steps, dtype=np.float64) / _STEPS


def uniforms(source: RandomSource, count: int) -> Floats:
    """Return independent numbers strictly between 0 and 1."""
    words = source.words(count) >> np.uint64(12)
    return np.asarray((words.astype(np.float64) + 0.5) * 2.0**-52)
