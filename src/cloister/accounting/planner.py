"""Plans: how to divide a budget between queries, in exact arithmetic, and how much noise a plan needs.

A policy is an iterator of exact budgets, one for each query. `uniform` and `explicit` end; `geometric` never does and
never exhausts the total. `zero_concentrated_share` answers "how much may each of n queries take, if they are accounted
together": many small Gaussian or Laplace releases get far more than 1/n of epsilon each.

`calibrate_multiplier` finds how much Gaussian noise a plan of releases needs, when only the accountants know what it
amounts to. Noise multipliers of a plan with Poisson samples have no closed form. They are searched for with the same
bound that a ledger asks for, so that a plan calibrated to (epsilon, delta) is also accepted at that price. Every answer
is one for which the bound was found to hold; how close it is to the smallest one is a matter of accuracy, not of
privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import repeat

from cloister.accounting.accountants.automatic import compose
from cloister.accounting.budget import Budget
from cloister.accounting.conversions import zero_concentrated_to_approx
from cloister.accounting.events import Event
from cloister.core import exact, validation
from cloister.core.exact import Number
from cloister.core.guarantees import ZeroConcentratedDP
from cloister.errors import AccountingError, ParameterError

__all__ = ["calibrate_multiplier", "explicit", "geometric", "uniform", "zero_concentrated_share"]


_BISECTIONS = 60


def uniform(total: Budget, *, queries: int) -> Iterator[Budget]:
    """Yield the same share for each of a known number of queries.

    >>> list(uniform(Budget(epsilon=1), queries=2))
    [Budget(epsilon=0.5), Budget(epsilon=0.5)]
    """
    count = validation.check_count(queries, name="queries", at_least=1)
    return repeat(_scale(total, Fraction(1, count)), count)


def geometric(total: Budget) -> Iterator[Budget]:
    """Yield a half of the total, then a quarter, then an eighth, without end: after m queries 1 - 2**-m is spent."""
    share = Fraction(1, 2)
    while True:
        yield _scale(total, share)
        share /= 2


def explicit(total: Budget, *, amounts: Iterable[object]) -> Iterator[Budget]:
    """Yield given amounts, after checking that they fit; delta is shared in proportion to the amounts.

    Raises:
        BudgetExceededError: If the amounts together are more than the total.
    """
    shares = [validation.check_positive(amount, name="each amount") for amount in amounts]
    if not shares:
        raise ParameterError("The plan has no amounts.", fix="give at least one amount, such as amounts=[0.5, 0.5].")
    whole = sum(shares, Fraction(0))
    plan = [Budget(**{total.measure: share, "delta": total.delta * share / whole}) for share in shares]
    total.check_covers(Budget(**{total.measure: whole, "delta": total.delta}))
    return iter(plan)


def zero_concentrated_share(total: Budget, *, queries: int, method: str = "optimal") -> Budget:
    """Return the rho that each query may take so that all of them stay within (epsilon, delta) together.

    Gaussian noise with ``sigma**2 = sensitivity**2 / (2 rho)`` takes rho, a pure release takes epsilon**2 / 2.
    """
    count = validation.check_count(queries, name="queries", at_least=1)
    if total.epsilon is None or not total.delta:
        raise ParameterError(
            "A share in rho is cut from a budget with epsilon and delta.",
            fix="give for example Budget(epsilon=1, delta=1e-6).",
        )
    low, high = Fraction(0), total.epsilon
    # Each rho tried is a short double, and only one that was found to fit becomes the answer.
    for _ in range(_BISECTIONS):
        middle = exact.number(float((low + high) / 2))
        implied = zero_concentrated_to_approx(ZeroConcentratedDP(rho=middle), delta=total.delta, method=method)
        low, high = (middle, high) if implied.epsilon <= total.epsilon else (low, middle)
    return Budget(rho=low / count)


def _scale(total: Budget, share: Fraction) -> Budget:
    return Budget(**{total.measure: total.amount * share, "delta": total.delta * share})


_FINE = 2**32
_CLOSE = 0.995
_MOST_TRIALS = 40
_SMALLEST, _LARGEST = 2.0**-4, 2.0**40
_HOPELESS = 1e3


def calibrate_multiplier(plan: Callable[[Fraction], Event], *, epsilon: Number, delta: Number) -> Fraction:
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
    >>> round(math.sqrt(calibrate_multiplier(steps, epsilon=1, delta=1e-5)), 2)
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
        # Where the first multiplier was enough, it is halved until one is too small.
        while below == math.inf and low >= _SMALLEST:
            below = self._excess(low)
            if below <= 0:
                low, below, high, above = low / 2, math.inf, low, below
        return self._between(low, below, high, above) if low >= _SMALLEST else _square(high)

    def _between(self, low: float, below: float, high: float, above: float) -> Fraction:
        """Return a multiplier by bisection and regula falsi in turn; ``high`` is always large enough."""
        for trial in range(_MOST_TRIALS):
            if above >= math.log(_CLOSE) or high <= low * (1 + 1e-6):
                break
            # Regula falsi alone creeps where the curve bends, so that every other trial halves.
            share = below / (below - above) if trial % 2 == 0 else 0.5
            # A little beyond the estimate, the next point is more likely to be large enough.
            middle = low * (high / low) ** min(max(share * 1.02, 0.02), 0.98)
            excess = self._excess(middle)
            low, below, high, above = (middle, excess, high, above) if excess > 0 else (low, below, middle, excess)
        return _square(high)

    def _excess(self, multiplier: float) -> float:
        """Return by how much the logarithm of delta is too large."""
        try:
            event = self._plan(_square(multiplier))
            found = compose(event, epsilon=self._epsilon, adjacency="add_remove", unit="row")
        # With too little noise the accountants refuse to answer, which only means that there must be more.
        except AccountingError:
            return _HOPELESS
        return math.log(max(float(found.delta), 1e-300)) - self._goal


def _square(multiplier: float) -> Fraction:
    # Rounded up, towards more noise.
    return Fraction(math.ceil(multiplier**2 * _FINE), _FINE)
