"""Laplace-like noise on Poisson samples and Gaussian noise on a coarse lattice, beside closed forms and enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    LaplaceEvent,
    NumericalAccountant,
    PureAccountant,
    PureEvent,
    RepeatedEvent,
    SubsampledEvent,
    ZeroConcentratedAccountant,
)
from cloister.accounting.accountants._dominating_pairs import LaplaceLike, atoms
from cloister.accounting.accountants._noise_losses import LatticeGaussian, SampledGaussian, SampledLaplace, noise_of
from cloister.errors import AccountingError
from tests.support.releases import composed

ACCOUNTANT = NumericalAccountant()


def laplace_curve(excess: float, epsilon: float) -> float:
    """The hockey stick of scalar Laplace noise at ``ln(excess)``."""
    if excess <= 0:
        return 1.0
    t = math.log(excess)
    if t >= epsilon:
        return 0.0
    if t <= -epsilon:
        return 1 - excess
    return 1 - math.exp((t - epsilon) / 2)


def sampled_curve(rate: float, t: float, epsilon: float) -> float:
    """The larger of the two hockey sticks of scalar Laplace noise on a sample."""
    factor = math.exp(t)
    removed = rate * laplace_curve((factor - 1 + rate) / rate, epsilon)
    share = 1 - factor * (1 - rate)
    added = share * laplace_curve(factor * rate / share, epsilon) if share > 0 else 0.0
    return max(removed, added)


def hockey_stick(first: list[float], second: list[float], epsilon: float, steps: int) -> float:
    """The excess of the first distribution, drawn so often, over exp(epsilon) times the second, by enumeration."""
    return math.fsum(
        max(0.0, math.prod(first[i] for i in places) - math.exp(epsilon) * math.prod(second[i] for i in places))
        for places in itertools.product(range(len(first)), repeat=steps)
    )


def sampled(rate: object, event: Event, count: int = 1) -> Event:
    return RepeatedEvent(event=SubsampledEvent(rate=rate, event=event), count=count)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 0.999), st.floats(0.1, 8), st.floats(0.001, 3))
def test_laplace_noise_on_a_sample_is_its_closed_form_and_never_below(
    rate: float, scale: float, epsilon: float
) -> None:
    multiplier = Fraction(scale).limit_denominator(10**6)
    found = float(ACCOUNTANT.delta(sampled(rate, LaplaceEvent(noise_multiplier=multiplier)), epsilon=epsilon))
    exact = sampled_curve(rate, epsilon, float(1 / multiplier))
    assert exact * (1 - 1e-12) - 1e-15 <= found <= exact * 1.01 + 2e-5


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("draws", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.02, 0.4, 1.2])
def test_lattice_noise_on_a_sample_is_what_enumeration_says(
    rate: float, steps: int, draws: int, epsilon: float
) -> None:
    event: Event = DiscreteLaplaceEvent(scale=Fraction(steps, 2), sensitivity=steps)
    event = PureEvent(epsilon=2) if steps == 1 else event
    ours = atoms(LaplaceLike(2.0, steps))[1].tolist()
    other = ours[::-1]
    mixed = [rate * one + (1 - rate) * two for one, two in zip(ours, other, strict=True)]
    without = [rate * two + (1 - rate) * one for one, two in zip(ours, other, strict=True)]
    exact = max(hockey_stick(mixed, other, epsilon, draws), hockey_stick(ours, without, epsilon, draws))
    found = float(ACCOUNTANT.delta(sampled(rate, event, draws), epsilon=epsilon))
    assert exact * (1 - 1e-12) - 1e-15 <= found <= exact * 1.001 + 1e-5


@pytest.mark.parametrize("squared", [Fraction(1, 4), 1, 9, 63])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3])
@pytest.mark.parametrize("draws", [1, 2])
def test_lattice_gaussian_noise_is_what_enumeration_says(squared: Fraction, epsilon: float, draws: int) -> None:
    places = np.arange(-90, 92)
    first = np.exp(-((places - 1) ** 2) / (2 * float(squared)))
    second = np.exp(-(places**2) / (2 * float(squared)))
    first, second = first / first.sum(), second / second.sum()
    if draws == 2:
        first, second = np.multiply.outer(first, first), np.multiply.outer(second, second)
    exact = float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
    event = RepeatedEvent(event=DiscreteGaussianEvent(squared_sigma=squared, squared_sensitivity=1), count=draws)
    found = float(ACCOUNTANT.delta(event, epsilon=epsilon))
    assert exact * (1 - 1e-12) - 1e-15 <= found <= exact * 1.001 + 1e-5


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize(
    "noise",
    [
        SampledLaplace(0.01, LaplaceLike(1.0, 1)),
        SampledLaplace(0.999999999, LaplaceLike(40.0, 1024)),
        SampledLaplace(1.0, LaplaceLike(1.0, 7)),
        LatticeGaussian(4.0),
    ],
)
def test_piles_keep_probability_and_likelihood(noise: SampledLaplace | LatticeGaussian, removed: bool) -> None:
    pile, above = noise.pile(removed=removed, count=10, width=1e-3, log_tail=math.log(1e-30))
    assert above <= 1e-29
    assert float(pile.probabilities.sum()) == pytest.approx(1, abs=1e-12)
    assert float(pile.probabilities @ np.exp(-pile.losses(1e-3))) == pytest.approx(1, abs=1e-9)
    assert pile.repeats == 10


def test_losses_of_samples_are_right_to_the_last_digits() -> None:
    for rate in (1e-12, 0.3, 1 - 2**-50):
        for tilt in (-40.0, -1.0, 1e-9, 700.0, 900.0):
            found = SampledGaussian(rate, 1.0).loss(np.array([tilt + 0.5]))[0]
            with_more_digits = _log_mixture(rate, tilt)
            assert found == pytest.approx(with_more_digits, rel=1e-12, abs=1e-14)


def _log_mixture(rate: float, tilt: float) -> float:
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        return float(((1 - Decimal(rate)) + Decimal(rate) * Decimal(tilt).exp()).ln())


def test_samples_of_everything_and_of_hardly_anything() -> None:
    plain = float(ACCOUNTANT.epsilon([LaplaceEvent(noise_multiplier=2)] * 10, delta=1e-6))
    almost = sampled(1 - Fraction(1, 10**17), LaplaceEvent(noise_multiplier=2), 10)
    assert float(ACCOUNTANT.epsilon(almost, delta=1e-6)) == pytest.approx(plain, rel=1e-3)
    rare = SubsampledEvent(rate=Fraction(1, 10**15), event=LaplaceEvent(noise_multiplier=2))
    assert noise_of(rare) is None
    assert float(ACCOUNTANT.epsilon(rare, delta=1e-20)) <= 1e-15
    faint = SubsampledEvent(rate=0.5, event=PureEvent(epsilon=Fraction(1, 10**15)))
    assert noise_of(faint) is None
    assert ACCOUNTANT.supports(faint)


def test_a_sample_loses_no_more_than_its_largest_loss() -> None:
    event = sampled(0.5, PureEvent(epsilon=1), 3)
    assert ACCOUNTANT.delta(event, epsilon=2) == 0
    assert ACCOUNTANT.delta(event, epsilon=1.8) > 0
    assert PureAccountant().epsilon(event, delta=0) < 2


def test_many_different_samples_are_taken_by_their_amplified_epsilon() -> None:
    few = [sampled(Fraction(1, 20 + place), LaplaceEvent(noise_multiplier=2)) for place in range(60)]
    many = [sampled(Fraction(1, 20 + place), LaplaceEvent(noise_multiplier=2)) for place in range(70)]
    found = float(ACCOUNTANT.epsilon(many, delta=1e-6))
    assert float(ACCOUNTANT.epsilon(few, delta=1e-6)) < found
    assert found <= float(PureAccountant().epsilon(many, delta=1e-6))


def test_what_is_too_fine_is_left_to_others() -> None:
    sharp = DiscreteGaussianEvent(squared_sigma=Fraction(1, 10**9), squared_sensitivity=1)
    assert not ACCOUNTANT.supports(sharp)
    fine = SampledLaplace(0.5, LaplaceLike(1.0, 1024))
    with pytest.raises(AccountingError, match="renyi"):
        fine.pile(removed=True, count=1, width=1e-9, log_tail=-10)
    with pytest.raises(AccountingError, match="renyi"):
        LatticeGaussian(1.0).pile(removed=True, count=1, width=1e-9, log_tail=-10)
    assert not ACCOUNTANT.supports(DiscreteGaussianEvent(squared_sigma=9, squared_sensitivity=2))


@pytest.mark.parametrize("draws", [1, 3])
def test_very_little_noise_is_left_to_others(draws: int) -> None:
    """Losses beyond what floating point can tilt: the numerical accountant says so, and the automatic one goes on."""
    events = [DiscreteGaussianEvent(squared_sigma=Fraction(1, 840), squared_sensitivity=1)] * draws
    with pytest.raises(AccountingError, match="renyi"):
        ACCOUNTANT.epsilon(events, delta=1e-6)
    assert 420 * draws < float(composed(events, delta=1e-6).epsilon) < 600 * draws


def test_lattice_counts_cost_less_than_by_their_rho() -> None:
    counts = RepeatedEvent(event=DiscreteGaussianEvent(squared_sigma=25, squared_sensitivity=1), count=40)
    by_rho = float(ZeroConcentratedAccountant().epsilon(counts, delta=1e-6))
    assert float(composed(counts, delta=1e-6).epsilon) < 0.95 * by_rho
