"""Conversions between kinds of guarantees, each rounded towards a larger stated loss.

Exact ones return rationals through `cloister.core.exact`. Numerical ones are computed in doubles and moved up by a
margin that bounds the rounding error: `_ULPS` = 64 units in the last place for every intermediate value.

The exact privacy of Gaussian noise is here, too.
Noise of ``sigma = m * sensitivity`` is (epsilon, delta)-private exactly when
``delta >= Phi(mu/2 - epsilon/mu) - exp(epsilon) * Phi(-mu/2 - epsilon/mu)`` with ``mu = 1/m``. The float evaluation
works in logarithms. `scipy.special.log_ndtr` is accurate to a few units in the last place; 64 of them are charged for
every intermediate value, times the condition of the subtraction, towards more loss.

Sources: Bun and Steinke (2016) for zero-concentrated privacy; Canonne, Kamath and Steinke (2020), proposition 12 and
corollary 13, for the optimal conversion; Balle and Wang (2018), theorem 8, and Dong, Roth and Su (2022),
corollary 1, for the Gaussian curve.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact, validation
from cloister.core.exact import Number
from cloister.core.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from cloister.errors import AccountingError, ParameterError

__all__ = [
    "analytic_gaussian_delta",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "pure_to_zero_concentrated",
    "renyi_to_delta",
    "renyi_to_epsilon",
    "zero_concentrated_to_approx",
    "zero_concentrated_to_delta",
    "zero_concentrated_to_epsilon",
]


_ULPS = 64 * sys.float_info.epsilon
_LARGEST_MU = 1e6
_LEAST_CURVE_DELTA = Fraction(1, 10**300)


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
    # The second term is never the larger one; where floats say so, it is rounding.
    gap = min(second - first, 0.0)
    error = _ULPS * (abs(first) + abs(second) + 2 * epsilon + 1)
    # A larger gap means a larger delta: the error counts on both factors.
    gap_below = gap - error
    return min(1.0, math.exp(first + error) * -math.expm1(gap_below))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which a mu-Gaussian-private mechanism has at most a delta above 0."""
    validation.check_delta(delta, allow_zero=False)
    if mu > _LARGEST_MU:
        raise ParameterError("There is too little Gaussian noise to speak of privacy.", fix="use more noise.")
    return smallest_where(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, start=max(mu, 1e-12))


def gaussian_multiplier(epsilon: Number, delta: Number) -> Fraction:
    """Return the smallest noise multiplier sigma / sensitivity for (epsilon, delta), rounded up (analytic calibration).

    >>> round(float(gaussian_multiplier(1, 1e-5)), 6)
    3.730632
    """
    slack = validation.check_delta(delta, allow_zero=False)
    if slack < _LEAST_CURVE_DELTA:
        raise ParameterError("delta is too small to calibrate Gaussian noise.", fix="use delta of at least 1e-300.")
    target = exact.float_below(slack)
    most = exact.float_below(validation.check_epsilon(epsilon))
    low, high = 0.0, 1.0
    while gaussian_delta(1 / high, most) > target:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        # Only high is returned, a multiplier at which delta was found small enough.
        low, high = (middle, high) if middle == 0 or gaussian_delta(1 / middle, most) > target else (low, middle)
    return Fraction(high)


def classic_gaussian_multiplier(epsilon: Number, delta: Number) -> Fraction:
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
    # The condition failed at the point before the last doubling.
    low = 0.0 if high == start else high / 2
    middle = (low + high) / 2
    # It ends when no double lies between the two.
    while low < middle < high:
        low, high = (low, middle) if reached(middle) else (middle, high)
        middle = (low + high) / 2
    return high


_SMALLEST_DELTA = 1e-300
Floats = NDArray[np.float64]


def pure_to_zero_concentrated(guarantee: PureDP) -> ZeroConcentratedDP:
    """Return the zero-concentrated guarantee that a pure one implies: rho = epsilon**2 / 2."""
    return ZeroConcentratedDP(
        rho=guarantee.epsilon**2 / 2,
        adjacency=guarantee.adjacency,
        unit=guarantee.unit,
        assumptions=guarantee.assumptions,
        caveats=guarantee.caveats,
    )


def zero_concentrated_to_approx(guarantee: ZeroConcentratedDP, *, delta: Number, method: str = "optimal") -> ApproxDP:
    """Return the (epsilon, delta) guarantee that a zero-concentrated one implies at a delta.

    Args:
        guarantee: The zero-concentrated guarantee; its own delta is part of the delta asked for.
        delta: The delta of the result.
        method: "simple" is ``rho + 2 sqrt(rho ln(1/delta))``; "optimal" is the best that rho alone implies.
    """
    wanted = validation.check_delta(delta, allow_zero=False)
    validation.check_choice(method, name="method", allowed=("simple", "optimal"))
    if wanted <= guarantee.delta:
        raise delta_too_small(guarantee.delta)
    left = wanted - guarantee.delta
    simple = _simple_epsilon(guarantee.rho, left)
    epsilon = simple if method == "simple" else min(simple, zero_concentrated_to_epsilon(guarantee.rho, delta=left))
    return ApproxDP(
        epsilon=epsilon,
        delta=wanted,
        adjacency=guarantee.adjacency,
        unit=guarantee.unit,
        assumptions=guarantee.assumptions,
        caveats=guarantee.caveats,
    )


def zero_concentrated_to_epsilon(rho: Fraction, *, delta: Fraction) -> Fraction:
    """Return the smallest epsilon that rho implies at a delta, minimizing the Rényi conversion over all orders."""
    if rho == 0:
        return Fraction(0)
    slack, height = float_delta(delta), exact.float_above(rho)
    # The best order of the simple conversion; finer and finer grids around it look for the optimal one, all being
    # valid.
    center = max(math.sqrt(-math.log(slack) / height), 1e-6)
    for width in (1e4, 1.2, 1.01):
        orders = 1 + center * np.geomspace(1 / width, width, 401)
        values = _renyi_epsilons(orders, orders * height, slack)
        center = float(orders[int(np.argmin(values))] - 1)
    return exact.upper(max(0.0, float(values.min())))


def zero_concentrated_to_delta(rho: Fraction, *, epsilon: Fraction) -> Fraction:
    """Return the smallest delta that rho implies at an epsilon, minimizing the Rényi conversion over all orders."""
    if rho == 0:
        return Fraction(0)
    wanted, height, center = exact.float_below(epsilon), exact.float_above(rho), 10**1.5
    found = 1.0
    for width in (10**7.5, 1.2, 1.01, 1.0001):
        orders = 1 + center * np.geomspace(1 / width, width, 2001)
        exponents = _renyi_exponents(orders, orders * height, wanted)
        best = int(np.argmin(exponents))
        center, found = float(orders[best] - 1), min(found, math.exp(min(0.0, float(exponents[best]))))
    return exact.upper(found)


def renyi_to_epsilon(orders: Floats, losses: Floats, *, delta: float) -> float:
    """Return the epsilon at a delta of a Rényi curve: losses[i] bounds the divergence of order orders[i] > 1.

    The conversion is ``loss + ln((a-1)/a) - (ln delta + ln a)/(a-1)``, minimized over the given orders.
    """
    return max(0.0, float(np.min(_renyi_epsilons(orders, losses, delta))))


def renyi_to_delta(orders: Floats, losses: Floats, *, epsilon: float) -> float:
    """Return the delta at an epsilon of a Rényi curve, at most 1."""
    # Samples are known at some orders only; without any order nothing is promised, and delta is 1.
    usable = np.isfinite(losses)
    orders, losses = orders[usable], losses[usable]
    exponents = _renyi_exponents(orders, losses, epsilon)
    return min(1.0, math.exp(min(0.0, float(np.min(exponents, initial=0.0)))))


def _renyi_exponents(orders: Floats, losses: Floats, epsilon: float) -> Floats:
    """Return the logarithm of the delta that each order gives, rounded up."""
    exponents = (orders - 1) * (losses - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    margins = _ULPS * ((orders - 1) * (np.abs(losses) + abs(epsilon) + 1) + np.log(orders) + 1)
    return np.asarray(exponents + margins)


def gaussian_mu(*, epsilon: float, delta: float) -> float:
    """Return the largest mu (rounded down) whose Gaussian curve passes under (epsilon, delta)."""
    above = smallest_where(lambda mu: gaussian_delta(mu, epsilon=epsilon) > delta, start=1e-12)
    # The point found is one where the curve was too high already.
    return above * (1 - 1e-12)


def analytic_gaussian_delta(sigma: float, *, sensitivity: float, epsilon: float) -> float:
    """Return the exact delta of Gaussian noise of a standard deviation at an epsilon, rounded up."""
    return gaussian_delta(sensitivity / sigma * (1 + 4 * np.finfo(float).eps), epsilon=epsilon)


def delta_too_small(floor: Fraction) -> AccountingError:
    """Return the error for a delta that the releases' own deltas already use up, or that is too small for floats."""
    return AccountingError(
        f"At this delta nothing can be promised: it must be above {float(floor):g}.",
        fix=f"ask for a delta above {float(floor):g}.",
    )


def float_delta(delta: Fraction) -> float:
    """Return a delta as a float, rounded down, or raise if that would be nothing."""
    value = exact.float_below(delta)
    if value < _SMALLEST_DELTA:
        raise delta_too_small(Fraction(_SMALLEST_DELTA))
    return value


def _simple_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    return rho + 2 * exact.sqrt_bounds(rho * exact.log_bounds(1 / delta)[1])[1]


def _renyi_epsilons(orders: Floats, losses: Floats, delta: float) -> Floats:
    slack = (math.log(delta) + np.log(orders)) / (orders - 1)
    values = losses + np.log1p(-1 / orders) - slack
    margin: Floats = _ULPS * (np.abs(losses) + np.abs(slack) + 1 + 1 / (orders - 1))
    return np.asarray(values + margin, dtype=float)
