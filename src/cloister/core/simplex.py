"""Numbers that are not negative and add up: three ways to bring estimates there, all of them post-processing.

`project_to_simplex` is the nearest point (Held, Wolfe and Crowder 1974; with weights). `norm_sub` first drops what is
negative and then shares the difference among the rest (Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li 2020): the same
point where the rest adds up to too much, another one where it adds up to too little. `clip` only drops what is negative
and lets the sum drift upwards. Unbiased estimates lose that property in all three: rare categories come out too low
with the first two, and too high with the last.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.errors import ParameterError

__all__ = ["clip", "norm_sub", "project_to_simplex"]

Floats: TypeAlias = NDArray[np.float64]


def project_to_simplex(values: ArrayLike, *, total: float = 1.0, variances: ArrayLike | None = None) -> Floats:
    """Return the nearest numbers that are not negative and add up to a total.

    Each is ``max(0, value - shift * variance)``, with the shift at which the sum is right: it is linear between breaks.

    Args:
        values: one or more numbers.
        total: what they must add up to.
        variances: above 0, where they differ; numbers with more noise give way more.

    >>> project_to_simplex([0.7, 0.6, -0.1])
    array([0.55, 0.45, 0.  ])
    """
    numbers = _numbers(values, total)
    spread = np.ones(len(numbers)) if variances is None else np.asarray(variances, dtype=np.float64)
    if spread.shape != numbers.shape or not (spread > 0).all():
        raise ParameterError("A number has no variance.", fix="give one variance above 0 for each.")
    breaks = numbers / spread
    order = np.argsort(-breaks, kind="stable")
    shifts = (np.cumsum(numbers[order]) - total) / np.cumsum(spread[order])
    kept = np.flatnonzero(breaks[order] > shifts)
    shift = shifts[kept[-1]] if kept.size else breaks[order[0]]
    return np.asarray(np.maximum(numbers - shift * spread, 0.0))


def norm_sub(values: ArrayLike, *, total: float = 1.0) -> Floats:
    """Return numbers that add up to a total: negative ones become 0, the others share the difference, until all fit.

    Where nothing is above 0, all come out equal.

    >>> norm_sub([0.5, -0.01])
    array([1., 0.])
    """
    cells = clip(_numbers(values, total))
    while True:
        positive = cells > 0
        if not positive.any():
            return np.full(len(cells), total / len(cells))
        moved = np.where(positive, cells - (cells.sum() - total) / positive.sum(), 0.0)
        cells = clip(moved)
        if (moved >= 0).all():
            return cells


def clip(values: ArrayLike) -> Floats:
    """Return the numbers with negative ones set to 0; they no longer add up.

    >>> clip([0.7, 0.6, -0.3])
    array([0.7, 0.6, 0. ])
    """
    return np.asarray(np.maximum(np.asarray(values, dtype=np.float64), 0.0))


def _numbers(values: ArrayLike, total: float) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise ParameterError("The values are not a list of finite numbers.", fix="give one number for each category.")
    if not (math.isfinite(total) and total >= 0):
        raise ParameterError("The total is below 0 or not finite.", fix="give a total of at least 0.")
    return numbers
