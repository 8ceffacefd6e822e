"""Protocols for several numbers: exact laws, corners, places, means."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from cloister.errors import (
    ForeignReportError,
    MalformedReportError,
    MissingBoundsError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    TooFewReportsError,
)
from cloister.local import DuchiVector, LaplaceVector, Piecewise, PiecewiseVector, Reports
from cloister.local.draws import law_of
from cloister.local.numeric import base
from cloister.local.numeric.duchi import subsets, uniform_subset
from cloister.local.numeric.piecewise import distinct_places
from cloister.testing import check_scale, distributions, samplers
from tests.local.laws import assert_epsilon_is_exact, law
from tests.local.numeric.helpers import Z, mean_is, moments, readings
from tests.support.thoroughness import audited

EVERY: list[Any] = [DuchiVector, PiecewiseVector, LaplaceVector]


def unit(dimensions: int) -> list[tuple[int, int]]:
    return [(-1, 1)] * dimensions


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_ldp_01_corners_have_exactly_their_epsilon(dimensions: int, epsilon: float) -> None:
    protocol = DuchiVector(bounds=unit(dimensions), epsilon=epsilon, steps=1)
    assert_epsilon_is_exact(protocol, [law(protocol, code) for code in product((0, 1), repeat=dimensions)])


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", audited([9, 10], but=[10]))
def test_ldp_01_corners_of_a_large_cube_have_exactly_their_epsilon(dimensions: int) -> None:
    protocol = DuchiVector(bounds=unit(dimensions), epsilon=1, steps=1)
    codes = [[0] * dimensions, [1] * dimensions, [0, 1] * (dimensions // 2) + [1] * (dimensions % 2)]
    assert_epsilon_is_exact(protocol, [law(protocol, code) for code in codes])


def test_ldp_01_between_the_bounds_nothing_is_worse() -> None:
    protocol = DuchiVector(bounds=unit(2), epsilon=1, steps=3)
    assert_epsilon_is_exact(protocol, [law(protocol, code) for code in product(range(4), repeat=2)])


@pytest.mark.parametrize(
    ("dimensions", "epsilon", "chosen"), [(1, 1, 1), (3, 1, 1), (3, 5, 2), (2, 20, 2), (3, 7.5, 3)]
)
def test_ldp_01_chosen_numbers_have_exactly_their_epsilon(dimensions: int, epsilon: float, chosen: int) -> None:
    protocol = PiecewiseVector(bounds=unit(dimensions), epsilon=epsilon, steps=2)
    assert protocol.chosen == chosen
    assert_epsilon_is_exact(protocol, [law(protocol, code) for code in product((0, 2), repeat=dimensions)])


@pytest.mark.parametrize("dimensions", range(1, 8))
def test_the_agreeing_half_has_the_published_size(dimensions: int) -> None:
    protocol = DuchiVector(bounds=unit(dimensions), epsilon=1)
    corners = np.array(list(product((-1, 1), repeat=dimensions))).sum(axis=1)
    assert protocol.agreeing == (corners > 0).sum()
    assert protocol.disagreeing == (corners <= 0).sum()


@pytest.mark.parametrize(("kind", "epsilon"), [(DuchiVector, 1), (PiecewiseVector, 1), (PiecewiseVector, 6)])
def test_ldp_11_readings_are_unbiased(kind: Any, epsilon: float) -> None:
    protocol = kind(bounds=[(-1, 1), (0, 4), (10, 12)], epsilon=epsilon, steps=4)
    for code, expected in (((0, 1, 4), (-1, 1, 12)), ((2, 3, 1), (0, 3, 10.5))):
        mean, _ = moments(readings(protocol, code))
        assert mean == pytest.approx(expected, abs=1e-12)


def test_the_variance_of_corners_is_that_of_their_law() -> None:
    protocol = DuchiVector(bounds=[(-1, 1), (0, 4)], epsilon=1, steps=4)
    for code, value in (((0, 1), (-1, 1)), ((2, 4), (0, 4))):
        _, variance = moments(readings(protocol, code))
        assert variance == pytest.approx(protocol.variance(value), rel=1e-12)
        assert (variance <= protocol.variance() * (1 + 1e-12)).all()
    size = float(protocol.size)
    assert protocol.spread() == pytest.approx([size**2, 4 * size**2])


def test_the_variance_of_chosen_numbers_counts_who_reports_them() -> None:
    protocol, one = PiecewiseVector(bounds=unit(6), epsilon=5), Piecewise(bounds=(-1, 1), epsilon=2.5)
    assert protocol.variance([0.5] * 6) == pytest.approx([3 * one.variance(0.5)] * 6)
    assert protocol.variance() == pytest.approx([3 * one.variance()] * 6)
    assert protocol.respondents(0.1) == pytest.approx(3 * one.respondents(0.1), abs=3)


@pytest.mark.parametrize("size", range(1, 8))
def test_every_rank_is_a_subset_of_its_own(size: int) -> None:
    for least in range(size + 1):
        count = subsets(size, least)
        rows = uniform_subset(np.arange(count), size, least)
        assert len(np.unique(rows, axis=0)) == count
        assert rows.sum(axis=1).min() >= least


def test_places_are_distinct_and_every_set_is_equally_likely() -> None:
    found = law_of(lambda draws: tuple(distinct_places(5, 3, 1, draws)[0].tolist()))
    assert len(found) == math.comb(5, 3)
    assert set(found.values()) == {Fraction(1, 10)}
    assert all(places == tuple(sorted(set(places))) for places in found)


def test_ldp_11_exactly_k_distinct_numbers_are_reported() -> None:
    protocol = PiecewiseVector(bounds=unit(10), epsilon=12)
    numbers = protocol.randomize(np.zeros((5000, 10))).payload["numbers"].astype(int)
    assert protocol.chosen == 4
    assert (np.diff(numbers, axis=1) > 0).all()
    assert numbers.shape == (5000, 4)
    expected = 5000 * 0.4
    assert abs(np.bincount(numbers.ravel(), minlength=10) - expected).max() < Z * math.sqrt(expected * 0.6)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "epsilon"), [(DuchiVector, 1), (PiecewiseVector, 1), (PiecewiseVector, 6), (LaplaceVector, 2)]
)
def test_ldp_11_samples_are_unbiased_and_refute_other_sizes(kind: Any, epsilon: float) -> None:
    protocol = kind(bounds=unit(4), epsilon=epsilon)
    truth = np.array([0.9, -0.5, 0.0, -1.0])
    reports = protocol.randomize(np.tile(truth, (300_000, 1)))
    estimate, sample = protocol.estimate(reports), protocol.debias(reports)
    for value, expected, variance in zip(estimate.values, truth, protocol.variance(truth), strict=True):
        assert abs(value - expected) <= Z * math.sqrt(variance / 300_000)
    for column, expected in zip(sample.T, truth, strict=True):
        assert mean_is(column, expected, column.var())
    assert not mean_is(1.15 * sample[:, 3], -1.0, sample[:, 3].var())
    assert not mean_is(0.85 * sample[:, 3], -1.0, sample[:, 3].var())


@pytest.mark.statistical
@pytest.mark.parametrize("dimensions", [9, pytest.param(60, marks=pytest.mark.slow)])
def test_agreements_of_corners_follow_their_law_and_refute_another_epsilon(dimensions: int) -> None:
    protocol = DuchiVector(bounds=unit(dimensions), epsilon=1)

    def agreements(size: int) -> Any:
        payload = protocol.randomize(np.ones((size, dimensions))).payload
        return np.unpackbits(payload["y"], axis=1, bitorder="little").sum(axis=1).astype(np.int64)

    def law_at(epsilon: float) -> distributions.Distribution:
        e, agree = math.exp(epsilon), protocol.agreeing
        inside = e / ((e - 1) * agree + 2**dimensions)
        outside = 1 / ((e - 1) * agree + 2**dimensions)
        weights = {
            count: math.comb(dimensions, count) * (inside if 2 * count > dimensions else outside)
            for count in range(dimensions + 1)
        }
        return distributions.categorical(weights)

    check_scale(agreements, law_at, scale=1.0, size=200_000)


@pytest.mark.statistical
def test_each_of_sixty_signs_is_unbiased() -> None:
    protocol = DuchiVector(bounds=unit(60), epsilon=2)
    truth = np.linspace(-1, 1, 60)
    sample = protocol.debias(protocol.randomize(np.tile(truth, (50_000, 1))))
    for column, value, variance in zip(sample.T, truth, protocol.variance(truth), strict=True):
        assert mean_is(column, value, variance)


@pytest.mark.parametrize("kind", EVERY)
def test_the_estimate_has_a_mean_for_each_number(kind: Any) -> None:
    protocol = kind(bounds=[(0, 100), (-1, 1), (5, 6)], epsilon=4)
    estimate = protocol.estimate(protocol.randomize(np.tile([30, 0.5, 5.25], (20_000, 1))))
    assert len(estimate) == 3
    assert [mean.bounds for mean in estimate] == [(0, 100), (-1, 1), (5, 6)]
    assert (abs(estimate.values - [30, 0.5, 5.25]) < Z * estimate.standard_errors).all()
    assert estimate.margins() == pytest.approx([mean.margin() for mean in estimate])
    assert estimate[1].protocol == protocol.name
    record = json.loads(json.dumps(estimate.to_dict()))
    assert record["schema"] == "cloister.local_means/1"
    assert [each["value"] for each in record["means"]] == estimate.values.tolist()
    assert "number 3" in dict(estimate.summary())
    assert "20,000 reports" in str(estimate)
    assert estimate.plot().to_dict()


def test_long_estimates_print_short() -> None:
    protocol = DuchiVector(bounds=unit(9), epsilon=1)
    assert "..." in str(protocol.estimate(protocol.randomize(np.zeros((10, 9)))))


@pytest.mark.parametrize("kind", EVERY)
def test_large_batches_are_made_in_pieces(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_CHUNK", 8)
    protocol = kind(bounds=unit(3), epsilon=1)
    assert len(protocol.randomize(np.zeros((11, 3)))) == 11
    assert len(protocol.randomize(np.zeros((0, 3)))) == 0
    assert len(protocol.randomize([0.5, 0, -1])) == 1


@pytest.mark.parametrize("kind", EVERY)
def test_a_protocol_shows_its_bounds(kind: Any) -> None:
    protocol = kind(bounds=[(0, "0.1"), (1, 2)], epsilon=1)
    assert protocol.bounds == ((0, Fraction(1, 10)), (1, 2))
    assert repr(protocol) == f"{kind.__name__}(2 numbers, epsilon=1)"


@pytest.mark.parametrize("kind", EVERY)
def test_bad_input_is_refused(kind: Any) -> None:
    with pytest.raises(MissingBoundsError, match="anybody would expect"):
        kind(epsilon=1)
    for bounds in ([], "ab", 5):
        with pytest.raises(ParameterTypeError, match="pair for each number"):
            kind(bounds=bounds, epsilon=1)
    protocol = kind(bounds=unit(2), epsilon=1)
    for values in ([1, 2, 3], [[1], [2]], 1, [[[1, 2]]]):
        with pytest.raises(OutsideDomainError, match="rows of 2 numbers"):
            protocol.randomize(values)
    for values in ([1, None], [[1, 2], [3, float("nan")]], [[1, 2], [3]], [[1, True]], "ab"):
        with pytest.raises(OutsideDomainError, match="no answer"):
            protocol.randomize(values)
    reports = protocol.randomize(np.zeros((3, 2)))
    with pytest.raises(TooFewReportsError, match="at least 2"):
        protocol.estimate(reports[:1])
    with pytest.raises(ForeignReportError, match="very protocol"):
        kind(bounds=[(-1, 1), (-1, 2)], epsilon=1).estimate(reports)


def test_too_few_reports_about_one_number_are_refused() -> None:
    protocol = PiecewiseVector(bounds=unit(30), epsilon=1)
    with pytest.raises(TooFewReportsError, match="at least 2"):
        protocol.estimate(protocol.randomize(np.zeros((20, 30))))


def test_repeated_numbers_in_a_report_are_refused() -> None:
    protocol = PiecewiseVector(bounds=unit(4), epsilon=5)
    report = protocol.randomize([0, 0, 0, 0]).to_dicts()[0]
    for numbers in ([1, 1], [2, 1], [1, 4], [1]):
        with pytest.raises(MalformedReportError, match="anew"):
            protocol.read([{**report, "y": [numbers, [0, 0]]}])
    rows = protocol.output_space.rows(numbers=np.array([[1, 1]]), y=np.array([[0, 0]]))
    with pytest.raises(MalformedReportError, match="anew"):
        protocol.estimate(Reports(protocol, rows))


def test_too_many_signs_are_refused() -> None:
    with pytest.raises(ParameterError, match="PiecewiseVector"):
        DuchiVector(bounds=unit(61), epsilon=1)


@pytest.mark.statistical
def test_means_of_different_people_are_covered() -> None:
    protocol = PiecewiseVector(bounds=unit(3), epsilon=2)
    people = 2 * samplers.uniform((200_000, 3)) ** 2 - 1
    estimate = protocol.estimate(protocol.randomize(people))
    assert (abs(estimate.values - people.mean(axis=0)) < Z * estimate.standard_errors).all()
