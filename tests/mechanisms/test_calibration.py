from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from cloister.accounting.conversions import gaussian_delta
from cloister.accounting.events import ApproxEvent, PureEvent, SequenceEvent
from cloister.core import exact
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.errors import CloisterError, ParameterError
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps

FRACTIONS = st.fractions(min_value=Fraction(1, 100), max_value=10, max_denominator=1000)


@given(FRACTIONS, st.integers(1, 9))
def test_pure_group_privacy_divides_epsilon_exactly(epsilon: Fraction, persons: int) -> None:
    calibration = NoiseCalibration.of(epsilon=epsilon, unit="patient", max_rows_per_unit=persons)
    assert calibration.rows == persons
    assert calibration.epsilon * persons == epsilon
    replaced = NoiseCalibration.of(epsilon=epsilon, adjacency="replace", max_rows_per_unit=persons)
    assert replaced.rows == 2 * persons
    assert replaced.epsilon * 2 * persons == epsilon


@given(FRACTIONS, st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 100)), st.integers(1, 6))
def test_group_privacy_of_delta_follows_step_by_step(epsilon: Fraction, delta: Fraction, rows: int) -> None:
    calibration = NoiseCalibration.of(epsilon=epsilon, delta=delta, unit="patient", max_rows_per_unit=rows)
    # P(M(0)) <= e P(M(1)) + d <= e (e P(M(2)) + d) + d <= ..., with e rounded up.
    factor, slack = exact.exp_bounds(calibration.epsilon)[1], Fraction(0)
    for _ in range(rows):
        slack = factor * slack + calibration.delta
    assert slack <= delta * (1 + Fraction(1, 10**12))
    assert slack >= delta * (1 - Fraction(1, 10**6))


def test_delta_is_never_rounded_up() -> None:
    calibration = NoiseCalibration.of(epsilon=1, delta=Fraction(1, 10**5), adjacency="replace")
    lower = exact.exp_bounds(Fraction(1, 2))[0]
    assert calibration.delta * (1 + lower) <= Fraction(1, 10**5)


def test_one_row_needs_no_division() -> None:
    calibration = NoiseCalibration.of(epsilon=1, delta=1e-5)
    assert calibration.delta == calibration.budget.delta
    assert calibration.epsilon == 1
    assert NoiseCalibration.of(epsilon=1, adjacency="replace").delta == 0


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_laplace_shares_add_up_to_epsilon(parts: list[int]) -> None:
    calibration = NoiseCalibration.of(epsilon=Fraction(3, 7))
    shares = [Fraction(part, sum(parts)) for part in parts]
    noises = [calibration.laplace(share, sensitivity=5) for share in shares]
    assert sum(noise.epsilon for noise in noises) == calibration.epsilon
    assert all(noise.scale == 5 / noise.epsilon for noise in noises)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_gaussian_shares_add_up_to_one_release(parts: list[int]) -> None:
    calibration = NoiseCalibration.of(epsilon=1, delta=1e-5)
    shares = [Fraction(part, sum(parts)) for part in parts]
    events = [calibration.gaussian(share, squared_sensitivity=7).event for share in shares]
    assert sum(1 / event.squared_multiplier for event in events) == 1 / calibration.squared_multiplier


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 10])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_everything_on_one_gaussian_keeps_within_delta(epsilon: float, delta: float) -> None:
    calibration = NoiseCalibration.of(epsilon=epsilon, delta=delta)
    noise = calibration.gaussian(Fraction(1), squared_sensitivity=2**30)
    assert noise.squared_sigma >= 2**30 * calibration.squared_multiplier
    multiplier = float(calibration.squared_multiplier) ** 0.5
    assert gaussian_delta(1 / multiplier, epsilon) <= delta * (1 + 1e-9)
    assert gaussian_delta(1 / (multiplier * 0.99), epsilon) > delta


def test_more_epsilon_never_means_more_noise() -> None:
    epsilons = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(10)]
    for delta in (0, 1e-6):
        calibrations = [NoiseCalibration.of(epsilon=epsilon, delta=delta) for epsilon in epsilons]
        spreads = [item.noise(Fraction(1, 3), sensitivity=9, squared_sensitivity=27).deviation for item in calibrations]
        assert all(more >= less for more, less in pairwise(spreads))


def test_noise_is_laplace_without_a_delta_and_gaussian_with_one() -> None:
    pure, slack = NoiseCalibration.of(epsilon=1), NoiseCalibration.of(epsilon=1, delta=1e-5)
    assert isinstance(pure.noise(Fraction(1), sensitivity=1, squared_sensitivity=1), LaplaceSteps)
    assert isinstance(slack.noise(Fraction(1), sensitivity=1, squared_sensitivity=1), GaussianSteps)
    assert pure.is_pure
    assert not slack.is_pure


def test_event_is_the_steps_for_one_row_and_the_whole_for_more() -> None:
    pure = NoiseCalibration.of(epsilon=1)
    steps = (FitStep("counts", pure.laplace(Fraction(1), sensitivity=1).event),)
    assert pure.event(steps) == SequenceEvent(events=(steps[0].event,))
    assert NoiseCalibration.of(epsilon=1, adjacency="replace").event(steps) == PureEvent(epsilon=Fraction(1))
    both = NoiseCalibration.of(epsilon=1, delta=Fraction(1, 10**6), unit="patient", max_rows_per_unit=3)
    assert both.event(steps) == ApproxEvent(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert steps[0].to_dict()["label"] == "counts"


def test_guarantee_is_what_was_asked_for() -> None:
    promise = NoiseCalibration.of(epsilon=0.5, adjacency="replace").guarantee(assumptions=("x",))
    assert promise == PureDP(epsilon=Fraction(1, 2), adjacency=Adjacency.REPLACE, assumptions=("x",))
    slack = NoiseCalibration.of(epsilon=2, delta=1e-6, unit="patient", max_rows_per_unit=2).guarantee()
    expected = ApproxDP(epsilon=Fraction(2), delta=Fraction(1, 10**6), unit="patient", adjacency=Adjacency.USER)
    assert slack == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": "much"},
        {"delta": 1},
        {"delta": -1e-9},
        {"max_rows_per_unit": 0},
        {"max_rows_per_unit": 1.5},
        {"adjacency": "substitute"},
    ],
)
def test_bad_budgets_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((CloisterError, ValueError)):
        NoiseCalibration.of(**{"epsilon": 1, **wrong})  # type: ignore[arg-type]  # wrong on purpose


def test_other_neighbor_relations_are_refused_with_a_fix() -> None:
    others = [item for item in Adjacency if item not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE)]
    for other in others:
        with pytest.raises(ParameterError, match="add_remove or replace"):
            NoiseCalibration.of(epsilon=Fraction(1), adjacency=other)


def test_persons_are_not_replaced() -> None:
    with pytest.raises(ParameterError, match='adjacency="add_remove"'):
        NoiseCalibration.of(epsilon=Fraction(1), unit="patient", adjacency="replace")
    stated = NoiseCalibration.of(epsilon=Fraction(1), unit="patient", adjacency="user", max_rows_per_unit=2)
    assert stated == NoiseCalibration.of(epsilon=Fraction(1), unit="patient", max_rows_per_unit=2)
    assert stated.rows == 2


def test_an_epsilon_too_small_for_gaussian_noise_is_refused() -> None:
    tiny = NoiseCalibration.of(epsilon=Fraction(1, 10**6), delta=1e-6, unit="patient", max_rows_per_unit=10**4)
    with pytest.raises(ParameterError, match="at least 1e-9"):
        _ = tiny.squared_multiplier
