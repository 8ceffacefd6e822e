"""The exact privacy of Gaussian noise (Balle and Wang 2018; Dong, Roth and Su 2022).

Noise of ``sigma = m * sensitivity`` is (epsilon, delta)-private exactly when
``delta >= Phi(mu/2 - epsilon/mu) - exp(epsilon) * Phi(-mu/2 - epsilon/mu)`` with ``mu = 1/m``. The float evaluation
works in logarithms; each result is widened by far more than its rounding error, towards more loss.
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.special import log_ndtr

from cloister.core import exact, validation
from cloister.errors import ParameterError

_RELATIVE = 1e-11


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return an upper bound, tight to about 11 digits, of the delta of mu-Gaussian differential privacy."""
    if mu == 0:
        return 0.0
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    gap = -math.expm1(min(second - first, 0.0))
    slack = _RELATIVE + _RELATIVE * (1 + abs(first)) / max(gap, _RELATIVE)
    return min(1.0, math.exp(first) * gap * (1 + slack))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon, rounded up, at which mu-Gaussian differential privacy has a delta."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu, middle) > delta else (low, middle)
    return high


def gaussian_multiplier(epsilon: object, delta: object) -> Fraction:
    """Return the smallest noise multiplier sigma / sensitivity for (epsilon, delta), rounded up (analytic calibration).

    >>> round(float(gaussian_multiplier(1, 1e-5)), 6)
    3.730632
    """
    target = exact.float_below(validation.check_delta(delta, allow_zero=False))
    most = exact.float_below(validation.check_epsilon(epsilon))
    low, high = 0.0, 1.0
    while gaussian_delta(1 / high, most) > target:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle == 0 or gaussian_delta(1 / middle, most) > target else (low, middle)
    return Fraction(high)


def classic_gaussian_multiplier(epsilon: object, delta: object) -> Fraction:
    """Return the textbook multiplier sqrt(2 ln(1.25/delta)) / epsilon, proven for epsilon below 1 only."""
    loss = validation.check_epsilon(epsilon)
    slack = validation.check_delta(delta, allow_zero=False)
    if loss >= 1:
        raise ParameterError(
            "The classic Gaussian calibration is proven for epsilon below 1 only; above, it can break its promise.",
            fix='use calibration="analytic", which is valid for every epsilon and needs less noise.',
        )
    logarithm = exact.log_bounds(Fraction(5, 4) / slack)[1]
    return exact.sqrt_bounds(2 * logarithm)[1] / loss
