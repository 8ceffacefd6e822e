"""Gaussian noise on Poisson samples: the privacy loss distribution of both neighbors, and what is made of it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

from benchmarks.peer_accountant import PeerAccountant
from cloister.accounting import (
    Budget,
    DiscreteGaussianEvent,
    Event,
    GaussianAccountant,
    GaussianEvent,
    LaplaceEvent,
    NumericalAccountant,
    PureEvent,
    RenyiAccountant,
    RepeatedEvent,
    SubsampledEvent,
    open_ledger,
)
from cloister.accounting.accountants._noise_losses import (
    SampledGaussian,
    _nodes,
    noise_of,
)
from cloister.errors import AccountingError
from tests.support.releases import composed

ACCOUNTANT = NumericalAccountant()
# Section 11 of the specification: rows, expected sample, multiplier, steps, epsilon by Rényi and by loss distributions.
TARGETS = [
    (60000, 256, "1.1", 14063, 2.597, 2.382),
    (60000, 600, "1", 1000, 2.101, 1.828),
    (32561, 256, "1", 636, 1.470, 1.142),
]


def sampled(rate: object, multiplier: object, count: int = 1) -> Event:
    noise = GaussianEvent(squared_multiplier=Fraction(str(multiplier)) ** 2)
    return RepeatedEvent(event=SubsampledEvent(rate=rate, event=noise), count=count)  # type: ignore[arg-type]


def one_step_delta(rate: float, mu: float, epsilon: float) -> float:
    """The larger of the two hockey sticks of one step, in closed form."""
    factor = math.exp(epsilon)

    def beyond(y: float) -> float:
        return ((1 - rate) * ndtr(-y) + rate * ndtr(mu - y)) - factor * ndtr(-y)

    removed = beyond((math.log((factor - (1 - rate)) / rate) + mu**2 / 2) / mu)
    added = 0.0
    if 1 / factor > 1 - rate:
        y = (math.log((1 / factor - (1 - rate)) / rate) + mu**2 / 2) / mu
        added = ndtr(y) - factor * ((1 - rate) * ndtr(y) + rate * ndtr(y - mu))
    return max(removed, added)


def two_steps_delta(rate: float, mu: float, epsilon: float, *, removed: bool) -> float:
    """One hockey stick of two steps: the second in closed form, the first integrated."""
    sign = 1 if removed else -1

    def loss(y: float) -> float:
        return sign * math.log1p(rate * math.expm1(mu * y - mu**2 / 2))

    def density(y: float) -> float:
        plain = math.exp(-(y**2) / 2)
        mixed = (1 - rate) * plain + rate * math.exp(-((y - mu) ** 2) / 2) if removed else plain
        return mixed / math.sqrt(2 * math.pi)

    def second(left: float) -> float:
        factor = math.exp(left)
        share = (factor if removed else 1 / factor) - (1 - rate)
        if share <= 0:
            return 1 - factor if removed else 0.0
        y = (math.log(share / rate) + mu**2 / 2) / mu
        if removed:
            return float((1 - rate) * ndtr(-y) + rate * ndtr(mu - y) - factor * ndtr(-y))
        return float(ndtr(y) - factor * ((1 - rate) * ndtr(y) + rate * ndtr(y - mu)))

    return float(quad(lambda y: density(y) * second(epsilon - loss(y)), -9, 9 + mu, limit=500, epsabs=1e-14)[0])


@pytest.mark.parametrize(("rows", "batch", "multiplier", "count", "renyi", "tight"), TARGETS)
def test_ml_13_targets_of_private_descent(
    rows: int, batch: int, multiplier: str, count: int, renyi: float, tight: float
) -> None:
    events = sampled(Fraction(batch, rows), multiplier, count)
    assert float(RenyiAccountant().epsilon(events, delta=1e-5)) == pytest.approx(renyi, rel=0.01)
    assert float(composed(events, delta=1e-5).epsilon) == pytest.approx(tight, rel=0.001)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.floats(0.01, 0.9), st.integers(400, 9000), st.floats(0.05, 3))
def test_one_step_is_its_closed_form_and_never_below(rate: float, thousandths: int, epsilon: float) -> None:
    multiplier = Fraction(thousandths, 1000)
    found = float(ACCOUNTANT.delta(sampled(rate, multiplier), epsilon=epsilon))
    exact = one_step_delta(rate, float(1 / multiplier), epsilon)
    assert exact * (1 - 1e-9) - 1e-15 <= found <= exact * 1.05 + 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "mu"), [(0.01, 1.0), (0.2, 0.5), (0.5, 2.0)])
def test_two_steps_agree_with_an_integral(rate: float, mu: float) -> None:
    for epsilon in (0.1, 0.5):
        exact = max(two_steps_delta(rate, mu, epsilon, removed=removed) for removed in (True, False))
        found = float(ACCOUNTANT.delta(sampled(rate, Fraction(1) / Fraction(mu), 2), epsilon=epsilon))
        assert exact * (1 - 1e-9) - 1e-13 <= found <= exact * 1.01 + 1e-9


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("pair", [SampledGaussian(0.01, 1.0), SampledGaussian(0.9, 4.0), SampledGaussian(1e-4, 0.2)])
def test_piles_keep_probability_and_likelihood(pair: SampledGaussian, removed: bool) -> None:
    pile, above = pair.pile(removed=removed, count=10, width=1e-3, log_tail=math.log(1e-20))
    losses = pile.losses(1e-3)
    assert above == (pytest.approx(1e-20) if removed else 0)
    assert float(pile.probabilities.sum()) == pytest.approx(1, abs=1e-13)
    assert float(pile.probabilities @ np.exp(-losses)) == pytest.approx(1, abs=1e-12)
    assert pile.repeats == 10


def test_a_sample_of_everything_is_plain_noise() -> None:
    plain = GaussianAccountant().epsilon(RepeatedEvent(event=GaussianEvent(squared_multiplier=9), count=5), delta=1e-6)
    nearly = float(ACCOUNTANT.epsilon(sampled(Fraction(999_999, 10**6), 3, 5), delta=1e-6))
    assert nearly == pytest.approx(float(plain), rel=1e-3)


def test_more_of_anything_loses_more() -> None:
    base = float(ACCOUNTANT.epsilon(sampled(0.02, 1.5, 200), delta=1e-6))
    assert float(ACCOUNTANT.epsilon(sampled(0.03, 1.5, 200), delta=1e-6)) > base
    assert float(ACCOUNTANT.epsilon(sampled(0.02, 1.2, 200), delta=1e-6)) > base
    assert float(ACCOUNTANT.epsilon(sampled(0.02, 1.5, 300), delta=1e-6)) > base
    mixed = [sampled(0.02, 1.5, 200), LaplaceEvent(noise_multiplier=10), GaussianEvent(squared_multiplier=100)]
    assert float(ACCOUNTANT.epsilon(mixed, delta=1e-6)) > base


def test_epsilon_and_delta_agree() -> None:
    events = sampled(0.05, 2, 500)
    epsilon = ACCOUNTANT.epsilon(events, delta=1e-6)
    assert float(ACCOUNTANT.delta(events, epsilon=epsilon)) == pytest.approx(1e-6, rel=1e-3)


@pytest.fixture
def kept_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the oracle compute the distribution of one step once."""
    monkeypatch.setattr(PeerAccountant, "_distribution", cache(PeerAccountant._distribution))


@pytest.mark.slow
@pytest.mark.usefixtures("kept_distributions")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("rate", "multiplier", "count"), [(0.02, 25, 1500), (0.5, 8, 100), (0.3, 1, 7)])
def test_the_oracle_agrees(rate: float, multiplier: float, count: int) -> None:
    events = [sampled(rate, multiplier, count), LaplaceEvent(noise_multiplier=8), GaussianEvent(squared_multiplier=50)]
    for kept in (events[:1], events):
        ours = float(ACCOUNTANT.epsilon(kept, delta=1e-6))
        assert PeerAccountant(pessimistic=False).epsilon(kept, delta=1e-6) <= ours
        assert ours <= 1.003 * PeerAccountant().epsilon(kept, delta=1e-6)


def test_what_is_a_sampled_gaussian() -> None:
    assert noise_of(GaussianEvent(squared_multiplier=1)) is None
    lattice = DiscreteGaussianEvent(squared_sigma=100, squared_sensitivity=4)
    assert noise_of(SubsampledEvent(rate=0.1, event=lattice)) is None
    assert not ACCOUNTANT.supports(SubsampledEvent(rate=0.1, event=lattice))
    found = noise_of(SubsampledEvent(rate=Fraction(1, 3), event=GaussianEvent(squared_multiplier=2)))
    assert isinstance(found, SampledGaussian)
    assert Fraction(found.rate) >= Fraction(1, 3)
    assert Fraction(found.mu) ** 2 >= Fraction(1, 2)


def test_what_is_too_fine_is_left_to_others() -> None:
    sharp = sampled(0.1, "0.01")
    with pytest.raises(AccountingError, match="renyi"):
        ACCOUNTANT.epsilon(sharp, delta=1e-6)
    assert composed(sharp, delta=1e-6).epsilon == RenyiAccountant().epsilon(sharp, delta=1e-6)
    many = [sampled(Fraction(1, 50 + place), 2) for place in range(70)]
    with pytest.raises(AccountingError, match="renyi"):
        ACCOUNTANT.epsilon(many, delta=1e-6)
    wide = [sampled(Fraction(1, 10**4), 1, 10**5), PureEvent(epsilon=1e-12)]
    assert composed(wide, delta=1e-6).epsilon <= RenyiAccountant().epsilon(wide, delta=1e-6)


def test_rare_samples_are_put_on_a_coarse_grid() -> None:
    events = sampled(1e-5, "0.7", 10**5)
    found = float(ACCOUNTANT.epsilon(events, delta=1e-5))
    assert 0.0295 <= found <= 0.06


def test_a_ledger_takes_descent_at_its_tight_price() -> None:
    rows, batch, multiplier, count, _, tight = TARGETS[2]
    event = sampled(Fraction(batch, rows), multiplier, count)
    with open_ledger("memory:") as ledger:
        ledger.open_account("d", budget=Budget(epsilon=10, delta=1e-4), unit="row", adjacency="add_remove")
        ledger.spend("d", cost=Budget(epsilon=tight * 1.002, delta=1e-5), event=event)
        with pytest.raises(AccountingError, match="cost"):
            ledger.spend("d", cost=Budget(epsilon=tight * 0.99, delta=1e-5), event=event)


def test_losses_that_a_grid_would_cut_too_finely_are_refused() -> None:
    with pytest.raises(AccountingError, match="renyi"):
        _nodes(SampledGaussian(rate=0.5, mu=1.0), -10.0, 10.0, 1e-12)
