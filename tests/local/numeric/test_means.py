"""Protocols for one number: exact laws, means and variances; and samples that agree with them."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.core.random import SystemRandomSource
from cloister.errors import (
    ForeignReportError,
    MalformedReportError,
    MissingBoundsError,
    OutsideDomainError,
    ParameterError,
    TooFewReportsError,
)
from cloister.local import Duchi, Hybrid, LocalLaplace, NumericProtocol, Piecewise, Reports, SquareWave
from cloister.local.draws import CERTAIN
from cloister.local.numeric.duchi import Bit
from cloister.testing import check_scale, distributions, samplers
from tests.local.laws import assert_epsilon_is_exact, law
from tests.local.numeric.helpers import mean_is, moments, readings, variance_is, words

FINITE: list[Any] = [Duchi, Piecewise, SquareWave, Hybrid]
EVERY: list[Any] = [*FINITE, LocalLaplace]


@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, "0.61", 1, 2.5, 20])
@pytest.mark.parametrize("steps", [1, 2, 7, 16])
def test_ldp_01_the_devices_law_has_the_epsilon_asked_for(kind: Any, epsilon: Any, steps: int) -> None:
    protocol = kind(bounds=(0, 1), epsilon=epsilon, steps=steps)
    assert_epsilon_is_exact(protocol, [law(protocol, step) for step in range(steps + 1)])


@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
def test_readings_are_unbiased_and_have_the_stated_variance(kind: Any, epsilon: float) -> None:
    protocol = kind(bounds=(-1, 3), epsilon=epsilon, steps=16)
    for step in range(17):
        value = -1 + step / 4
        mean, variance = moments(readings(protocol, step))
        assert mean == pytest.approx(value, abs=1e-12)
        assert variance == pytest.approx(protocol.variance(value), rel=1e-12)


@pytest.mark.parametrize("kind", FINITE)
def test_worst_variance_and_spread_are_the_largest_of_all(kind: Any) -> None:
    protocol = kind(bounds=(0, 1), epsilon=1, steps=16)
    found = [moments(readings(protocol, step)) for step in range(17)]
    assert protocol.variance() == pytest.approx(max(variance for _, variance in found))
    mixed = [
        (one[1] + other[1]) / 2 + (one[0] - other[0]) ** 2 / 4 for one in found for other in found
    ]  # half of the people here, half there
    assert protocol.spread() == pytest.approx(max(mixed))


def test_thresholds_of_the_bit_are_exact() -> None:
    for epsilon in (Fraction(1, 10**6), Fraction(1), Fraction(20)):
        for steps in (1, 3, 1000, 2**30, 2**31 - 1, 2**31):
            bit = Bit.of(epsilon, steps)
            codes = np.unique(np.linspace(0, steps, 500).astype(np.int64))
            slow = [bit.low + int(code) * (bit.high - bit.low) // steps for code in codes]
            assert bit.thresholds(codes).tolist() == slow
            assert (slow[0], slow[-1]) == (bit.low, bit.high)
            assert bit.low + bit.high == CERTAIN


def test_hybrid_has_the_published_worst_variance() -> None:
    for epsilon in (0.7, 1, 2, 4):
        s, e = math.exp(epsilon / 2), math.exp(epsilon)
        expected = (s + 3) / (3 * s * (s - 1)) + (e + 1) ** 2 / (s * (e - 1) ** 2)
        protocol = Hybrid(bounds=(-1, 1), epsilon=epsilon)
        assert protocol.variance() == pytest.approx(expected, rel=1e-7)
        assert protocol.variance(0.5) == pytest.approx(expected, rel=1e-7)
    assert Hybrid(bounds=(-1, 1), epsilon=0.61).variance() == Duchi(bounds=(-1, 1), epsilon=0.61).variance()


def test_draws_are_taken_in_the_order_of_the_protocol() -> None:
    duchi, window = Duchi(bounds=(0, 1), epsilon=1), Piecewise(bounds=(0, 1), epsilon=1)
    share = 1 - math.exp(-0.5)
    hybrid = Hybrid(bounds=(0, 1), epsilon=1)
    bit = duchi.randomize(0.25, random_state=words(0.4)).y
    cell = window.randomize(0.25, random_state=words(0.9, 0.7)).y
    assert hybrid.randomize(0.25, random_state=words(share + 1e-9, 0.4)).y == [0, bit]
    assert hybrid.randomize(0.25, random_state=words(share - 1e-9, 0.9, 0.7)).y == [1, cell]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_samples_have_the_mean_and_variance_and_refute_others(kind: Any, epsilon: float) -> None:
    protocol = kind(bounds=(-1, 1), epsilon=epsilon)
    sample = protocol.debias(protocol.randomize(np.full(400_000, 0.8)))
    variance = protocol.variance(0.8)
    assert mean_is(sample, 0.8, variance)
    assert variance_is(sample, variance)
    for factor in (0.9, 1.1):
        assert not variance_is(factor * sample, variance)
    shift = 0.15 if epsilon < 1 else 0.08
    assert not mean_is(sample, 0.8 - shift, variance)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", FINITE)
def test_many_reports_follow_the_law_of_one_and_refute_another_epsilon(kind: Any) -> None:
    def numbers(size: int) -> Any:
        payload = kind(bounds=(0, 1), epsilon=2, steps=6).randomize(np.ones(size)).payload
        return payload.view(np.uint8).reshape(size, -1) @ (256 ** np.arange(payload.itemsize))

    def law_at(epsilon: float) -> distributions.Distribution:
        found = law(kind(bounds=(0, 1), epsilon=epsilon, steps=6), 6)
        return distributions.categorical({int.from_bytes(key, "little"): float(found[key]) for key in found})

    check_scale(numbers, law_at, scale=2.0, size=400_000)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid, LocalLaplace])
def test_intervals_cover_as_often_as_they_say(kind: Any) -> None:
    groups, people = 3000, 400
    protocol = kind(bounds=(0, 10), epsilon=1.5)
    values = 10 * np.minimum(samplers.uniform(groups * people), samplers.uniform(groups * people))
    reports = protocol.randomize(values)
    estimates = [protocol.estimate(reports[start : start + people]) for start in range(0, len(reports), people)]
    truth = 10 / 3

    def coverage(factor: float) -> float:
        return float(np.mean([abs(each.value - truth) <= factor * each.margin() for each in estimates]))

    error = 6.2 * math.sqrt(0.95 * 0.05 / groups)
    assert abs(coverage(1) - 0.95) <= error + 0.004  # the normal approximation at 400 reports
    assert abs(coverage(0.8) - 0.95) > error
    assert abs(coverage(1.5) - 0.95) > error


@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid, LocalLaplace])
def test_estimates_are_in_the_unit_of_the_bounds(kind: Any) -> None:
    protocol = kind(bounds=(1000, 1100), epsilon=4)
    reports = protocol.randomize(np.linspace(1050, 1100, 20_000))
    estimate = protocol.estimate(reports)
    assert estimate.value == pytest.approx(protocol.debias(reports).mean())
    assert estimate.standard_error == pytest.approx(protocol.debias(reports).std(ddof=1) / math.sqrt(20_000))
    assert abs(estimate.value - 1075) < 6.2 * math.sqrt(protocol.variance() / 20_000)
    assert estimate.bounds == (1000, 1100)
    assert json.loads(json.dumps(estimate.to_dict()))["protocol"] == protocol.name


def test_equal_reports_are_no_certainty() -> None:
    protocol = Duchi(bounds=(-1, 1), epsilon=1)
    reports = protocol.randomize([1.0, 1.0], random_state=words(0.0, 0.0))
    estimate = protocol.estimate(reports)
    assert estimate.standard_error == pytest.approx(math.sqrt(protocol.variance(1) / 2))


def test_the_planner_is_met_by_simulated_reports() -> None:
    protocol = Piecewise(bounds=(0, 100), epsilon=1)
    people = protocol.respondents(2)
    extremes = np.where(np.arange(people) % 2 == 0, 0, 100)
    assert protocol.estimate(protocol.randomize(extremes)).margin() == pytest.approx(2, rel=0.05)
    assert protocol.respondents(1) == pytest.approx(4 * people, abs=4)
    with pytest.raises(ParameterError, match="positive margin"):
        protocol.respondents(0)


@pytest.mark.parametrize("kind", EVERY)
def test_public_bounds_are_required(kind: Any) -> None:
    with pytest.raises(MissingBoundsError, match="anybody would expect"):
        kind(epsilon=1)


@pytest.mark.parametrize("kind", EVERY)
def test_a_protocol_shows_its_bounds(kind: Any) -> None:
    protocol = kind(bounds=("0.1", 10), epsilon=1)
    assert protocol.bounds == (Fraction(1, 10), 10)
    assert repr(protocol) == f"{kind.__name__}(bounds=(0.1, 10), epsilon=1)"


@pytest.mark.parametrize("kind", EVERY)
def test_one_number_and_many(kind: Any) -> None:
    protocol = kind(bounds=(0, 10), epsilon=1)
    assert len(protocol.randomize(3)) == 1
    assert len(protocol.randomize([])) == 0
    assert len(protocol.randomize(np.arange(5))) == 5
    with pytest.raises(ParameterError, match="for vectors"):
        protocol.randomize([[1, 2], [3, 4]])
    with pytest.raises(OutsideDomainError, match="not a number"):
        protocol.randomize([1, "4711"])


@pytest.mark.parametrize("kind", EVERY)
def test_bad_reports_are_refused(kind: Any) -> None:
    protocol = kind(bounds=(0, 10), epsilon=1)
    reports = protocol.randomize([1, 2, 3])
    for other in (
        kind(bounds=(0, 10), epsilon=2),
        kind(bounds=(0, 11), epsilon=1),
        kind(bounds=(0, 10), epsilon=1, steps=9),
    ):
        with pytest.raises(ForeignReportError, match="very protocol"):
            other.estimate(reports)
    with pytest.raises(TooFewReportsError, match="at least 2"):
        protocol.estimate(reports[:1])
    wrong = {**reports[0].to_dict(), "y": 4711}
    outside = {**reports[0].to_dict(), "y": 10**15}
    for bad in (outside, {**wrong, "y": "3"}, {**wrong, "y": None}, {**wrong, "y": True}, {**wrong, "y": 2.5}):
        with pytest.raises(MalformedReportError, match="anew") as raised:
            protocol.estimate([bad, bad])
        assert "4711" not in str(raised.value)


def hybrid_report(protocol: NumericProtocol, part: int, y: int) -> dict[str, Any]:
    report: dict[str, Any] = {**protocol.randomize(1).to_dicts()[0], "y": [part, y]}
    return report


def test_parts_of_a_hybrid_that_no_device_makes_are_refused() -> None:
    protocol, low = Hybrid(bounds=(0, 10), epsilon=2), Hybrid(bounds=(0, 10), epsilon=0.5)
    assert len(protocol.read([hybrid_report(protocol, 1, 2), hybrid_report(protocol, 0, 1)])) == 2
    for each, part, y in ((protocol, 0, 2), (protocol, 2, 0), (protocol, 1, 2**31), (low, 1, 0)):
        with pytest.raises(MalformedReportError, match="anew"):
            each.read([hybrid_report(each, part, y)])
    rows = protocol.output_space.rows(part=np.array([0]), y=np.array([7]))
    with pytest.raises(MalformedReportError, match="anew"):
        protocol.estimate(Reports(protocol, rows))


def test_ten_to_the_six_values_take_well_under_a_second() -> None:
    import time

    values = samplers.uniform(1_000_000)
    for kind in EVERY:
        protocol = kind(bounds=(0, 1), epsilon=1)
        protocol.randomize(values[:1000])
        started = time.process_time()
        protocol.mean(protocol.randomize(values, random_state=SystemRandomSource()))
        assert time.process_time() - started < 1
