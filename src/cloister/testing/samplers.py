"""Plain floating-point samplers for tests and for the bug zoo, fed from `cloister.core.random`.

They follow their laws closely enough for statistics and are **not private**: their low-order bits tell the true value
(Mironov 2012). Releases use `cloister.mechanisms`.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from cloister.core.random import RandomState, random_source
from cloister.testing.distributions import Floats
from cloister.testing.statistics import Integers

__all__ = ["discrete_laplace", "exponential", "gaussian", "laplace", "uniform"]

Size = int | tuple[int, ...]


def uniform(size: Size, *, random_state: RandomState = None) -> Floats:
    """Return numbers in the open interval (0, 1), each an odd multiple of 2**-53."""
    words = random_source(random_state).words(int(np.prod(size))) >> np.uint64(12)
    return np.asarray((words.astype(np.float64) + 0.5) * 2.0**-52).reshape(size)


def laplace(scale: float, size: Size, *, random_state: RandomState = None) -> Floats:
    """Return Laplace noise by inverting the cumulative distribution function."""
    centered = uniform(size, random_state=random_state) - 0.5
    return np.asarray(-scale * np.sign(centered) * np.log1p(-2 * np.abs(centered)))


def gaussian(sigma: float, size: Size, *, random_state: RandomState = None) -> Floats:
    """Return normal noise by inverting the cumulative distribution function."""
    return np.asarray(sigma * special.ndtri(uniform(size, random_state=random_state)))


def exponential(scale: float, size: Size, *, random_state: RandomState = None) -> Floats:
    """Return exponential noise."""
    return np.asarray(-scale * np.log(uniform(size, random_state=random_state)))


def discrete_laplace(scale: float, size: Size, *, random_state: RandomState = None) -> Integers:
    """Return discrete Laplace noise as the difference of two geometric numbers."""
    source = random_source(random_state)
    first, second = (np.floor(exponential(scale, size, random_state=source)) for _ in range(2))
    return np.asarray((first - second).astype(np.int64))
