"""Plans: how to divide a budget between queries, in exact arithmetic.

A policy is an iterator of exact budgets, one for each query. `uniform` and `explicit` end; `geometric` never does and
never exhausts the total. `zero_concentrated_share` answers "how much may each of n queries take, if they are accounted
together": many small Gaussian or Laplace releases get far more than 1/n of epsilon each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import repeat

from cloister.accounting.budget import Budget
from cloister.accounting.conversions import zero_concentrated_to_approx
from cloister.core import exact, validation
from cloister.core.guarantees import ZeroConcentratedDP
from cloister.errors import ParameterError

__all__ = ["explicit", "geometric", "uniform", "zero_concentrated_share"]

_BISECTIONS = 60


def uniform(total: Budget, *, queries: int) -> Iterator[Budget]:
    """Yield the same share for each of a known number of queries.

    >>> list(uniform(Budget(epsilon=1), queries=2))
    [Budget(epsilon=0.5), Budget(epsilon=0.5)]
    """
    count = validation.check_count(queries, name="queries", at_least=1)
    return repeat(_scaled(total, Fraction(1, count)), count)


def geometric(total: Budget) -> Iterator[Budget]:
    """Yield a half of the total, then a quarter, then an eighth, without end: after m queries 1 - 2**-m is spent."""
    share = Fraction(1, 2)
    while True:
        yield _scaled(total, share)
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
    for _ in range(_BISECTIONS):
        middle = exact.number(float((low + high) / 2))
        implied = zero_concentrated_to_approx(ZeroConcentratedDP(rho=middle), delta=total.delta, method=method)
        low, high = (middle, high) if implied.epsilon <= total.epsilon else (low, middle)
    return Budget(rho=low / count)


def _scaled(total: Budget, share: Fraction) -> Budget:
    return Budget(**{total.measure: total.amount * share, "delta": total.delta * share})
