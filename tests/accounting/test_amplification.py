from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from cloister.accounting import poisson_subsampling, shuffling, subsampling_without_replacement
from cloister.core.guarantees import ApproxDP, LocalDP, PureDP
from cloister.errors import AccountingError, ParameterError


@given(st.fractions(min_value=0, max_value=5), st.fractions(min_value=0, max_value=1))
def test_poisson_sampling_follows_the_formula_from_above(epsilon: Fraction, rate: Fraction) -> None:
    sampled = poisson_subsampling(ApproxDP(epsilon=epsilon, delta=1e-6), rate=rate)
    assert float(sampled.epsilon) == pytest.approx(math.log1p(float(rate) * math.expm1(float(epsilon))), abs=1e-12)
    assert sampled.epsilon <= epsilon
    assert sampled.delta == rate * Fraction(1, 10**6)
    assert "secret" in sampled.assumptions[0]


def test_sampling_of_a_bit_is_exactly_as_bad_as_promised() -> None:
    rate, epsilon = 0.25, 1.0
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    with_unit = rate * truth + (1 - rate) * (1 - truth)
    exact = math.log(with_unit / (1 - truth))
    assert float(poisson_subsampling(PureDP(epsilon=1), rate=rate).epsilon) == pytest.approx(exact, rel=1e-12)


def test_huge_epsilons_are_left_alone() -> None:
    assert poisson_subsampling(PureDP(epsilon=10**5), rate=0.5).epsilon == 10**5


def test_fixed_size_samples_need_replace() -> None:
    whole = PureDP(epsilon=1, adjacency="replace")
    sampled = subsampling_without_replacement(whole, sample_size=10, population=1000)
    assert float(sampled.epsilon) == pytest.approx(math.log1p(0.01 * math.expm1(1)))
    with pytest.raises(AccountingError, match="use poisson_subsampling"):
        subsampling_without_replacement(PureDP(epsilon=1), sample_size=10, population=1000)
    with pytest.raises(AccountingError, match="use subsampling_without_replacement"):
        poisson_subsampling(whole, rate=0.1)
    with pytest.raises(ParameterError, match="sample_size <= 5"):
        subsampling_without_replacement(whole, sample_size=10, population=5)


def test_shuffling_follows_the_closed_form() -> None:
    epsilon, reports, delta = 1.0, 100_000, 1e-6
    growth = math.exp(epsilon)
    inside = 8 * math.sqrt(growth * math.log(4 / delta) / reports) + 8 * growth / reports
    expected = math.log1p((growth - 1) / (growth + 1) * inside)
    central = shuffling(LocalDP(epsilon=1), reports=reports, delta=delta)
    assert float(central.epsilon) == pytest.approx(expected, rel=1e-12)
    assert central.adjacency == "replace"
    assert central.delta == Fraction(1, 10**6)


def test_shuffling_refuses_where_it_is_not_proven() -> None:
    with pytest.raises(AccountingError, match="collect at least") as caught:
        shuffling(LocalDP(epsilon=5), reports=1000, delta=1e-6)
    needed = int(caught.value.fix.split("at least ")[1].split()[0])
    assert shuffling(LocalDP(epsilon=5), reports=needed, delta=1e-6).epsilon <= 5
    with pytest.raises(AccountingError):
        shuffling(LocalDP(epsilon=5), reports=needed - 1, delta=1e-6)
