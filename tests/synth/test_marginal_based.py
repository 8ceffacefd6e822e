from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting.conversions import zero_concentrated_to_epsilon
from cloister.accounting.events import PureEvent, ZeroConcentratedEvent
from cloister.core.random import SystemRandomSource
from cloister.errors import InternalError, ParameterError
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.mechanisms.selection import Select
from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps
from cloister.synth.marginal_based import PrivacyFilter

SOURCE = SystemRandomSource()
HALF = Fraction(1, 2)


def privacy_filter(epsilon: float = 1, delta: float = 0, **options: object) -> PrivacyFilter:
    return PrivacyFilter(NoiseCalibration.of(epsilon=epsilon, delta=delta, **options))  # type: ignore[arg-type]


@given(
    epsilon=st.fractions(Fraction(1, 100), Fraction(20)),
    delta=st.sampled_from([Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**12)]),
)
@settings(max_examples=25, deadline=None)
def test_rho_is_the_largest_that_keeps_the_promise(epsilon: Fraction, delta: Fraction) -> None:
    rho = NoiseCalibration.of(epsilon=epsilon, delta=delta).rho
    assert zero_concentrated_to_epsilon(rho, delta=delta) <= epsilon
    assert zero_concentrated_to_epsilon(rho * Fraction(1001, 1000), delta=delta) > epsilon


def test_there_is_no_rho_without_a_delta() -> None:
    with pytest.raises(ParameterError, match="Fix: give a delta"):
        _ = NoiseCalibration.of(epsilon=1).rho


def test_an_epsilon_that_leaves_no_rho_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least 1e-9"):
        _ = NoiseCalibration.of(epsilon=Fraction(1, 10**30), delta=Fraction(1, 10**30)).rho


def test_noise_without_a_delta_is_laplace_and_shares_add_up() -> None:
    noise = privacy_filter(2).noise(HALF)
    assert isinstance(noise, LaplaceSteps)
    assert noise.scale == 1
    assert privacy_filter(2).event == PureEvent(epsilon=Fraction(2))


@pytest.mark.parametrize(
    ("options", "moved"),
    [({}, 1), ({"adjacency": "replace"}, 2), ({"unit": "person", "max_rows_per_unit": 3}, 9)],
)
def test_noise_with_a_delta_covers_how_far_neighbors_move_a_marginal(options: dict[str, object], moved: int) -> None:
    one = privacy_filter(1, 1e-6, **options)
    noise = one.noise(HALF)
    assert isinstance(noise, GaussianSteps)
    assert noise.squared_sigma == Fraction(moved) / (2 * one.calibration.rho * HALF)
    assert one.event == ZeroConcentratedEvent(rho=one.calibration.rho)


@pytest.mark.parametrize(("options", "rows"), [({}, 1), ({"adjacency": "replace"}, 2)])
def test_a_choice_costs_an_eighth_of_its_squared_epsilon(
    options: dict[str, object], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Select] = []
    release = Select.release
    monkeypatch.setattr(
        Select, "release", lambda self, scores, **how: (seen.append(self), release(self, scores, **how))[1]
    )
    one = privacy_filter(1, 1e-6, **options)
    assert one.choose(np.array([0, 10**9]), ["a", "b"], HALF, SOURCE, label="x", sensitivity=Fraction(3)) == "b"
    (mechanism,) = seen
    assert mechanism.epsilon**2 / 8 <= one.calibration.rho * HALF
    assert mechanism.epsilon**2 / 8 == pytest.approx(float(one.calibration.rho * HALF))
    assert (mechanism.method, mechanism.monotone) == ("exponential", False)
    assert mechanism.score_sensitivity == 3 * rows
    assert [step.event for step in one.steps] == [ZeroConcentratedEvent(rho=one.calibration.rho * HALF)]


def test_the_odds_of_a_choice_are_those_of_the_exponential_mechanism() -> None:
    """An exact check of what is drawn: scores that differ by one have odds of exp(epsilon / 2), not exp(epsilon)."""
    mechanism = Select(candidates=(0, 1), score_sensitivity=1, epsilon=Fraction(1), method="exponential")
    odds = mechanism.probabilities([1, 0])
    assert odds[0] / odds[1] == pytest.approx(math.exp(0.5))


def test_nothing_is_spent_beyond_the_whole() -> None:
    one = privacy_filter()
    one.choose(np.array([1]), ["a"], HALF, SOURCE, label="x")
    assert one.left == HALF
    for share in (Fraction(2, 3), Fraction(3, 5)):
        with pytest.raises(InternalError, match="more than it may"):
            one.choose(np.array([1]), ["a"], share, SOURCE, label="x")
    assert one.left == HALF
