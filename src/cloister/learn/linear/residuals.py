"""Residuals of logistic models as whole numbers, each a function of its own row and the weights alone.

Weights are rounded to a grid, so that the logit of a row of whole steps is a whole number, computed without rounding
in 64-bit floats and in any order. The logistic function is a table over a grid of logits; the softmax is made of a
table of exponentials, of sums of whole numbers and of single divisions, which IEEE 754 fixes to the last bit. So a row
has the same residual wherever it stands and whatever the other rows are, which `numpy.exp` does not promise.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cloister.learn.linear.design import BITS
from cloister.learn.rows import Floats

__all__ = ["ONE", "WeightGrid", "binary_residuals", "class_residuals", "squared_residual"]

ONE: int = 2**12
"""How many steps a probability of one has."""

_LARGEST_WEIGHT_BITS = 10
_LOGIT_BITS = 11
_LARGEST_LOGIT = 16 * 2**_LOGIT_BITS
_MASS = 2.0**30


class WeightGrid:
    """Weights on a grid that is fine, and coarse enough for exact logits.

    Args:
        width: how many columns rows have.
    """

    def __init__(self, width: int) -> None:
        spare = 52 - BITS - _LARGEST_WEIGHT_BITS - width.bit_length()
        self._bits = min(20, spare)

    def whole(self, weights: Floats) -> Floats:
        """Return weights as whole numbers of grid steps, the largest cut."""
        largest = 2.0**_LARGEST_WEIGHT_BITS
        return np.rint(np.clip(weights, -largest, largest) * 2.0**self._bits)

    def logits(self, steps: Floats, whole: Floats) -> NDArray[np.int64]:
        """Return the logits of rows as places on the grid of logits, from -16 to 16."""
        exactly = steps @ whole
        places = exactly * 2.0 ** (_LOGIT_BITS - BITS - self._bits)
        return np.rint(np.clip(places, -_LARGEST_LOGIT, _LARGEST_LOGIT)).astype(np.int64)


def squared_residual(classes: int) -> int:
    """Return a bound of the sum of squared residuals of one row.

    With two classes there is one residual, at most ``ONE``. With more, those of the other classes add up to that of the
    row's own class, q * ONE with q <= 1, and rounding moves each by a half: 2 * ONE**2 + 2 * ONE + classes / 4 at most.
    """
    return ONE**2 if classes == 2 else 2 * ONE**2 + 2 * ONE + classes


@lru_cache(maxsize=1)
def _probabilities() -> Floats:
    places = np.arange(-_LARGEST_LOGIT, _LARGEST_LOGIT + 1) / 2**_LOGIT_BITS
    return np.asarray(np.rint(ONE / (1.0 + np.exp(-places))))


@lru_cache(maxsize=1)
def _exponentials() -> Floats:
    return np.asarray(np.rint(_MASS * np.exp(-np.arange(2 * _LARGEST_LOGIT + 1) / 2**_LOGIT_BITS)))


def binary_residuals(logits: NDArray[np.int64], target: NDArray[np.int64]) -> Floats:
    """Return probability less truth in steps, one column, for logits of the second class."""
    return np.asarray(_probabilities()[logits + _LARGEST_LOGIT] - ONE * target[:, None])


def class_residuals(logits: NDArray[np.int64], target: NDArray[np.int64]) -> Floats:
    """Return probability less truth in steps, one column per class."""
    masses = _exponentials()[logits.max(axis=1, keepdims=True) - logits]
    shares = masses / masses.sum(axis=1, keepdims=True)
    return np.asarray(np.rint(shares * ONE) - ONE * (target[:, None] == np.arange(logits.shape[1])))
