"""Conversions between kinds of guarantees, each rounded towards a larger stated loss.

Exact ones return rationals through `cloister.core.exact`. Numerical ones are computed in doubles and moved up by a
margin that bounds the rounding error: `_ULPS` = 64 units in the last place for every intermediate value.

Sources: Bun and Steinke (2016) for zero-concentrated privacy; Canonne, Kamath and Steinke (2020), proposition 12 and
corollary 13, for the optimal conversion; Balle and Wang (2018), theorem 8, and Dong, Roth and Su (2022),
corollary 1, for the Gaussian curve.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.gaussian import gaussian_delta, gaussian_epsilon, smallest_where
from cloister.core import exact, validation
from cloister.core.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from cloister.errors import AccountingError

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

_ULPS = 64 * np.finfo(float).eps
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


def zero_concentrated_to_approx(guarantee: ZeroConcentratedDP, *, delta: object, method: str = "optimal") -> ApproxDP:
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
