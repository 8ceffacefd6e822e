"""Counts that look like counts: not negative, whole, adding up to one; and the mean that a histogram implies.

Clipping at zero biases small cells upward: cells that are truly 0 average half a noise scale afterwards. Sums
over many cells then drift, so add cells up first or use `with_total`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ParameterError
from cloister.mechanisms.base import unwrap
from cloister.queries.postprocessing import _released

__all__ = ["mean_from_histogram", "nonnegative", "normalized", "rounded"]

_MOST = 2**62


def nonnegative(values: object) -> Any:
    """Return numbers with the negative ones set to 0: a number for a number, an array for an array.

    >>> nonnegative([3, -2, 0])
    array([3, 0, 0])
    """
    return unwrap(np.maximum(_released.numbers(values), 0))


def rounded(values: object, *, keep_total: bool = False) -> Any:
    """Return whole numbers, the nearest ones, halves going to the even one.

    Args:
        values: released numbers.
        keep_total: round down or up so that the sum is that of the values, rounded: the largest remainders go up.

    >>> rounded([1.4, 1.4, 1.4]), rounded([1.4, 1.4, 1.4], keep_total=True)
    (array([1, 1, 1]), array([2, 1, 1]))
    """
    given = _released.floats(values)
    if np.abs(given).sum() >= _MOST:
        raise ParameterError("The values are too large for 64-bit integers.", fix="use larger units.")
    if not keep_total:
        return unwrap(np.rint(given).astype(np.int64))
    whole = np.asarray(np.floor(given), dtype=np.int64)
    missing = round(float(given.sum())) - int(whole.sum())
    largest = np.argsort(-(given - whole), axis=None, kind="stable")[:missing]
    whole.flat[largest] += 1
    return unwrap(whole)


def normalized(values: object) -> NDArray[np.float64]:
    """Return shares: negative numbers set to 0, then divided by their sum; equal shares if nothing is left.

    >>> normalized([3.0, -1.0, 1.0])
    array([0.75, 0.  , 0.25])
    """
    clipped = np.maximum(_released.floats(values), 0)
    largest = clipped.max()
    if largest <= 0:
        return np.full(clipped.shape, 1 / clipped.size)
    scaled = clipped / largest
    return np.asarray(scaled / scaled.sum())


def mean_from_histogram(counts: object, midpoints: object) -> float:
    """Return the mean that counts of buckets imply, each row counting as the midpoint of its bucket.

    Post-processing of one noisy histogram: it costs nothing beyond that. Besides the noise it is off by up to half a
    bucket. Where noise pushes it out of the range of the midpoints it is their nearest end, and without any positive
    total their middle.

    >>> mean_from_histogram([5, 7, 4], [1500, 2500, 3500])
    2437.5
    """
    weights, middles = _released.row(counts, name="counts"), _released.row(midpoints, name="midpoints")
    if weights.shape != middles.shape:
        raise ParameterError("Counts and midpoints differ in number.", fix="give one midpoint for each bucket.")
    low, high, total = middles.min(), middles.max(), weights.sum()
    if total <= 0:
        return float((low + high) / 2)
    return float(np.clip(weights @ middles / total, low, high))
