"""Zero-concentrated composition: rhos add up, exactly (Bun and Steinke 2016)."""

from __future__ import annotations

from fractions import Fraction

from cloister.accounting.accountants.base import Events, approx_loss, has_approx_loss, supported
from cloister.accounting.conversions import zero_concentrated_to_approx, zero_concentrated_to_delta
from cloister.accounting.events import DiscreteGaussianEvent, Event, GaussianEvent, ZeroConcentratedEvent
from cloister.accounting.sums import sum_above
from cloister.core import validation
from cloister.core.guarantees import ZeroConcentratedDP
from cloister.errors import ParameterError

__all__ = ["ZeroConcentratedAccountant", "zero_concentrated_loss"]


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
        for event, count in supported(self, events).items():
            rho, slack = zero_concentrated_loss(event)
            rhos.append(rho * count)
            deltas.append(slack * count)
        delta = sum_above(deltas)
        if delta >= 1:
            raise ParameterError("The deltas of the events reach 1.", fix="use fewer events or smaller deltas.")
        return ZeroConcentratedDP(rho=sum_above(rhos), delta=delta)

    def epsilon(self, events: Events, *, delta: object) -> Fraction:
        """Return epsilon at a delta above 0."""
        return zero_concentrated_to_approx(self.rho(events), delta=delta, method=self.method).epsilon

    def delta(self, events: Events, *, epsilon: object) -> Fraction:
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
