"""Rényi composition: divergences of each order add up (Mironov 2017).

Known curves: Gaussian and discrete Gaussian noise (the same curve, Canonne, Kamath and Steinke 2020), Laplace and
discrete Laplace noise, any pure release (as randomized response, its worst case), zero-concentrated releases, and
Poisson samples of all these: the exact sum for Gaussian noise (Mironov, Talwar and Zhang 2019) and the general bound of
Zhu and Wang (2019, theorem 5), both at integer orders. Slacks in delta are added separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.accountants._dominating_pairs import laplace_like, log_moment
from cloister.accounting.accountants.base import Events, check_supported, has_approx_loss
from cloister.accounting.accountants.closed_form import has_zero_concentrated_loss, zero_concentrated_loss
from cloister.accounting.conversions import delta_too_small, float_delta, renyi_to_delta, renyi_to_epsilon
from cloister.accounting.events import (
    ApproxEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    SubsampledEvent,
    ZeroConcentratedEvent,
)
from cloister.core import exact, validation
from cloister.core.exact import Number, sum_above
from cloister.errors import ParameterError

__all__ = ["RenyiAccountant"]

Floats = NDArray[np.float64]

INTEGER_ORDERS = np.arange(2.0, 257.0)
ORDERS = np.union1d(1 + np.geomspace(1e-4, 1e7, 331), INTEGER_ORDERS)
"""The orders at which divergences are added; samples are known at the integers only."""

_ROUNDING = 64 * np.finfo(float).eps
_CHUNK = 2048


class RenyiAccountant:
    """Adds divergences over a grid of orders, then converts at the best order.

    >>> from cloister.accounting.events import LaplaceEvent
    >>> round(float(RenyiAccountant().divergence(LaplaceEvent(noise_multiplier=1), order=2)), 6)
    0.619124
    """

    name = "renyi"

    def supports(self, event: Event) -> bool:
        """Return whether the event has a Rényi curve; samples of one that holds only up to delta have none."""
        if not isinstance(event, SubsampledEvent):
            return has_zero_concentrated_loss(event)
        return has_approx_loss(event.event) or (has_zero_concentrated_loss(event.event) and not _own_delta(event.event))

    def divergence(self, events: Events, *, order: float) -> Fraction:
        """Return an upper bound of the Rényi divergence of one order above 1, without slacks in delta."""
        found = float(_curve(check_supported(self, events), np.array([float(order)]))[0]) if order > 1 else np.nan
        if not np.isfinite(found):
            raise ParameterError(
                "The divergence of this order is not known.",
                fix="use an order above 1; for samples, a whole number from 2 to 256.",
            )
        return exact.upper(found)

    def epsilon(self, events: Events, *, delta: Number) -> Fraction:
        """Return epsilon at a delta above 0."""
        wanted = validation.check_delta(delta, allow_zero=False)
        counts = check_supported(self, events)
        slack = _slack(counts)
        if wanted <= slack:
            raise delta_too_small(slack)
        found = renyi_to_epsilon(ORDERS, _curve(counts, ORDERS), delta=float_delta(wanted - slack))
        return exact.upper(found) if found else Fraction(0)

    def delta(self, events: Events, *, epsilon: Number) -> Fraction:
        """Return delta at an epsilon."""
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        counts = check_supported(self, events)
        found = renyi_to_delta(ORDERS, _curve(counts, ORDERS), epsilon=exact.float_below(wanted))
        return min(Fraction(1), exact.upper(found) + _slack(counts))


def _slack(counts: Mapping[Event, int]) -> Fraction:
    slacks = ((count, _own_delta(event)) for event, count in counts.items())
    return sum_above(count * slack for count, slack in slacks if slack)


def _own_delta(event: Event) -> Fraction:
    if isinstance(event, SubsampledEvent):
        return _own_delta(event.event)
    return event.delta if isinstance(event, ApproxEvent | ZeroConcentratedEvent) else Fraction(0)


def _curve(counts: Mapping[Event, int], orders: Floats) -> Floats:
    """Return the divergences of a tally at given orders; infinite where a sample is not known."""
    total = np.zeros(len(orders))
    linear: list[float] = []
    laplace: list[tuple[float, int, int]] = []
    for event, count in counts.items():
        match event:
            case GaussianEvent() | DiscreteGaussianEvent() | ZeroConcentratedEvent():
                linear.append(exact.float_above(count * zero_concentrated_loss(event)[0]))
            case SubsampledEvent():
                total += count * _sampled_curve(event, orders)
            case _:
                laplace.append((*_pair(event), count))
    # A sum of floats may have lost a few digits, which the factor gives back.
    total += orders * (sum(linear) * (1 + 1e-12))
    for start in range(0, len(laplace), _CHUNK):
        total += _laplace_curve(laplace[start : start + _CHUNK], orders)
    return total


def _laplace_curve(rows: list[tuple[float, int, int]], orders: Floats) -> Floats:
    epsilons, steps, counts = (np.array(column, dtype=float)[:, None] for column in zip(*rows, strict=True))
    tilts = orders - 1
    moments = log_moment(tilts, epsilons, steps)
    margin = _ROUNDING * (1 + tilts * epsilons)
    # No divergence of a pure release is above its epsilon, and at large orders that is the better bound.
    return np.asarray((counts * np.minimum((moments + margin) / tilts, epsilons)).sum(axis=0), dtype=float)


def _sampled_curve(event: SubsampledEvent, orders: Floats) -> Floats:
    """Return the divergences of a Poisson sample: known at integer orders, infinite elsewhere.

    The bounds at integer orders are proven for releases without a delta; an approximate release keeps only the pure
    part of its amplified (epsilon, delta).
    """
    values = np.full(len(orders), np.inf)
    whole = np.isin(orders, INTEGER_ORDERS)
    if np.any(whole) and not _own_delta(event):
        inner = _curve({event.event: 1}, INTEGER_ORDERS)
        gaussian = isinstance(event.event, GaussianEvent)
        bound: Callable[..., float] = _sampled_gaussian if gaussian else _sampled_general
        values[whole] = [bound(int(order), inner, exact.float_above(event.rate)) for order in orders[whole]]
    return values if not has_approx_loss(event) else np.minimum(values, _laplace_curve([(*_pair(event), 1)], orders))


def _sampled_gaussian(order: int, inner: Floats, rate: float) -> float:
    """Return the divergence of sampled Gaussian noise: a binomial mixture of exp(j (j-1) / (2 m**2))."""
    index = np.arange(order + 1)
    # At order 2 the divergence of Gaussian noise is 2 rho.
    rho = inner[0] / 2
    terms = _log_binomial(order, rate) + index * (index - 1) * rho
    return _log_sum(terms) / (order - 1)


def _sampled_general(order: int, inner: Floats, rate: float) -> float:
    """Return the bound of Zhu and Wang for a sample of any release with divergences ``inner`` at orders 2, 3, ..."""
    weights = _log_binomial(order, rate)
    powers = np.arange(2, order + 1)
    terms = weights[2:] + (powers - 1) * inner[: order - 1]
    # The bound has its factor 3 from the third power on.
    terms[1:] += np.log(3)
    first = (order - 1) * np.log1p(-rate) + np.log1p((order - 1) * rate)
    return _log_sum(np.append(terms, first)) / (order - 1)


def _log_binomial(order: int, rate: float) -> Floats:
    from scipy.special import gammaln

    index = np.arange(order + 1)
    choices = gammaln(order + 1) - gammaln(index + 1) - gammaln(order - index + 1)
    return np.asarray(choices + index * np.log(rate) + (order - index) * np.log1p(-rate), dtype=float)


def _log_sum(terms: Floats) -> float:
    """Return ln(sum(exp(terms))), rounded up by a margin for the terms' own rounding."""
    peak = float(terms.max())
    size = float(np.abs(terms[np.isfinite(terms)]).max())
    # A moment of a likelihood ratio is at least 1, so that a negative logarithm is rounding.
    return max(0.0, peak + float(np.log(np.exp(terms - peak).sum()))) + _ROUNDING * (1 + size)


def _pair(event: Event) -> tuple[float, int]:
    pair, _ = laplace_like(event)
    return pair.epsilon, pair.steps
