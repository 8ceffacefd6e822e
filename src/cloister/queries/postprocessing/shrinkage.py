"""Estimates of many noisy numbers at once that beat taking each for itself: shrinkage towards zero.

The noisy numbers are ``x = theta + noise`` with p components and independent noise of a public size.

- `james_stein` (James and Stein 1961; positive part, Baranchik 1964): one factor for all, ``1 - s2 (p - 2) / |x|^2``,
  where s2 is the *variance* of the noise, 2 b^2 for Laplace noise of scale b. A factor for all never changes an order.
- `posterior_mean`: the mean of theta given x, for Laplace noise of scale b and a Laplace prior of a public rate.
- `empirical_bayes`: the same with the rate read off the noisy numbers, ``p / |x|_1``, to first order in it: each
  component moves by ``2 p b^2 / |x|_1`` towards zero, and stops there.
- `shrink_counts`: for counts: clip at 0, `empirical_bayes`, clip at 0.

The smaller epsilon is, the larger is the gain. All of them are biased towards zero, and one component alone may get
worse while the sum of squared errors gets better.
"""

from __future__ import annotations

import sys
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ParameterError
from cloister.queries.postprocessing import _released

__all__ = ["empirical_bayes", "james_stein", "posterior_mean", "shrink_counts"]

Floats: TypeAlias = NDArray[np.float64]

_SERIES_BELOW = 0.5
_SERIES_TERMS = 18


def james_stein(values: object, *, variance: object) -> Floats:
    """Return the positive-part James-Stein estimate of at least three numbers with noise of a variance.

    >>> james_stein([30.0, 40.0, 0.0], variance=250)
    array([27., 36.,  0.])
    """
    noisy, spread = _released.row(values), _released.positive(variance, name="variance")
    if noisy.size < 3:
        raise ParameterError(
            "Shrinking all by one factor helps from three numbers on only.", fix="pass three or more, or leave them."
        )
    size = float(noisy @ noisy)
    return noisy * max(0.0, 1 - spread * (noisy.size - 2) / size) if size else noisy


def empirical_bayes(values: object, *, scale: object, positive_part: bool = True) -> Floats:
    """Return each number moved by ``2 p scale^2 / sum(abs(values))`` towards zero, at most to zero.

    Args:
        values: numbers with Laplace noise.
        scale: the scale b of that noise; its standard deviation over sqrt(2).
        positive_part: stop at zero; the bare first-order formula turns the sign of numbers below that step.

    >>> empirical_bayes([60.0, -30.0, 1.0, 9.0], scale=5)
    array([ 58., -28.,   0.,   7.])
    """
    noisy, width = _released.row(values), _released.positive(scale, name="scale")
    total = float(np.abs(noisy).sum())
    if total == 0:
        return noisy
    step = min(2 * noisy.size * width**2 / max(total, sys.float_info.min), sys.float_info.max)
    smaller = np.abs(noisy) - step
    return np.asarray(np.sign(noisy) * (np.maximum(smaller, 0.0) if positive_part else smaller))


def shrink_counts(values: object, *, scale: object) -> Floats:
    """Return estimates of counts: clipped at 0, shrunk by `empirical_bayes`, clipped at 0.

    >>> shrink_counts([60.0, -3.0, 0.5, 39.5], scale=5)
    array([58. ,  0. ,  0. , 37.5])
    """
    return empirical_bayes(np.maximum(_released.row(values), 0), scale=scale)


def posterior_mean(values: object, *, scale: object, prior_rate: object) -> Floats:
    """Return the exact posterior mean for Laplace noise of a scale b and a Laplace prior of a rate.

    With ``lambda = 1/b``, prior rate ``alpha``, ``z = (lambda - alpha) abs(x)`` and ``k = exp(-z)`` it is ``sign(x)
    lambda / (lambda - alpha k) (abs(x) - 2 alpha (1 - k) / (lambda^2 - alpha^2))``. Both fractions are 0/0 where the
    rates agree (the mean is x/2 there), so it is computed as ``lambda x / (lambda + alpha)`` times
    ``(1 + 2 alpha abs(x) psi(z)) / (1 + alpha abs(x) phi(z))`` with ``phi(z) = (1 - exp(-z)) / z`` and
    ``psi(z) = (z - 1 + exp(-z)) / z^2``, which have no such trouble.

    >>> posterior_mean([0.0, 0.5, 3.0, -3.0], scale=1, prior_rate=0.2).round(6)
    array([ 0.      ,  0.418776,  2.669568, -2.669568])
    """
    noisy = _released.row(values)
    rate, prior = 1 / _released.positive(scale, name="scale"), _released.positive(prior_rate, name="prior_rate")
    size = np.abs(noisy)
    gap = (rate - prior) * size
    share = np.exp(np.minimum(gap, 0.0))  # keeps both sums finite where the prior is narrower than the noise
    first, second = _first_ratio(np.abs(gap)), _second_ratio(gap)
    mean = rate / (rate + prior) * noisy
    return np.asarray(mean * (share + 2 * prior * size * second) / (share + prior * size * first))


def _first_ratio(z: Floats) -> Floats:
    """Return (1 - exp(-z)) / z for z >= 0."""
    return np.asarray(np.where(z > 0, -np.expm1(-z) / np.where(z > 0, z, 1.0), 1.0))


def _second_ratio(z: Floats) -> Floats:
    """Return (z - 1 + exp(-z)) / z^2, times exp(z) where z < 0; by its series where that would cancel."""
    small = np.abs(z) < _SERIES_BELOW
    near, far = np.where(small, z, 0.0), np.where(small, 1.0, z)
    term, series = np.full(z.shape, 0.5), np.zeros(z.shape)
    for order in range(_SERIES_TERMS):
        series, term = series + term, term * -near / (order + 3)
    scale = np.exp(np.minimum(far, 0.0))
    direct = (scale * (far - 1) + np.exp(-np.maximum(far, 0.0))) / far**2
    return np.where(small, series * np.exp(np.minimum(near, 0.0)), direct)
