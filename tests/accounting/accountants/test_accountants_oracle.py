"""dp-accounting as an oracle: its optimistic answer is below the truth, its pessimistic one above."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from benchmarks.peer_accountant import PeerAccountant
from cloister.accounting import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NumericalAccountant,
    PureEvent,
    RepeatedEvent,
    SubsampledEvent,
    ZeroConcentratedEvent,
    compare,
)
from tests.support.releases import composed

pytest.importorskip("dp_accounting")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
BOTH = [
    LaplaceEvent(noise_multiplier=2),
    PureEvent(epsilon=0.3),
    DiscreteLaplaceEvent(scale=10, sensitivity=3),
    GaussianEvent(squared_multiplier=9),
    DiscreteGaussianEvent(squared_sigma=400, squared_sensitivity=1),
    DiscreteGaussianEvent(squared_sigma=9, squared_sensitivity=1),
]
SAMPLED = [
    SubsampledEvent(rate=0.05, event=GaussianEvent(squared_multiplier=1)),
    SubsampledEvent(rate=0.05, event=LaplaceEvent(noise_multiplier=1)),
    SubsampledEvent(rate=0.5, event=LaplaceEvent(noise_multiplier=3)),
    SubsampledEvent(rate=0.999, event=LaplaceEvent(noise_multiplier=2)),
]


@pytest.fixture(autouse=True, scope="module")
def _kept_distributions() -> Iterator[None]:
    """Let the oracle compute the distribution of one step once for all counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PeerAccountant, "_distribution", cache(PeerAccountant._distribution))
        yield


@cache
def _held(event: Event, count: int, pessimistic: bool) -> Any:
    return PeerAccountant(pessimistic=pessimistic)._compose(RepeatedEvent(event=event, count=count))


def peer_epsilon(event: Event, count: int, *, delta: float, pessimistic: bool = True) -> float:
    """Return the oracle's answer from a distribution that is composed once for all deltas."""
    return float(_held(event, count, pessimistic).get_epsilon_for_delta(delta))


def peer_delta(event: Event, count: int, *, epsilon: float, pessimistic: bool = True) -> float:
    return float(_held(event, count, pessimistic).get_delta_for_epsilon(epsilon))


@pytest.mark.parametrize("event", BOTH, ids=lambda event: event.kind)
@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_no_accountant_is_below_the_optimistic_answer_and_the_best_is_near(
    event: Event, count: int, delta: float
) -> None:
    events = RepeatedEvent(event=event, count=count)
    below = peer_epsilon(event, count, delta=delta, pessimistic=False)
    above = peer_epsilon(event, count, delta=delta)
    answers = compare(events, delta=delta)
    assert len(answers) >= 3
    assert min(answers.values()) >= below
    assert float(composed(events, delta=delta).epsilon) <= 1.01 * above


def test_a_mixture_agrees_with_the_oracle() -> None:
    events = [*BOTH[:4], BOTH[5]] * 10
    ours = float(composed(events, delta=1e-6).epsilon)
    assert PeerAccountant(pessimistic=False).epsilon(events, delta=1e-6) <= ours
    assert ours <= 1.002 * PeerAccountant().epsilon(events, delta=1e-6)


@pytest.mark.parametrize("event", SAMPLED)
@pytest.mark.parametrize("count", [1, 100])
def test_samples_agree_with_the_oracle(event: Event, count: int) -> None:
    ours = float(composed(RepeatedEvent(event=event, count=count), delta=1e-6).epsilon)
    assert peer_epsilon(event, count, delta=1e-6, pessimistic=False) <= ours
    assert ours <= 1.002 * peer_epsilon(event, count, delta=1e-6)


@pytest.mark.parametrize("event", [*BOTH, *SAMPLED, ApproxEvent(epsilon=1, delta=1e-3)])
@pytest.mark.parametrize("epsilon", [0.1, 1, 2])
def test_deltas_agree_with_the_oracle(event: Event, epsilon: float) -> None:
    events = RepeatedEvent(event=event, count=5)
    ours = float(NumericalAccountant().delta(events, epsilon=epsilon))
    if not isinstance(event, ApproxEvent):
        assert peer_delta(event, 5, epsilon=epsilon, pessimistic=False) <= ours + 1e-12
    assert ours <= 1.02 * peer_delta(event, 5, epsilon=epsilon) + 1e-9


def test_the_oracle_refuses_what_it_does_not_know() -> None:
    with pytest.raises(NotImplementedError, match="zero_concentrated"):
        PeerAccountant().epsilon(ZeroConcentratedEvent(rho=1), delta=1e-6)
