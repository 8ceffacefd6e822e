"""Residuals of the logistic loss in whole steps: functions of one row's own whole score and class, by public tables.

A residual is what is observed less what is expected: 1 or 0 less the probability of a class. Scores are whole numbers
of 2**-10 logits, residuals of 2**-12. With two classes, there is one score, that of the second class, and a table of
the logistic function. With more, there is a score for each class; a table of exponentials, and division rounding down,
give probabilities that add up to at most 1.

Privacy: claim, by `reach` and `squared_reach`, how far one row can move the sums of residuals of a feature, in one of
whose cells it is. Two classes: a residual is between -1 and 1. More: the row's class c has 1 - p_c, each other one
-p_k, and these p_k add up to at most 1 - p_c. So at most 2 (1 - p_c) in L1 and 2 (1 - p_c)**2 in squared L2. No
floating point is in the way.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cloister.learn.binning import Integers

__all__ = ["UNIT", "WHOLE", "outputs_of", "reach", "residuals", "squared_reach"]

UNIT = 2**10
"""Steps of a score per logit."""

WHOLE = 2**12
"""Steps of a residual."""

_FARTHEST = 16
_EXPONENTIAL = 2**30


def outputs_of(classes: int) -> int:
    """Return how many scores a row has."""
    return 1 if classes == 2 else classes


def reach(outputs: int) -> int:
    """Return how far one row moves residuals in L1, in steps, with so many scores per row."""
    return WHOLE if outputs == 1 else 2 * WHOLE


def squared_reach(outputs: int) -> int:
    """Return how far one row moves residuals in squared L2, in squared steps."""
    return WHOLE**2 if outputs == 1 else 2 * WHOLE**2


def residuals(scores: Integers, classes: Integers) -> Integers:
    """Return the residual of each score of each row.

    Args:
        scores: (rows, 1) with two classes, (rows, classes) with more.
        classes: the class of each row.
    """
    if scores.shape[1] == 1:
        most = _FARTHEST * UNIT
        expected = _logistic()[np.clip(scores, -most, most) + most]
        return np.asarray(classes[:, None] * WHOLE - expected)
    gaps = np.minimum(scores.max(axis=1, keepdims=True) - scores, _FARTHEST * UNIT)
    weights = _exponential()[gaps]
    expected = weights * WHOLE // weights.sum(axis=1, keepdims=True)
    return np.asarray((classes[:, None] == np.arange(scores.shape[1])) * WHOLE - expected)


@cache
def _logistic() -> Integers:
    logits = np.arange(-_FARTHEST * UNIT, _FARTHEST * UNIT + 1) / UNIT
    return np.asarray(np.rint(WHOLE / (1 + np.exp(-logits))).astype(np.int64))


@cache
def _exponential() -> Integers:
    gaps = np.arange(_FARTHEST * UNIT + 1) / UNIT
    return np.asarray(np.rint(_EXPONENTIAL * np.exp(-gaps)).astype(np.int64))
