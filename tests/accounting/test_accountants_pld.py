"""dp-accounting as an oracle: its optimistic answer is below the truth, its pessimistic one above."""

from __future__ import annotations

import sys

import pytest

from cloister.accounting import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PldAccountant,
    PureEvent,
    RepeatedEvent,
    SubsampledEvent,
    ZeroConcentratedEvent,
    compare,
)
from cloister.errors import InternalError, MissingExtraError
from tests.support.releases import composed

pytestmark = pytest.mark.filterwarnings("ignore")
BOTH = [
    LaplaceEvent(noise_multiplier=2),
    PureEvent(epsilon=0.3),
    DiscreteLaplaceEvent(scale=10, sensitivity=3),
    GaussianEvent(squared_multiplier=9),
    DiscreteGaussianEvent(squared_sigma=400, squared_sensitivity=1),
]


@pytest.mark.slow
@pytest.mark.parametrize("event", BOTH, ids=lambda event: event.kind)
@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_no_accountant_is_below_the_optimistic_answer_and_the_best_is_near(
    event: Event, count: int, delta: float
) -> None:
    events = RepeatedEvent(event=event, count=count)
    below = float(PldAccountant(pessimistic=False).epsilon(events, delta=delta))
    above = float(PldAccountant().epsilon(events, delta=delta))
    answers = compare(events, delta=delta)
    assert len(answers) >= 3
    assert min(answers.values()) >= below
    assert float(composed(events, delta=delta).epsilon) <= 1.01 * above


@pytest.mark.slow
def test_a_mixture_agrees_with_the_oracle() -> None:
    events = [*BOTH[:4]] * 10
    ours = float(composed(events, delta=1e-6).epsilon)
    assert float(PldAccountant(pessimistic=False).epsilon(events, delta=1e-6)) <= ours
    assert ours <= 1.002 * float(PldAccountant().epsilon(events, delta=1e-6))


@pytest.mark.slow
@pytest.mark.parametrize("inner", [GaussianEvent(squared_multiplier=1), LaplaceEvent(noise_multiplier=1)])
def test_samples_agree_with_the_oracle(inner: Event) -> None:
    events = RepeatedEvent(event=SubsampledEvent(rate=0.05, event=inner), count=100)
    oracle = float(PldAccountant().epsilon(events, delta=1e-6))
    assert oracle <= float(composed(events, delta=1e-6).epsilon) <= 1.6 * oracle


@pytest.mark.slow
def test_delta_and_slack() -> None:
    accountant = PldAccountant()
    assert float(accountant.delta(LaplaceEvent(noise_multiplier=1), epsilon=0.5)) == pytest.approx(0.2212, abs=1e-4)
    assert float(accountant.delta(PureEvent(epsilon=0.5), epsilon=2)) < 1e-12
    assert accountant.delta([], epsilon=2) == 0
    sampled = SubsampledEvent(rate=0.1, event=LaplaceEvent(noise_multiplier=1))
    assert float(accountant.epsilon(sampled, delta=1e-9)) == pytest.approx(0.1586, abs=1e-3)
    assert accountant.epsilon(PureEvent(epsilon=0.1), delta=0.9) == 0
    assert float(accountant.delta(ApproxEvent(epsilon=1, delta=1e-3), epsilon=2)) == pytest.approx(1e-3)
    assert composed(LaplaceEvent(noise_multiplier=1), delta=1e-6, accountant="pld").epsilon > 0


def test_what_the_oracle_knows() -> None:
    accountant = PldAccountant()
    assert not accountant.supports(ZeroConcentratedEvent(rho=1))
    assert not accountant.supports(DiscreteGaussianEvent(squared_sigma=9, squared_sensitivity=2))
    assert not accountant.supports(SubsampledEvent(rate=0.1, event=PureEvent(epsilon=1)))
    with pytest.raises(InternalError, match="zero_concentrated"):
        accountant._distribution(None, ZeroConcentratedEvent(rho=1))


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(MissingExtraError, match=r"cloister\[pld\]"):
        PldAccountant().epsilon(PureEvent(epsilon=1), delta=1e-6)
