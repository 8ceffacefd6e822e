"""Post-processing of noisy numbers: projection to the simplex, and shrinkage towards zero.

Three ways lead to numbers that are not negative and add up.

`project_to_simplex` is the nearest point (Held, Wolfe and Crowder 1974; with weights). `norm_sub` first drops what is
negative and then shares the difference among the rest (Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li 2020): the same
point where the rest adds up to too much, another one where it adds up to too little. `clip` only drops what is negative
and lets the sum drift upwards. Unbiased estimates lose that property in all three: rare categories come out too low
with the first two, and too high with the last.

Shrinkage towards zero takes ``x = theta + noise`` with p components along the last axis; other axes are other vectors,
each by itself. These functions are the arithmetic and check nothing that they are given;
`cloister.queries.postprocessing` has them for users, with what they are good for.

With a Laplace prior of rate alpha, the posterior mean is to first order in alpha ``x - variance * alpha`` for Laplace
noise and for normal noise alike; `empirical_bayes` takes ``alpha = p / |x|_1``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.errors import ParameterError

__all__ = [
    "clip",
    "empirical_bayes",
    "james_stein",
    "laplace_posterior_mean",
    "norm_sub",
    "normal_posterior_mean",
    "prior_rate",
    "project_to_simplex",
]


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
    # Numbers reach zero in the order of their breaks: those that stay positive come first.
    order = np.argsort(-breaks, kind="stable")
    shifts = (np.cumsum(numbers[order]) - total) / np.cumsum(spread[order])
    kept = np.flatnonzero(breaks[order] > shifts)
    # The last number that is still above its shift ends the part that is kept; with a total of 0 there may be none.
    shift = shifts[kept[-1]] if kept.size else breaks[order[0]]
    return np.asarray(np.maximum(numbers - shift * spread, 0.0))


def norm_sub(values: ArrayLike, *, total: float = 1.0) -> Floats:
    """Return numbers that add up to a total: negative ones become 0, the others share the difference, until all fit.

    Where nothing is above 0, all come out equal.

    >>> norm_sub([0.5, -0.01])
    array([1., 0.])
    """
    cells = clip(_numbers(values, total))
    # Each round sets at least one more number to zero, so that it ends.
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


_SMALLEST = 1e-150
_SERIES_BELOW = 0.5
_SERIES_TERMS = 18


def james_stein(noisy: Floats, *, variance: float) -> Floats:
    """Return vectors times the positive part of ``1 - variance (p - 2) / |x|^2``; a zero vector stays."""
    with np.errstate(over="ignore"):
        size = (noisy * noisy).sum(axis=-1, keepdims=True)
        # Where the square overflows nothing is shrunk, and a zero vector is not divided by.
        shrinking = variance * max(noisy.shape[-1] - 2, 0) / np.where(size > 0, size, np.inf)
    return np.asarray(noisy * np.maximum(0.0, 1 - shrinking))


def prior_rate(noisy: Floats) -> Floats:
    """Return ``p / |x|_1`` of each vector: the likeliest rate of a Laplace prior. It is large for a zero vector."""
    total = np.abs(noisy).sum(axis=-1, keepdims=True)
    return np.asarray(1 / np.maximum(total / noisy.shape[-1], _SMALLEST))


def empirical_bayes(noisy: Floats, *, variance: float, positive_part: bool = True) -> Floats:
    """Return each number moved by ``variance p / |x|_1`` towards zero; with the positive part, at most to zero."""
    smaller = np.abs(noisy) - variance * prior_rate(noisy)
    return np.asarray(np.sign(noisy) * (np.maximum(smaller, 0.0) if positive_part else smaller))


def laplace_posterior_mean(noisy: Floats, *, scale: float, prior: Floats | float) -> Floats:
    """Return the posterior mean for Laplace noise of a scale b and a Laplace prior of a rate.

    With ``lambda = 1/b``, prior rate ``alpha``, ``z = (lambda - alpha) abs(x)`` and ``k = exp(-z)`` it is ``sign(x)
    lambda / (lambda - alpha k) (abs(x) - 2 alpha (1 - k) / (lambda^2 - alpha^2))``. Both fractions are 0/0 where the
    rates agree (the mean is x/2 there), so it is computed as ``lambda x / (lambda + alpha)`` times
    ``(1 + 2 alpha abs(x) psi(z)) / (1 + alpha abs(x) phi(z))`` with ``phi(z) = (1 - exp(-z)) / z`` and
    ``psi(z) = (z - 1 + exp(-z)) / z^2``, which have no such trouble.
    """
    rate, size = 1 / scale, np.abs(noisy)
    gap = (rate - prior) * size
    share = np.exp(np.minimum(gap, 0.0))  # keeps both sums finite where the prior is narrower than the noise
    first, second = _first_ratio(np.abs(gap)), _second_ratio(gap)
    mean = rate / (rate + prior) * noisy
    return np.asarray(mean * (share + 2 * prior * size * second) / (share + prior * size * first))


def normal_posterior_mean(noisy: Floats, *, deviation: float, prior: Floats | float) -> Floats:
    """Return the posterior mean for normal noise and a Laplace prior of a rate.

    The posterior is a mixture of two normal laws with means ``x - s`` and ``x + s``, cut off at zero, for ``s = alpha
    sigma^2``; the terms at the cut cancel. Their odds are ``exp(-2 alpha x) Phi((x - s) / sigma) / Phi((-x - s) /
    sigma)``, computed by logarithms.
    """
    from scipy.special import expit, log_ndtr

    shift = prior * deviation**2
    # Far out both probabilities are zero in doubles, while their logarithms are not.
    above, below = log_ndtr((noisy - shift) / deviation), log_ndtr((-noisy - shift) / deviation)
    odds = above - below - 2 * prior * noisy
    return np.asarray(noisy + shift * (1 - 2 * expit(odds)))


def _first_ratio(z: Floats) -> Floats:
    """Return (1 - exp(-z)) / z for z >= 0."""
    return np.asarray(np.where(z > 0, -np.expm1(-z) / np.where(z > 0, z, 1.0), 1.0))


def _second_ratio(z: Floats) -> Floats:
    """Return (z - 1 + exp(-z)) / z^2, times exp(z) where z < 0; by its series where that would cancel."""
    small = np.abs(z) < _SERIES_BELOW
    # Each formula gets harmless numbers where the other one is used, since both are computed everywhere.
    near, far = np.where(small, z, 0.0), np.where(small, 1.0, z)
    term, series = np.full(z.shape, 0.5), np.zeros(z.shape)
    for order in range(_SERIES_TERMS):
        series, term = series + term, term * -near / (order + 3)
    scale = np.exp(np.minimum(far, 0.0))
    direct = (scale * (far - 1) + np.exp(-np.maximum(far, 0.0))) / far**2
    return np.where(small, series * np.exp(np.minimum(near, 0.0)), direct)
