"""Samples, steps, schedules and rules."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.accounting.events import GaussianEvent, RepeatedEvent, SubsampledEvent
from cloister.core.random import SeededRandomSource, SystemRandomSource
from cloister.errors import ParameterError
from cloister.learn.neural._schedule import (
    MOST_AT_ONCE,
    check_sampling,
    noisy_row_count,
    plan_schedule,
    poisson_sample,
    sample_rate,
)
from cloister.learn.neural.mlp import Adam, Average, Momentum, choose_settings
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.testing.distributions import categorical
from cloister.testing.statistics import check_distribution
from tests.support.releases import composed

SOURCE = SystemRandomSource()
CALIBRATION = NoiseCalibration.of(epsilon=Fraction(1), delta=Fraction(1, 10**5))


@pytest.mark.statistical
def test_each_row_is_sampled_at_the_rate() -> None:
    rate = Fraction(3, 10)
    places, counts = poisson_sample(np.ones(200_000, dtype=np.int64), rate, SOURCE)
    inside = np.zeros(200_000, dtype=np.int64)
    inside[places] = 1
    assert (counts == 1).all()
    check_distribution(inside, categorical({0: 0.7, 1: 0.3}))
    for wrong in (0.27, 0.33):
        with pytest.raises(AssertionError):
            check_distribution(inside, categorical({0: 1 - wrong, 1: wrong}))
    pairs = inside.reshape(-1, 2) @ np.array([2, 1])
    check_distribution(pairs, categorical({0: 0.49, 1: 0.21, 2: 0.21, 3: 0.09}))


@pytest.mark.statistical
def test_a_row_of_weight_three_is_three_rows() -> None:
    weights = np.full(50_000, 3, dtype=np.int64)
    places, counts = poisson_sample(weights, Fraction(1, 2), SOURCE)
    often = np.zeros(50_000)
    often[places] = counts
    check_distribution(often.astype(np.int64), categorical({0: 1 / 8, 1: 3 / 8, 2: 3 / 8, 3: 1 / 8}))


@given(st.lists(st.integers(0, 3 * MOST_AT_ONCE), max_size=8))
def test_a_rate_of_one_takes_everything(listed: list[int]) -> None:
    weights = np.array(listed, dtype=np.int64)
    places, counts = poisson_sample(weights, Fraction(1), SeededRandomSource(1))
    assert (counts >= 1).all()
    assert (counts <= MOST_AT_ONCE).all()
    total = np.bincount(places, counts, minlength=len(weights)) if len(weights) else np.zeros(0)
    assert (total == weights).all()


def test_samples_may_be_empty() -> None:
    for weights in (
        np.ones(5, dtype=np.int64),
        np.full(5, 2),
        np.zeros(0, dtype=np.int64),
        np.zeros(3, dtype=np.int64),
    ):
        places, counts = poisson_sample(weights, Fraction(0), SOURCE)
        assert len(places) == len(counts) == 0


def test_momentum_and_adam_follow_their_formulas() -> None:
    start, gradient = np.array([1.0, -2.0]), np.array([0.5, 4.0])
    plain = Momentum(0.0).step(start, gradient, rate=0.1)
    assert plain.tolist() == pytest.approx([0.95, -2.4])
    heavy = Momentum(0.5)
    first = heavy.step(start, gradient, rate=0.1)
    assert heavy.step(first, gradient, rate=0.1) == pytest.approx(start - 0.1 * gradient * (0.5 + 0.75))
    assert Adam().step(start, gradient, rate=0.1) == pytest.approx([0.9, -2.1])


def test_averages_are_of_the_last_iterates() -> None:
    for share, expected in ((0.5, 2.5), (0.0, 3.0), (1.0, 1.5)):
        average = Average(4, share)
        for value in range(4):
            average.add(np.array([float(value)]))
        assert average.value().tolist() == [expected]


def test_a_schedule_takes_all_of_the_budget_and_no_more() -> None:
    for rows in (1000, None):
        schedule = plan_schedule(
            CALIBRATION, rate=Fraction(1, 20), expected_rows=rows, count=200, squared_sensitivity=4**30
        )
        event = CALIBRATION.event(schedule.steps)
        assert composed(event, epsilon=1).delta <= Fraction(1, 10**5)
        assert composed(event, epsilon=Fraction(98, 100)).delta > Fraction(1, 10**5)
        descent = schedule.steps[-1].event
        assert isinstance(descent, RepeatedEvent)
        assert isinstance(descent.event, SubsampledEvent)
        assert isinstance(descent.event.event, GaussianEvent)
        assert (descent.count, descent.event.rate) == (200, Fraction(1, 20))
        assert float(schedule.noise.squared_sigma) == pytest.approx(schedule.multiplier**2 * 4.0**30)
        assert len(schedule.steps) == (1 if rows else 2)


def test_the_number_of_rows_is_declared_or_noisy() -> None:
    weights = np.full(1000, 5, dtype=np.int64)
    declared = plan_schedule(CALIBRATION, rate=Fraction(1), expected_rows=77, count=1, squared_sensitivity=1)
    assert noisy_row_count(declared, weights, SOURCE) == 77
    noisy = plan_schedule(CALIBRATION, rate=Fraction(1), expected_rows=None, count=1, squared_sensitivity=1)
    assert noisy.count_noise is not None
    found = [noisy_row_count(noisy, weights, SOURCE) for _ in range(40)]
    assert len(set(found)) > 1
    assert abs(np.mean(found) - 5000) < 8 * noisy.count_noise.deviation / math.sqrt(40)
    assert noisy_row_count(noisy, weights[:0], SOURCE) >= 1


def test_hopeless_plans_are_known_from_public_numbers() -> None:
    planned = plan_schedule(
        NoiseCalibration.of(epsilon=Fraction(1, 100), delta=Fraction(1, 10**6)),
        rate=Fraction(1),
        expected_rows=None,
        count=10,
        squared_sensitivity=4,
    )
    assert planned.outlook.error(10) > 1
    assert planned.outlook.error(10**6) < 1


def test_rates_follow_from_public_numbers() -> None:
    assert sample_rate(rate=None, rows=None, batch=None) == (Fraction(1, 20), None)
    assert sample_rate(rate=0.1, rows=500, batch=None) == (Fraction(1, 10), 500)
    assert sample_rate(rate=None, rows=500, batch=5) == (Fraction(1, 100), 500)
    assert sample_rate(rate=None, rows=5, batch=500) == (Fraction(1), 5)
    for rate, rows, batch in ((None, None, 5), (0.1, 500, 5)):
        with pytest.raises(ParameterError, match="expected_rows, or sample_rate alone"):
            sample_rate(rate=rate, rows=rows, batch=batch)
    with pytest.raises(ParameterError, match="sample_rate=0.05"):
        sample_rate(rate=0, rows=None, batch=None)


def test_gaussian_noise_needs_a_delta() -> None:
    check_sampling(CALIBRATION, what="This")
    with pytest.raises(ParameterError, match="delta=1e-6"):
        check_sampling(NoiseCalibration.of(epsilon=Fraction(1)), what="This")


def test_rules_depend_on_what_the_budget_carries() -> None:
    def by_rule(epsilon: float, rows: int | None = None, solver: str = "adam") -> tuple:
        found = choose_settings(
            hidden=None, epochs=None, learning_rate=None, solver=solver, epsilon=epsilon, expected_rows=rows
        )
        return found.hidden, found.epochs, found.learning_rate

    assert by_rule(0.1) == ((), 20, 0.1)
    assert by_rule(1) == ((), 100, 0.1)
    assert by_rule(10) == ((32,), 100, 0.05)
    assert by_rule(1, 10**6) == ((32,), 100, 0.05)
    assert by_rule(10, 100) == ((), 20, 0.1)
    assert by_rule(10, solver="sgd")[2] == 4
    given_ = choose_settings(hidden=[3, 2], epochs=7, learning_rate=1, solver="sgd", epsilon=1, expected_rows=None)
    assert (given_.hidden, given_.epochs, given_.learning_rate) == ((3, 2), 7, 1)
    assert choose_settings(hidden=9, epochs=1, learning_rate=1, solver="sgd", epsilon=1, expected_rows=1).hidden == (9,)
    with pytest.raises(ParameterError, match="hidden_layer_sizes"):
        choose_settings(hidden=[0], epochs=1, learning_rate=1, solver="sgd", epsilon=1, expected_rows=1)
