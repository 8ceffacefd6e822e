"""The exact privacy of Gaussian noise (Balle and Wang 2018; Dong, Roth and Su 2022).

Noise of ``sigma = m * sensitivity`` is (epsilon, delta)-private exactly when
``delta >= Phi(mu/2 - epsilon/mu) - exp(epsilon) * Phi(-mu/2 - epsilon/mu)`` with ``mu = 1/m``. The float evaluation
works in logarithms. `scipy.special.log_ndtr` is accurate to a few units in the last place; 64 of them are charged for
every intermediate value, times the condition of the subtraction, towards more loss.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

from cloister.core import exact, validation
from cloister.errors import ParameterError

_ULPS = 64 * sys.float_info.epsilon
_LARGEST_MU = 1e6
_SMALLEST_DELTA = Fraction(1, 10**300)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return delta(epsilon) of a mu-Gaussian-private mechanism: Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu).

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if mu == 0:
        return 0.0
    if mu > _LARGEST_MU:
        return 1.0
    from scipy.special import log_ndtr

    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    gap = min(second - first, 0.0)
    error = _ULPS * (abs(first) + abs(second) + 2 * epsilon + 1)
    gap_below = gap - error
    return min(1.0, math.exp(first + error) * -math.expm1(gap_below))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which a mu-Gaussian-private mechanism has at most a delta above 0."""
    validation.check_delta(delta, allow_zero=False)
    if mu > _LARGEST_MU:
        raise ParameterError("There is too little Gaussian noise to speak of privacy.", fix="use more noise.")
    return smallest_where(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, start=max(mu, 1e-12))


def gaussian_multiplier(epsilon: object, delta: object) -> Fraction:
    """Return the smallest noise multiplier sigma / sensitivity for (epsilon, delta), rounded up (analytic calibration).

    >>> round(float(gaussian_multiplier(1, 1e-5)), 6)
    3.730632
    """
    slack = validation.check_delta(delta, allow_zero=False)
    if slack < _SMALLEST_DELTA:
        raise ParameterError("delta is too small to calibrate Gaussian noise.", fix="use delta of at least 1e-300.")
    target = exact.float_below(slack)
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


def smallest_where(reached: Callable[[float], bool], *, start: float) -> float:
    """Return a point where a monotone condition holds, next to the smallest one; 0 if it holds there."""
    if reached(0.0):
        return 0.0
    high = start
    while not reached(high):
        high *= 2
    low = 0.0 if high == start else high / 2
    middle = (low + high) / 2
    while low < middle < high:
        low, high = (low, middle) if reached(middle) else (middle, high)
        middle = (low + high) / 2
    return high
