"""Exact confidence intervals of a probability, after Clopper and Pearson (1934)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["binomial_bounds", "binomial_interval"]

Floats: TypeAlias = NDArray[np.float64]


def binomial_bounds(hits: Any, trials: int, *, alpha: float) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson bounds on a probability, each wrong with probability ``alpha / 2`` at most."""
    count = np.asarray(hits, dtype=np.float64)
    low = np.where(count > 0, special.betaincinv(np.maximum(count, 1), trials - count + 1, alpha / 2), 0.0)
    high = np.where(count < trials, special.betaincinv(count + 1, np.maximum(trials - count, 1), 1 - alpha / 2), 1.0)
    return low, high


def binomial_interval(hits: int, trials: int, *, confidence: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a probability.

    >>> low, high = binomial_interval(5, 10, confidence=0.95)
    >>> f"{low:.4f} to {high:.4f}"
    '0.1871 to 0.8129'
    """
    low, high = binomial_bounds(hits, trials, alpha=1 - confidence)
    return float(low), float(high)
