from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RenyiAccountant,
    RepeatedEvent,
    SubsampledEvent,
    ZeroConcentratedEvent,
)
from cloister.accounting.accountants._dominating_pairs import LaplaceLike, atoms
from cloister.errors import AccountingError, ParameterError

ACCOUNTANT = RenyiAccountant()


def divergence(event: Event, order: float) -> float:
    return float(ACCOUNTANT.divergence(event, order=order))


def test_cdp_14_laplace_divergence() -> None:
    assert divergence(LaplaceEvent(noise_multiplier=1), 2) == pytest.approx(0.619124, abs=1e-6)


@given(st.floats(1.01, 60), st.floats(0.1, 5))
def test_laplace_divergence_is_the_closed_form(order: float, scale: float) -> None:
    first = order / (2 * order - 1) * math.exp((order - 1) / scale)
    second = (order - 1) / (2 * order - 1) * math.exp(-order / scale)
    expected = math.log(first + second) / (order - 1)
    assert divergence(LaplaceEvent(noise_multiplier=repr(scale)), order) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(st.floats(1.01, 60), st.floats(0.01, 5), st.integers(1, 40))
def test_discrete_laplace_divergence_is_the_sum(order: float, epsilon: float, steps: int) -> None:
    losses, chances = atoms(LaplaceLike(epsilon, steps))
    exponents = np.log(chances) + (order - 1) * losses
    expected = float(np.logaddexp.reduce(exponents)) / (order - 1)
    event = DiscreteLaplaceEvent(scale=steps / Fraction(epsilon), sensitivity=steps)
    assert divergence(event, order) == pytest.approx(expected, rel=1e-6, abs=1e-11)
    assert divergence(event, order) <= divergence(PureEvent(epsilon=Fraction(epsilon)), order) * (1 + 1e-9)


def test_linear_curves() -> None:
    for event in (
        GaussianEvent(squared_multiplier=5),
        DiscreteGaussianEvent(squared_sigma=10, squared_sensitivity=2),
        ZeroConcentratedEvent(rho=0.1),
    ):
        assert divergence(event, 7) == pytest.approx(0.7)


@pytest.mark.parametrize(("rate", "squared"), [(0.01, 1.0), (0.2, 4.0)])
@pytest.mark.parametrize("order", [2, 5, 32])
def test_sampled_gaussian_divergence_is_an_integral(rate: float, squared: float, order: int) -> None:
    x = np.linspace(-40, 80, 400_001)
    log_mixture = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * squared))
    log_density = -(x**2) / (2 * squared) - math.log(math.sqrt(2 * math.pi * squared))
    integral = float(np.trapezoid(np.exp(order * log_mixture + log_density), x))
    event = SubsampledEvent(rate=rate, event=GaussianEvent(squared_multiplier=squared))
    assert divergence(event, order) == pytest.approx(math.log(integral) / (order - 1), rel=1e-6)
    for unknown in (order + 0.5, 1):
        with pytest.raises(ParameterError, match="whole number"):
            divergence(event, unknown)


@settings(max_examples=30)
@given(st.floats(0.01, 0.5), st.floats(0.1, 3), st.integers(2, 20))
def test_the_general_sampling_bound_covers_sampled_coin_flips(rate: float, epsilon: float, order: int) -> None:
    truth = 1 / (1 + math.exp(-epsilon))
    absent = np.array([1 - truth, truth])
    present = rate * absent[::-1] + (1 - rate) * absent
    event = SubsampledEvent(rate=rate, event=PureEvent(epsilon=Fraction(epsilon)))
    for p, q in ((present, absent), (absent, present)):
        exact = math.log(float(np.sum(p**order * q ** (1.0 - order)))) / (order - 1)
        assert divergence(event, order) >= exact * (1 - 1e-9)


def test_slack_in_delta_is_kept_apart() -> None:
    rough = ApproxEvent(epsilon=0.1, delta=1e-8)
    plain = PureEvent(epsilon=0.1)
    assert ACCOUNTANT.epsilon([rough] * 10, delta=1.1e-6) == pytest.approx(
        ACCOUNTANT.epsilon([plain] * 10, delta=1e-6), rel=1e-9
    )
    assert float(ACCOUNTANT.delta([rough] * 10, epsilon=1)) >= 1e-7
    sampled = SubsampledEvent(rate=0.1, event=ApproxEvent(epsilon=0.1, delta=1e-6))
    assert ACCOUNTANT.delta(sampled, epsilon=100) == pytest.approx(Fraction(1, 10**6))
    with pytest.raises(AccountingError, match="delta above 1e-06"):
        ACCOUNTANT.epsilon(sampled, delta=1e-7)
    assert ACCOUNTANT.epsilon(PureEvent(epsilon=0), delta=0.5) == 0


def test_no_order_of_a_sample_is_worse_than_the_whole() -> None:
    whole = RepeatedEvent(event=LaplaceEvent(noise_multiplier=2), count=100)
    sample = RepeatedEvent(event=SubsampledEvent(rate=0.1, event=LaplaceEvent(noise_multiplier=2)), count=100)
    assert ACCOUNTANT.epsilon(sample, delta=1e-6) < ACCOUNTANT.epsilon(whole, delta=1e-6)
