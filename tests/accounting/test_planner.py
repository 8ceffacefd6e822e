from __future__ import annotations

from fractions import Fraction
from itertools import islice

import pytest

from cloister.accounting import (
    Budget,
    ZeroConcentratedEvent,
    explicit,
    geometric,
    uniform,
    zero_concentrated_share,
)
from cloister.errors import BudgetExceededError, ParameterError
from tests.support.releases import composed


def test_cdp_15_geometric_policy() -> None:
    shares = list(islice(geometric(Budget(epsilon=1)), 10))
    assert sum((share.amount for share in shares), Fraction(0)) == Fraction("0.9990234375")
    assert shares[0] == Budget(epsilon="1/2")


def test_uniform_shares_are_exact() -> None:
    shares = list(uniform(Budget(epsilon=1, delta=1e-6), queries=3))
    assert shares == [Budget(epsilon="1/3", delta=Fraction(1, 3 * 10**6))] * 3
    assert sum(shares[1:], shares[0]) == Budget(epsilon=1, delta=1e-6)


def test_explicit_amounts_are_checked_before_the_first_query() -> None:
    shares = list(explicit(Budget(rho=1, delta=0.1), amounts=[0.5, 0.25]))
    assert [share.rho for share in shares] == [Fraction(1, 2), Fraction(1, 4)]
    assert sum(share.delta for share in shares) == Fraction(1, 10)
    with pytest.raises(BudgetExceededError, match="ask for epsilon <= 1"):
        explicit(Budget(epsilon=1), amounts=[0.5, 0.6])
    with pytest.raises(ParameterError, match="at least one amount"):
        explicit(Budget(epsilon=1), amounts=[])
    with pytest.raises(ParameterError, match="positive"):
        explicit(Budget(epsilon=1), amounts=[0])


@pytest.mark.parametrize("method", ["simple", "optimal"])
def test_zero_concentrated_shares_fill_the_budget(method: str) -> None:
    total = Budget(epsilon=1, delta=1e-6)
    share = zero_concentrated_share(total, queries=100, method=method)
    assert share.rho is not None
    spent = composed([ZeroConcentratedEvent(rho=share.rho)] * 100, delta=1e-6, accountant="zero_concentrated").epsilon
    assert spent <= 1
    assert float(spent) > (0.999 if method == "optimal" else 0.8)
    # Ten times as many queries cost each of them a tenth of rho, so a third of epsilon and not a tenth.
    assert zero_concentrated_share(total, queries=1000, method=method).rho == share.rho / 10


def test_shares_in_rho_need_epsilon_and_delta() -> None:
    for budget in (Budget(epsilon=1), Budget(rho=1, delta=1e-6)):
        with pytest.raises(ParameterError, match=r"Budget\(epsilon=1, delta=1e-6\)"):
            zero_concentrated_share(budget, queries=3)
