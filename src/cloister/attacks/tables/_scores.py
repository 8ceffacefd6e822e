"""Scores of attacks on tables: shares with intervals, the most exposed rows, and the truth to hold them against."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.core.confidence import binomial_bounds
from cloister.core.exact import Number
from cloister.core.validation import check_confidence
from cloister.errors import DataError, ParameterTypeError

__all__ = ["check_truth", "log_choose", "most_exposed", "share_of", "share_with_interval"]


MOST_EXPOSED = 10


def share_with_interval(hits: float, trials: int, *, confidence: Number) -> dict[str, Any]:
    """Return success, interval, confidence and trials of an attack.

    Hits may be a sum of probabilities. Each of its parts varies less than a coin of the same mean, so that the exact
    interval around the whole numbers beside it is a cautious one.
    """
    level = float(check_confidence(confidence))
    low, _ = binomial_bounds(math.floor(hits + 1e-9), trials, alpha=1 - level)
    _, high = binomial_bounds(math.ceil(hits - 1e-9), trials, alpha=1 - level)
    return {
        "success": min(max(hits / trials, 0.0), 1.0),
        "interval": (float(low), float(high)),
        "confidence": level,
        "trials": trials,
    }


def share_of(hits: float, trials: int) -> float:
    """Return a share, 0 of nothing."""
    return float(hits) / trials if trials else 0.0


def most_exposed(scores: NDArray[np.float64], *, above: float = 0.0) -> tuple[tuple[int, float], ...]:
    """Return the positions with the highest scores, and these; the first ones among equals."""
    order = np.argsort(-scores, kind="stable")[:MOST_EXPOSED]
    return tuple((int(place), float(scores[place])) for place in order if scores[place] > above)


def log_choose(above: NDArray[np.float64], below: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return the logarithms of binomial coefficients."""
    return np.asarray(special.gammaln(above + 1) - special.gammaln(below + 1) - special.gammaln(above - below + 1))


def check_truth(truth: Any, *, people: int, rows: int) -> NDArray[np.int64]:
    """Return the row of the custodian's table that each person has, -1 for nobody's.

    Raises:
        DataError: if it is of another length, or names rows that are not there.
    """
    found = np.asarray(truth)
    if found.ndim != 1 or not (np.issubdtype(found.dtype, np.integer) or not found.size):
        raise ParameterTypeError(
            "truth is no list of row positions.",
            fix="give for each person the position of their row, and -1 for those who are not in the table.",
        )
    if len(found) != people:
        raise DataError("truth and the auxiliary table differ in length.", fix="give one position per person.")
    if len(found) and (found.min() < -1 or found.max() >= rows):
        raise DataError("truth names rows that the table does not have.", fix="count rows from 0; -1 is nobody.")
    return found.astype(np.int64)
