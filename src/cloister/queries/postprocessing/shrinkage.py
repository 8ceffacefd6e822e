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

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import shrinkage
from cloister.errors import ParameterError
from cloister.queries.postprocessing import _released

__all__ = ["empirical_bayes", "james_stein", "posterior_mean", "shrink_counts"]

Floats: TypeAlias = NDArray[np.float64]


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
    return shrinkage.james_stein(noisy, variance=spread)


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
    return shrinkage.empirical_bayes(noisy, variance=2 * width**2, positive_part=positive_part)


def shrink_counts(values: object, *, scale: object) -> Floats:
    """Return estimates of counts: clipped at 0, shrunk by `empirical_bayes`, clipped at 0.

    >>> shrink_counts([60.0, -3.0, 0.5, 39.5], scale=5)
    array([58. ,  0. ,  0. , 37.5])
    """
    return empirical_bayes(np.maximum(_released.row(values), 0), scale=scale)


def posterior_mean(values: object, *, scale: object, prior_rate: object) -> Floats:
    """Return the exact posterior mean for Laplace noise of a scale b and a Laplace prior of a rate.

    >>> posterior_mean([0.0, 0.5, 3.0, -3.0], scale=1, prior_rate=0.2).round(6)
    array([ 0.      ,  0.418776,  2.669568, -2.669568])
    """
    noisy = _released.row(values)
    width, prior = _released.positive(scale, name="scale"), _released.positive(prior_rate, name="prior_rate")
    return shrinkage.laplace_posterior_mean(noisy, scale=width, prior=prior)
