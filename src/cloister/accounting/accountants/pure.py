"""Basic composition: epsilons and deltas add up, exactly."""

from __future__ import annotations

from fractions import Fraction

from cloister.accounting.accountants.base import Events, approx_loss, has_approx_loss, supported
from cloister.accounting.conversions import delta_too_small
from cloister.accounting.events import Event
from cloister.accounting.sums import sum_above
from cloister.core import exact, validation

__all__ = ["PureAccountant"]


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

    def epsilon(self, events: Events, *, delta: object = 0) -> Fraction:
        """Return the sum of the epsilons, if the deltas together stay within delta."""
        total, slack = self._totals(events)
        if slack > validation.check_delta(delta):
            raise delta_too_small(slack)
        return total

    def delta(self, events: Events, *, epsilon: object) -> Fraction:
        """Return the sum of the deltas, or more when epsilon is below the sum of the epsilons.

        The worst mechanism with (E, d) has delta ``d + (1 - d) (exp(E) - exp(epsilon)) / (1 + exp(E))``
        (Kairouz, Oh and Viswanath 2017).
        """
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        total, slack = self._totals(events)
        if wanted >= total:
            return min(slack, Fraction(1))
        shrunk = exact.exp_bounds(-total)
        rest = (1 - exact.exp_bounds(wanted - total)[0]) / (1 + shrunk[0])
        return min(slack + rest, Fraction(1))

    def _totals(self, events: Events) -> tuple[Fraction, Fraction]:
        epsilons, deltas = [], []
        for event, count in supported(self, events).items():
            epsilon, delta = approx_loss(event)
            epsilons.append(epsilon * count if count > 1 else epsilon)
            if delta:
                deltas.append(delta * count)
        return sum_above(epsilons), sum_above(deltas)
