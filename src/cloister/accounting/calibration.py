"""How much Gaussian noise a plan of releases needs, when only the accountants know what it amounts to.

Noise multipliers of a plan with Poisson samples have no closed form. They are searched for with the same bound that a
ledger asks for, so that a plan calibrated to (epsilon, delta) is also accepted at that price. Every answer is one for
which the bound was found to hold; how close it is to the smallest one is a matter of accuracy, not of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from cloister.accounting.accountants.automatic import compose
from cloister.accounting.events import Event
from cloister.core import validation
from cloister.core.guarantees import ApproxDP
from cloister.errors import AccountingError, ParameterError

__all__ = ["calibrated_multiplier"]

_FINE = 2**32
_CLOSE = 0.995
_MOST_TRIALS = 40
_SMALLEST, _LARGEST = 2.0**-4, 2.0**40
_HOPELESS = 1e3


def calibrated_multiplier(plan: Callable[[Fraction], Event], *, epsilon: object, delta: object) -> Fraction:
    """Return a squared noise multiplier with which a plan is (epsilon, delta)-private, close to the smallest one.

    Args:
        plan: the event of the whole plan, given the squared multiplier; more noise must never lose more.
        epsilon: what the plan may lose.
        delta: what it may lose besides; above 0.

    Raises:
        ParameterError: if no multiplier is large enough.

    >>> from cloister.accounting.events import GaussianEvent, RepeatedEvent, SubsampledEvent
    >>> def steps(squared: Fraction) -> Event:
    ...     noise = GaussianEvent(squared_multiplier=squared)
    ...     return RepeatedEvent(event=SubsampledEvent(rate=Fraction(1, 100), event=noise), count=1000)
    >>> round(math.sqrt(calibrated_multiplier(steps, epsilon=1, delta=1e-5)), 2)
    1.41
    """
    loss = validation.check_epsilon(epsilon)
    slack = validation.check_delta(delta, allow_zero=False)
    return _Search(plan, loss, slack).smallest()


class _Search:
    """A search for the smallest multiplier between one that is too small and one that is large enough."""

    def __init__(self, plan: Callable[[Fraction], Event], epsilon: Fraction, delta: Fraction) -> None:
        self._plan, self._epsilon, self._delta = plan, epsilon, delta
        self._goal = math.log(delta)

    def smallest(self) -> Fraction:
        low, high = 0.5, 1.0
        below, above = math.inf, self._excess(high)
        while above > 0:
            low, below, high = high, above, 2 * high
            if high > _LARGEST:
                raise ParameterError(
                    "No noise is enough for this plan.", fix="use fewer steps, a larger epsilon or a larger delta."
                )
            above = self._excess(high)
        while below == math.inf and low >= _SMALLEST:
            below = self._excess(low)
            if below <= 0:
                low, below, high, above = low / 2, math.inf, low, below
        return self._between(low, below, high, above) if low >= _SMALLEST else _squared(high)

    def _between(self, low: float, below: float, high: float, above: float) -> Fraction:
        """Return a multiplier by bisection and regula falsi in turn; ``high`` is always large enough."""
        for trial in range(_MOST_TRIALS):
            if above >= math.log(_CLOSE) or high <= low * (1 + 1e-6):
                break
            share = below / (below - above) if trial % 2 == 0 else 0.5
            middle = low * (high / low) ** min(max(share * 1.02, 0.02), 0.98)
            excess = self._excess(middle)
            low, below, high, above = (middle, excess, high, above) if excess > 0 else (low, below, middle, excess)
        return _squared(high)

    def _excess(self, multiplier: float) -> float:
        """Return by how much the logarithm of delta is too large."""
        try:
            event = self._plan(_squared(multiplier))
            found = compose(event, epsilon=self._epsilon, adjacency="add_remove", unit="row")
        except AccountingError:
            return _HOPELESS
        delta = found.delta if isinstance(found, ApproxDP) else Fraction(0)
        return math.log(max(float(delta), 1e-300)) - self._goal


def _squared(multiplier: float) -> Fraction:
    return Fraction(math.ceil(multiplier**2 * _FINE), _FINE)
