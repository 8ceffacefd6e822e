from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.accounting import pure_to_zero_concentrated, zero_concentrated_to_approx
from cloister.accounting.conversions import (
    analytic_gaussian_delta,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    renyi_to_delta,
    renyi_to_epsilon,
    zero_concentrated_to_delta,
    zero_concentrated_to_epsilon,
)
from cloister.core.guarantees import PureDP, ZeroConcentratedDP
from cloister.errors import AccountingError, ParameterError
from cloister.mechanisms.calibration import NoiseCalibration


def test_pure_costs_half_its_square() -> None:
    assert pure_to_zero_concentrated(PureDP(epsilon=0.5, unit="patient")) == ZeroConcentratedDP(
        rho="1/8", unit="patient"
    )


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=50), st.integers(1, 30))
def test_delta_and_epsilon_of_rho_belong_together(rho: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    epsilon = zero_concentrated_to_epsilon(rho, delta=delta)
    back = zero_concentrated_to_delta(rho, epsilon=epsilon)
    assert back <= delta * (1 + Fraction(1, 10**9))
    assert epsilon < Fraction(1, 10**9) or float(back) == pytest.approx(float(delta), rel=1e-4)
    assert zero_concentrated_to_delta(Fraction(0), epsilon=epsilon) == 0


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=50), st.integers(1, 30))
def test_the_optimal_conversion_is_between_the_truth_and_the_simple_one(rho: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    guarantee = ZeroConcentratedDP(rho=rho)
    simple = zero_concentrated_to_approx(guarantee, delta=delta, method="simple").epsilon
    optimal = zero_concentrated_to_approx(guarantee, delta=delta).epsilon
    truth = gaussian_epsilon(math.sqrt(2 * rho), delta=float(delta))
    assert float(optimal) >= truth * (1 - 1e-9)
    assert optimal <= simple


def test_conversion_details() -> None:
    assert zero_concentrated_to_epsilon(Fraction(0), delta=Fraction(1, 10)) == 0
    shifted = zero_concentrated_to_approx(ZeroConcentratedDP(rho=0.5, delta=1e-6), delta=2e-6)
    plain = zero_concentrated_to_approx(ZeroConcentratedDP(rho=0.5), delta=1e-6)
    assert shifted.epsilon == plain.epsilon
    with pytest.raises(AccountingError, match="delta above 1e-06"):
        zero_concentrated_to_approx(ZeroConcentratedDP(rho=0.5, delta=1e-6), delta=1e-6)
    with pytest.raises(AccountingError, match="delta above 1e-300"):
        zero_concentrated_to_approx(ZeroConcentratedDP(rho=0.5), delta=Fraction(1, 10**400))
    with pytest.raises(ParameterError, match="simple, optimal"):
        zero_concentrated_to_approx(ZeroConcentratedDP(rho=0.5), delta=1e-6, method="best")


@pytest.mark.parametrize(
    ("epsilon", "sigma"),
    [(0.1, 30.74957), (0.5, 7.031827), (1, 3.730632), (2, 1.993812), (5, 0.891868), (10, 0.499889)],
)
def test_cdp_06_analytic_gaussian_curve(epsilon: float, sigma: float) -> None:
    assert analytic_gaussian_delta(sigma, sensitivity=1, epsilon=epsilon) == pytest.approx(1e-5, rel=1e-4)
    assert 1 / gaussian_mu(epsilon=epsilon, delta=1e-5) == pytest.approx(sigma, rel=1e-5)


def test_the_classic_gaussian_is_broken_at_large_epsilon() -> None:
    assert analytic_gaussian_delta(0.48448, sensitivity=1, epsilon=10) == pytest.approx(2.27e-5, rel=1e-2)


@given(st.floats(1e-4, 100), st.floats(1e-40, 0.5))
def test_gaussian_curve_and_its_inverse_agree(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(mu, delta=delta)
    assert gaussian_delta(mu, epsilon=epsilon) <= delta
    assert epsilon == 0 or gaussian_delta(mu, epsilon=epsilon * (1 - 1e-6)) > delta
    assert gaussian_mu(epsilon=epsilon, delta=delta) >= mu * (1 - 1e-5)


@given(st.floats(1e-3, 10), st.floats(0, 20))
def test_gaussian_delta_is_an_integral(mu: float, epsilon: float) -> None:
    start = epsilon / mu + mu / 2
    x = np.linspace(start, start + 40 + mu, 200_001)
    log_density = -((x - mu) ** 2) / 2 - math.log(math.sqrt(2 * math.pi))
    values = np.exp(log_density) * -np.expm1(epsilon - mu * x + mu * mu / 2)
    integral = float(np.trapezoid(values, x))
    assert gaussian_delta(mu, epsilon=epsilon) >= integral * (1 - 1e-5) - 1e-300
    assert gaussian_delta(mu, epsilon=epsilon) <= integral * (1 + 1e-3) + 1e-15


def test_ends_of_the_gaussian_curve() -> None:
    assert gaussian_delta(0, epsilon=0) == 0
    assert gaussian_delta(1e7, epsilon=1) == 1
    with pytest.raises(ParameterError, match="delta"):
        gaussian_epsilon(1, delta=0)


def test_renyi_conversions_agree() -> None:
    orders = np.linspace(1.1, 50, 500)
    losses = 0.1 * orders
    epsilon = renyi_to_epsilon(orders, losses, delta=1e-6)
    assert renyi_to_delta(orders, losses, epsilon=epsilon) == pytest.approx(1e-6, rel=1e-6)
    assert renyi_to_epsilon(orders, np.zeros(500), delta=0.5) == 0
    assert renyi_to_delta(orders, np.full(500, np.inf), epsilon=1) == 1


@given(st.floats(1e-3, 20), st.floats(1e-12, 1e-3))
def test_rho_converts_there_and_back(epsilon: float, delta: float) -> None:
    """A rho that is the largest for some (epsilon, delta) is found to take no more than that delta, up to rounding."""
    rho = NoiseCalibration.of(epsilon=epsilon, delta=delta).rho
    found = zero_concentrated_to_delta(rho, epsilon=Fraction(epsilon))
    assert found <= Fraction(delta) * (1 + Fraction(1, 10**9))
    assert found >= Fraction(delta) * (1 - Fraction(1, 10**4))


def test_no_rho_takes_no_delta() -> None:
    assert zero_concentrated_to_delta(Fraction(0), epsilon=Fraction(1)) == 0
