"""Rows of whole numbers in 64-bit floats: put on a grid, shrunk to a norm and multiplied without rounding.

Floating point must not decide how far neighbors are apart. Matrix products of whole numbers are exact in 64-bit floats,
in whatever order they are added, as long as every sum stays below 2**53. `exact_product` takes care of that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import InternalError

__all__ = ["Floats", "exact_product", "limit_norms", "whole_steps"]

Floats = NDArray[np.float64]

_EXACT = 2**53
_WIDE = 2**62


def whole_steps(values: Floats, *, lows: Floats, highs: Floats, bits: int) -> Floats:
    """Return values, clipped to bounds, as whole numbers of steps from the middle: -2**bits at low, 2**bits at high.

    What is not a number is in the middle.
    """
    middle, half = (lows + highs) / 2, (highs - lows) / 2
    scaled = np.clip(values, lows, highs)
    scaled -= middle
    scaled /= half
    # Subtracting and dividing round: a value at a bound may have left the range by a hair.
    np.clip(scaled, -1.0, 1.0, out=scaled)
    scaled *= 2.0**bits
    return np.nan_to_num(np.rint(scaled, out=scaled), copy=False, nan=0.0)


def limit_norms(steps: Floats, *, most: int) -> Floats:
    """Return whole rows shrunk, towards zero, to a Euclidean norm of at most ``most`` steps."""
    # Squares of whole numbers add up exactly below 2**53, whatever the order.
    if float(np.abs(steps).max(initial=0.0)) ** 2 * steps.shape[1] >= _EXACT:
        raise InternalError("the grid is too fine for exact norms.")
    squared = (steps * steps).sum(axis=1)
    long = squared > float(most) ** 2
    if not long.any():
        return steps
    limited = steps.copy()
    # A hair less than the ratio, and towards zero: no rounding can leave a row longer than allowed.
    limited[long] = np.trunc(steps[long] * (most / np.sqrt(squared[long]) * (1 - 2.0**-50))[:, None])
    return limited


def exact_product(left: Floats, right: Floats, weights: NDArray[np.int64], *, most: int) -> NDArray[Any]:
    """Return ``left.T @ diag(weights) @ right`` of whole numbers, exactly.

    Args:
        left: whole numbers, one row per distinct row.
        right: whole numbers, one row per distinct row.
        weights: how often each row occurs.
        most: a public bound of the product of one entry of each.
    """
    # Below this no sum of weights can pass 64 bits.
    if int(weights.max(initial=0)) * len(weights) >= _WIDE:
        return _narrow(_one_by_one(left, right, weights))
    if int(weights.sum()) * most < _EXACT:
        return _in_floats(left, right, weights)
    total = np.zeros((left.shape[1], right.shape[1]), dtype=object)
    # Half of the room, so that a row at a border does not make a part too large.
    budgets = np.cumsum(weights) // max(1, _EXACT // most // 2)
    ends = [*np.flatnonzero(np.diff(budgets)) + 1, len(weights)]
    start = 0
    for end in ends:
        part = slice(start, end)
        # A single row may occur so often that it passes the bound alone.
        if int(weights[part].sum()) * most >= _EXACT:
            total += _one_by_one(left[part], right[part], weights[part])
        else:
            total += _in_floats(left[part], right[part], weights[part]).astype(object)
        start = end
    return _narrow(total)


def _narrow(total: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in 64 bits if they fit."""
    return total.astype(np.int64) if all(abs(item) < _WIDE for item in total.flat) else total


def _in_floats(left: Floats, right: Floats, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the product of whole numbers whose sums stay exact in floats."""
    weighted = right if (weights == 1).all() else weights[:, None] * right
    return np.asarray((left.T @ weighted).astype(np.int64))


def _one_by_one(left: Floats, right: Floats, weights: NDArray[np.int64]) -> NDArray[Any]:
    """Return the product in Python's own integers, for rows that occur too often for floats."""
    whole = [part.astype(np.int64).astype(object) for part in (left, right)]
    return np.asarray(whole[0].T @ (weights.astype(object)[:, None] * whole[1]))
