from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cloister.accounting.events import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RepeatedEvent,
    ZeroConcentratedEvent,
)
from cloister.attacks.auditing.exact_check import check_exactly, discrete_laplace_bounds
from cloister.core.guarantees import ApproxDP, LocalDP, PureDP, ZeroConcentratedDP
from cloister.testing.laws import covers

PURE, APPROX, RHO = PureDP(epsilon=1), ApproxDP(epsilon=1, delta=1e-5), ZeroConcentratedDP(rho=0.5)
NESTED = RepeatedEvent(event=PureEvent(epsilon=1), count=2)


@pytest.mark.parametrize(
    ("guarantee", "event", "agrees"),
    [
        (PURE, PureEvent(epsilon=1), True),
        (PURE, PureEvent(epsilon=1.01), False),
        (PURE, DiscreteLaplaceEvent(scale=3, sensitivity=3), True),
        (PURE, DiscreteLaplaceEvent(scale=3, sensitivity=4), False),
        (PURE, LaplaceEvent(noise_multiplier=1), True),
        (PURE, LaplaceEvent(noise_multiplier=0.9), False),
        (PURE, GaussianEvent(squared_multiplier=100), False),
        (APPROX, PureEvent(epsilon=1), True),
        (APPROX, PureEvent(epsilon=2), False),
        (ApproxDP(epsilon=1, delta=0.5568), PureEvent(epsilon=2), True),
        (ApproxDP(epsilon=1, delta=0.5567), PureEvent(epsilon=2), False),
        (APPROX, ApproxEvent(epsilon=1, delta=1e-5), True),
        (APPROX, ApproxEvent(epsilon=1, delta=1e-4), False),
        (APPROX, ApproxEvent(epsilon=2, delta=1e-5), False),
        (APPROX, GaussianEvent(squared_multiplier=Fraction("3.730633") ** 2), True),
        (APPROX, GaussianEvent(squared_multiplier=Fraction("3.730630") ** 2), False),
        (APPROX, NESTED, False),
        (ApproxDP(epsilon=0.5, delta=0.1), LaplaceEvent(noise_multiplier=1.407023), True),
        (ApproxDP(epsilon=0.5, delta=0.1), LaplaceEvent(noise_multiplier=1.40702), False),
        (ApproxDP(epsilon=0.5, delta=0.1), DiscreteLaplaceEvent(scale=1500, sensitivity=1000), True),
        (ApproxDP(epsilon=0.5, delta=0.1), DiscreteLaplaceEvent(scale=1400, sensitivity=1000), False),
        (RHO, ZeroConcentratedEvent(rho=0.5), True),
        (RHO, ZeroConcentratedEvent(rho=0.5, delta=0.1), False),
        (RHO, GaussianEvent(squared_multiplier=1), True),
        (RHO, DiscreteGaussianEvent(squared_sigma=4, squared_sensitivity=4), True),
        (RHO, DiscreteGaussianEvent(squared_sigma=4, squared_sensitivity=5), False),
        (RHO, PureEvent(epsilon=1), True),
        (RHO, NESTED, False),
        (LocalDP(epsilon=1), PureEvent(epsilon=1), False),
    ],
)
def test_a_guarantee_admits_what_the_event_loses(guarantee: Any, event: Any, *, agrees: bool) -> None:
    assert covers(guarantee, event) is agrees


def test_the_discrete_profile_agrees_with_exact_probabilities() -> None:
    report = check_exactly(
        lambda center: discrete_laplace_bounds(center, scale=Fraction(2), window=(-20, 20)), [(0, 3)], epsilon=1
    )
    delta = report.delta_at(1)
    event = DiscreteLaplaceEvent(scale=2, sensitivity=3)
    assert covers(ApproxDP(epsilon=1, delta=delta), event)
    assert not covers(ApproxDP(epsilon=1, delta=delta * Fraction(999, 1000)), event)
