"""Does a guarantee admit what an event loses? A second, independent way to the numbers of a mechanism."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from cloister.accounting.events import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ZeroConcentratedEvent,
)
from cloister.accounting.gaussian import gaussian_delta
from cloister.core.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP

__all__ = ["covers"]

_ROUNDING = 1 + 1e-9


def covers(guarantee: Guarantee, event: Event) -> bool:
    """Return whether a guarantee admits what an event loses; False for pairs that are not known to agree.

    Pure losses and rho are compared exactly; deltas are computed in floating point, with a relative slack of 1e-9.
    """
    match guarantee:
        case PureDP(epsilon=epsilon):
            pure = _pure_epsilon(event)
            return pure is not None and pure <= epsilon
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _delta(event, epsilon) <= float(delta) * _ROUNDING
        case ZeroConcentratedDP(rho=rho, delta=delta):
            lost = _rho(event)
            return lost is not None and lost[0] <= rho and lost[1] <= delta
    return False


def _pure_epsilon(event: Event) -> Fraction | None:
    match event:
        case PureEvent(epsilon=epsilon):
            return epsilon
        case DiscreteLaplaceEvent():
            return event.epsilon
        case LaplaceEvent(noise_multiplier=multiplier):
            return 1 / multiplier
    return None


def _rho(event: Event) -> tuple[Fraction, Fraction] | None:
    match event:
        case ZeroConcentratedEvent(rho=rho, delta=delta):
            return rho, delta
        case GaussianEvent(squared_multiplier=square):
            return 1 / (2 * square), Fraction(0)
        case DiscreteGaussianEvent(squared_sigma=sigma, squared_sensitivity=sensitivity):
            return sensitivity / (2 * sigma), Fraction(0)
    pure = _pure_epsilon(event)
    return None if pure is None else (pure**2 / 2, Fraction(0))


def _delta(event: Event, epsilon: Fraction) -> float:
    """Return the delta of an event at an epsilon, 1 where it is not known."""
    match event:
        case PureEvent() | LaplaceEvent() | DiscreteLaplaceEvent():
            return _pure_delta(event, epsilon)
        case ApproxEvent(epsilon=lost, delta=delta):
            return float(delta) if lost <= epsilon else 1.0
        case GaussianEvent(squared_multiplier=square):
            return gaussian_delta(1 / math.sqrt(square), float(epsilon))
    return 1.0


def _pure_delta(event: PureEvent | LaplaceEvent | DiscreteLaplaceEvent, epsilon: Fraction) -> float:
    match event:
        case PureEvent(epsilon=lost):
            # Any pure mechanism is dominated by randomized response of its epsilon (Kairouz, Oh and Viswanath 2015).
            delta = -math.expm1(float(epsilon - lost)) / (1 + math.exp(-float(lost)))
        case LaplaceEvent(noise_multiplier=multiplier):
            delta = -math.expm1(float(epsilon - 1 / multiplier) / 2)
        case _:
            delta = _discrete_laplace_delta(float(event.scale), event.sensitivity, float(epsilon))
    return max(delta, 0.0)


def _discrete_laplace_delta(scale: float, sensitivity: int, epsilon: float) -> float:
    """Return the hockey-stick divergence of discrete Laplace noise and the same noise ``sensitivity`` steps away.

    The privacy loss is constant outside the two centers: below the first it is at its highest, above the second lowest.
    """
    ratio = math.exp(-1 / scale)
    between = np.arange(0, sensitivity + 1)
    mass = (1 - ratio) / (1 + ratio)
    here, there = ratio**between, math.exp(epsilon) * ratio ** (sensitivity - between)
    below = ratio / (1 - ratio) * max(0.0, 1 - math.exp(epsilon - sensitivity / scale))
    return mass * (float(np.maximum(here - there, 0).sum()) + below)
