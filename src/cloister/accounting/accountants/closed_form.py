"""Accountants with closed forms: basic, zero-concentrated and Gaussian composition.

Basic composition: epsilons and deltas add up, exactly. Zero-concentrated composition: rhos add up, exactly (Bun and
Steinke 2016).

Gaussian differential privacy: any number of Gaussian releases is one Gaussian release, exactly.

Releases with noise multipliers m_1, m_2, ... are together mu-Gaussian private with ``mu**2 = sum 1/m_i**2``
(Dong, Roth and Su 2022, corollary 2), and the curve of a Gaussian is known in closed form.

Discrete Gaussian noise of variance s on a lattice is, up to a factor of 1 +- 1e-34 per coordinate, what one gets by
adding continuous Gaussian noise of variance s - 4 and then rounding at random with a discrete Gaussian of variance 4
around the result (the normalizer of a discrete Gaussian of variance t is constant up to 2 exp(-2 pi**2 t), which for
t = 4 is about 1e-34). Rounding is post-processing, so the loss is at most that of a Gaussian with squared multiplier
``(s - 4) / sensitivity**2``. The factor is charged to epsilon as 1e-33 for each coordinate that may differ, of
which there are at most ``sensitivity**2`` since they differ by whole steps. Below s = 64 the detour costs too much and
the event is refused here; the zero-concentrated and Rényi accountants know it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from cloister.accounting.accountants.base import Events, approx_loss, check_supported, has_approx_loss
from cloister.accounting.conversions import (
    delta_too_small,
    float_delta,
    gaussian_delta,
    gaussian_epsilon,
    zero_concentrated_to_approx,
    zero_concentrated_to_delta,
)
from cloister.accounting.events import DiscreteGaussianEvent, Event, GaussianEvent, ZeroConcentratedEvent
from cloister.core import exact, validation
from cloister.core.exact import Number, sum_above
from cloister.core.guarantees import ZeroConcentratedDP
from cloister.errors import AccountingError, ParameterError

__all__ = [
    "GaussianAccountant",
    "PureAccountant",
    "ZeroConcentratedAccountant",
    "combine_mu",
    "lattice_slack",
    "zero_concentrated_loss",
]


class PureAccountant:
    """Adds epsilons and deltas of events that are differentially private by themselves.

    >>> from cloister.accounting.events import PureEvent
    >>> PureAccountant().epsilon([PureEvent(epsilon=0.1)] * 10)
    Fraction(1, 1)
    """

    name = "pure"

    def supports(self, event: Event) -> bool:
        """Return whether the event has an epsilon of its own."""
        return has_approx_loss(event)

    def epsilon(self, events: Events, *, delta: Number = 0) -> Fraction:
        """Return the sum of the epsilons, if the deltas together stay within delta."""
        total, slack = self._totals(events)
        if slack > validation.check_delta(delta):
            raise delta_too_small(slack)
        return total

    def delta(self, events: Events, *, epsilon: Number) -> Fraction:
        """Return the sum of the deltas, or more when epsilon is below the sum of the epsilons.

        The worst mechanism with (E, d) has delta ``d + (1 - d) (exp(E) - exp(epsilon)) / (1 + exp(E))``
        (Kairouz, Oh and Viswanath 2017).
        """
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        total, slack = self._totals(events)
        if wanted >= total:
            return min(slack, Fraction(1))
        # Divided by exp(E) nothing overflows; the factor 1 - d is left out, which only adds to delta.
        shrunk = exact.exp_bounds(-total)
        rest = (1 - exact.exp_bounds(wanted - total)[0]) / (1 + shrunk[0])
        return min(slack + rest, Fraction(1))

    def _totals(self, events: Events) -> tuple[Fraction, Fraction]:
        epsilons, deltas = [], []
        for event, count in check_supported(self, events).items():
            epsilon, delta = approx_loss(event)
            epsilons.append(epsilon * count if count > 1 else epsilon)
            if delta:
                deltas.append(delta * count)
        return sum_above(epsilons), sum_above(deltas)


class ZeroConcentratedAccountant:
    """Adds rhos, then converts once; ``method="simple"`` is the textbook conversion.

    >>> from cloister.accounting.events import GaussianEvent
    >>> accountant = ZeroConcentratedAccountant(method="simple")
    >>> round(float(accountant.epsilon([GaussianEvent(squared_multiplier=100)] * 100, delta=1e-5)), 5)
    5.29853
    """

    name = "zero_concentrated"

    def __init__(self, *, method: str = "optimal") -> None:
        self.method = validation.check_choice(method, name="method", allowed=("simple", "optimal"))

    def supports(self, event: Event) -> bool:
        """Return whether the event has a rho."""
        return has_zero_concentrated_loss(event)

    def rho(self, events: Events) -> ZeroConcentratedDP:
        """Return the sum of the rhos and of the deltas."""
        rhos, deltas = [], []
        for event, count in check_supported(self, events).items():
            rho, slack = zero_concentrated_loss(event)
            rhos.append(rho * count)
            deltas.append(slack * count)
        delta = sum_above(deltas)
        if delta >= 1:
            raise ParameterError("The deltas of the events reach 1.", fix="use fewer events or smaller deltas.")
        return ZeroConcentratedDP(rho=sum_above(rhos), delta=delta)

    def epsilon(self, events: Events, *, delta: Number) -> Fraction:
        """Return epsilon at a delta above 0."""
        return zero_concentrated_to_approx(self.rho(events), delta=delta, method=self.method).epsilon

    def delta(self, events: Events, *, epsilon: Number) -> Fraction:
        """Return delta at an epsilon, by the optimal conversion."""
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        total = self.rho(events)
        return min(Fraction(1), total.delta + zero_concentrated_to_delta(total.rho, epsilon=wanted))


def has_zero_concentrated_loss(event: Event) -> bool:
    """Return whether one event has a rho."""
    return isinstance(event, GaussianEvent | DiscreteGaussianEvent | ZeroConcentratedEvent) or has_approx_loss(event)


def zero_concentrated_loss(event: Event) -> tuple[Fraction, Fraction]:
    """Return the (rho, delta) of one event that has them."""
    match event:
        case GaussianEvent(squared_multiplier=squared):
            return 1 / (2 * squared), Fraction(0)
        case DiscreteGaussianEvent(squared_sigma=squared, squared_sensitivity=distance):
            return distance / (2 * squared), Fraction(0)
        case ZeroConcentratedEvent(rho=rho, delta=delta):
            return rho, delta
        case _:
            epsilon, slack = approx_loss(event)
            return epsilon**2 / 2, slack


SMALLEST_SQUARED_SIGMA = 64
_ROUNDING_VARIANCE = 4
_SLACK = Fraction(1, 10**33)
_LARGEST_SQUARED_MU = 10**12


class GaussianAccountant:
    """Composes Gaussian releases without any loss.

    >>> from cloister.accounting.events import GaussianEvent, RepeatedEvent
    >>> events = RepeatedEvent(event=GaussianEvent(squared_multiplier=100), count=100)
    >>> round(float(GaussianAccountant().epsilon(events, delta=1e-5)), 4)
    4.3772
    """

    name = "gaussian"

    def supports(self, event: Event) -> bool:
        """Return whether the event is Gaussian noise, or discrete Gaussian noise that is wide enough."""
        return squared_mu(event) is not None

    def epsilon(self, events: Events, *, delta: Number) -> Fraction:
        """Return epsilon at a delta above 0."""
        wanted = float_delta(validation.check_delta(delta, allow_zero=False))
        counts = check_supported(self, events)
        slack = lattice_slack(counts)
        found = gaussian_epsilon(combine_mu(counts), delta=wanted * (1 - 2 * float(slack)))
        return exact.upper(found) + slack if found else slack

    def delta(self, events: Events, *, epsilon: Number) -> Fraction:
        """Return delta at an epsilon."""
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        counts = check_supported(self, events)
        slack = lattice_slack(counts)
        found = gaussian_delta(combine_mu(counts), epsilon=exact.float_below(max(Fraction(0), wanted - slack)))
        return min(Fraction(1), exact.upper(found) * (1 + slack)) if found else Fraction(0)


def squared_mu(event: Event) -> Fraction | None:
    """Return the squared Gaussian parameter of an event, or None if it has none."""
    match event:
        case GaussianEvent(squared_multiplier=squared):
            return 1 / squared
        case DiscreteGaussianEvent(squared_sigma=squared, squared_sensitivity=distance) if (
            squared >= SMALLEST_SQUARED_SIGMA
        ):
            # Rounding at random is post-processing of continuous noise with that much less variance.
            return distance / (squared - _ROUNDING_VARIANCE)
        case _:
            return None


def combine_mu(counts: Mapping[Event, int]) -> float:
    """Return the Gaussian parameter of all Gaussian events of a tally together, rounded up."""
    # Squares are rational and add up exactly; the root is taken once, at the end.
    squares = (count * square for event, count in counts.items() if (square := squared_mu(event)) is not None)
    total = sum_above(squares)
    if total > _LARGEST_SQUARED_MU:
        raise AccountingError(
            "These Gaussian releases have hardly any noise: nothing useful can be promised about them.",
            fix="use a larger noise multiplier, or fewer releases.",
        )
    return exact.float_above(exact.sqrt_bounds(total)[1])


def lattice_slack(counts: Mapping[Event, int]) -> Fraction:
    """Return what the detour from discrete to continuous Gaussian noise adds to epsilon."""
    coordinates = sum(
        math.ceil(event.squared_sensitivity) * count
        for event, count in counts.items()
        if isinstance(event, DiscreteGaussianEvent)
    )
    return coordinates * _SLACK
