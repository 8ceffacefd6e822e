from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister import Budget
from cloister.accounting.conversions import gaussian_multiplier
from cloister.core import exact
from cloister.core.random import SeededRandomSource, SystemRandomSource
from cloister.mechanisms import DiscreteGaussian, DiscreteLaplace
from cloister.mechanisms.step_noise import (
    GaussianSteps,
    LaplaceSteps,
    gaussian_half_width,
    gaussian_standard_deviation,
    laplace_half_width,
    laplace_standard_deviation,
    sum_half_width,
)
from cloister.queries._uncertainty import GaussianNoise, LaplaceNoise
from cloister.testing import check_scale
from cloister.testing.distributions import discrete_gaussian
from tests.queries.tables import VISITS, private

EPSILONS = ("0.1", "0.5", "1", "2", "3", "8")
LEVELS = ("0.5", "0.8", "0.95", "0.99", "0.999999")


def laplace_inside(scale: Fraction, steps: int) -> tuple[Fraction, Fraction]:
    """Return bounds of the probability that discrete Laplace noise is at most so many steps from 0."""
    (low, high), (low_ratio, high_ratio) = (exact.exp_bounds(-power / scale) for power in (steps + 1, 1))
    return 1 - 2 * high / (1 + low_ratio), 1 - 2 * low / (1 + high_ratio)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("confidence", LEVELS)
def test_laplace_margins_are_the_smallest_by_exact_probabilities(epsilon: str, confidence: str) -> None:
    scale, level = 1 / Fraction(epsilon), Fraction(confidence)
    steps = laplace_half_width(scale, confidence)
    assert laplace_inside(scale, steps)[0] >= level
    assert steps == 0 or laplace_inside(scale, steps - 1)[1] < level


@given(st.fractions(min_value=Fraction(1, 50), max_value=10**12), st.sampled_from(LEVELS))
def test_laplace_margins_are_the_smallest_for_any_scale(scale: Fraction, confidence: str) -> None:
    steps, level = laplace_half_width(scale, confidence), Fraction(confidence)
    assert laplace_inside(scale, steps)[0] >= level
    assert steps == 0 or laplace_inside(scale, steps - 1)[0] < level


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_margins_of_one_noise_agree(epsilon: str) -> None:
    """A mechanism, a noise on steps, and a question with that noise."""
    table = private(VISITS, budget=Budget(epsilon=10))
    answer = table.count(epsilon=epsilon)
    mechanism = DiscreteLaplace(sensitivity=1, epsilon=epsilon)
    steps = LaplaceSteps(1, Fraction(epsilon))
    law = LaplaceNoise(1, Fraction(epsilon)).law(Fraction(1))
    for confidence in LEVELS:
        assert mechanism.margin(confidence) == steps.margin(confidence) == answer.margin(confidence)
        assert law.half_width(float(confidence)) == steps.margin(confidence)
    assert mechanism.standard_deviation == steps.deviation
    assert answer.standard_deviation == pytest.approx(steps.deviation, rel=1e-12)


@pytest.mark.parametrize("rho", ["0.005", "0.1", "0.5", "2", "8"])
def test_margins_of_one_gaussian_noise_agree(rho: str) -> None:
    table = private(VISITS, budget=Budget(rho=10))
    answer = table.count(rho=rho)
    mechanism, steps = DiscreteGaussian(sensitivity=1, rho=rho), GaussianSteps.for_rho(1, Fraction(rho))
    for confidence in LEVELS:
        assert mechanism.margin(confidence) == steps.margin(confidence) == answer.margin(confidence)
    assert mechanism.standard_deviation == steps.deviation
    assert answer.standard_deviation == pytest.approx(steps.deviation, rel=1e-12)


def test_deviations_are_those_of_the_discrete_laws() -> None:
    assert laplace_standard_deviation(Fraction(1)) == pytest.approx(1.3570, abs=1e-4)
    for scale in (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(7)):
        places = np.arange(1, 600)
        weights = np.exp(-places / float(scale))
        variance = 2 * (weights * places**2).sum() / (1 + 2 * weights.sum())
        assert laplace_standard_deviation(scale) == pytest.approx(math.sqrt(variance), rel=1e-12)
    for squared in (Fraction(1, 9), Fraction(1, 2), Fraction(3), Fraction(1599, 100), Fraction(16), Fraction(1000)):
        places = np.arange(1, 2000)
        weights = np.exp(-(places**2) / (2 * float(squared)))
        variance = 2 * (weights * places**2).sum() / (1 + 2 * weights.sum())
        assert gaussian_standard_deviation(squared) == pytest.approx(math.sqrt(variance), rel=1e-12)


@pytest.mark.parametrize(
    "laws",
    [
        [("laplace", 1.0), ("laplace", 1.0)],
        [("laplace", 0.5), ("laplace", 3.0), ("laplace", 3.0)],
        [("laplace", 2.0), ("gaussian", 3.0)],
        [("gaussian", 0.6), ("gaussian", 0.6)],
    ],
)
def test_margins_of_sums_are_the_smallest_by_convolution(laws: list[tuple[str, float]]) -> None:
    places, law = np.arange(-400, 401), np.ones(1)
    for kind, scale in laws:
        weights = np.exp(-np.abs(places) / scale) if kind == "laplace" else np.exp(-(places**2) / (2 * scale**2))
        law = np.convolve(law, weights / weights.sum())
    center = len(law) // 2
    inside = law[center] + np.concatenate([[0], 2 * np.cumsum(law[center + 1 :])])
    for confidence in (0.5, 0.8, 0.95, 0.999):
        steps = sum_half_width(laws, confidence)
        assert steps == np.searchsorted(inside, confidence)


@pytest.mark.parametrize("outside", [1e-3, 1e-6, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("scale", [0.5, 100.0, 1000.0])
def test_margins_of_sums_cover_rare_noise_too(scale: float, outside: float) -> None:
    steps = sum_half_width([("laplace", scale)] * 2, 1 - outside)
    assert steps is not None
    ratio = math.exp(-1 / scale)
    # The tail of two equal noises, from Pr[sum = s] = ((1-a)/(1+a))**2 a**s (s + (1+a**2)/(1-a**2)).
    at = steps + 1
    constant = at + (1 + ratio**2) / (1 - ratio**2)
    tail = 2 * ((1 - ratio) / (1 + ratio)) ** 2 * ratio**at * (constant + ratio / (1 - ratio)) / (1 - ratio)
    assert tail <= outside * 1.001


def test_margins_of_rare_noise_of_several_kinds_cover_each_part() -> None:
    laws = [("laplace", 2.0), ("gaussian", 3.0), ("gaussian", 3.0)]
    part = Fraction(1, 3 * 10**8)
    parts = laplace_half_width(Fraction(2), 1 - part) + 2 * gaussian_half_width(Fraction(9), 1 - part)
    assert abs((sum_half_width(laws, 1 - 1e-8) or 0) - parts) <= 1


def test_a_sum_of_one_noise_has_its_margin() -> None:
    assert sum_half_width([("laplace", 2.5)], 0.95) == laplace_half_width(Fraction("2.5"), "0.95")
    assert sum_half_width([("gaussian", 4.0)], 0.95) == gaussian_half_width(Fraction(16), "0.95")
    assert sum_half_width([("laplace", 1e6)], 0.95) is None


@pytest.mark.parametrize("epsilon", range(1, 9))
@pytest.mark.parametrize("squared_sensitivity", [1, 2, 50, 2000, 10**9])
def test_gaussian_noise_is_hardly_more_than_continuous_noise_needs(epsilon: int, squared_sensitivity: int) -> None:
    for delta in (Fraction(1, 10**5), Fraction(1, 10**9)):
        multiplier = gaussian_multiplier(Fraction(epsilon), delta)
        noise = GaussianSteps.dominating(squared_sensitivity, multiplier**2)
        needed = squared_sensitivity * multiplier**2
        # On the lattice where noise is drawn: what is needed there, rounded up, and 4 for the argument.
        fine = noise.squared_sigma * noise.refinement**2
        assert fine.denominator == 1
        assert fine >= needed * noise.refinement**2 + 4
        assert noise.refinement & (noise.refinement - 1) == 0
        assert 1 <= noise.deviation / math.sqrt(needed) <= 1.0025


@pytest.mark.statistical
@pytest.mark.parametrize("squared", [Fraction(1, 2), Fraction(20)])
def test_refined_noise_has_the_stated_scale_on_its_lattice(squared: Fraction) -> None:
    noise = GaussianSteps.dominating(1, squared)
    assert noise.refinement > 1
    values = 7 + np.zeros(1, dtype=np.int64)

    def drawn(size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        fine = (noise.add(np.repeat(values, size), SystemRandomSource()) - 7) * noise.refinement
        assert (fine == np.floor(fine)).all()
        return np.asarray(fine, dtype=np.int64)

    sigma = math.sqrt(noise.squared_sigma) * noise.refinement
    check_scale(drawn, lambda factor: discrete_gaussian(sigma * factor), scale=1.0, what="The noise on a finer lattice")


def test_refined_noise_is_added_exactly_however_large_the_numbers_are() -> None:
    noise = GaussianSteps.dominating(1, Fraction(1, 2))
    large = np.array([[2**61, -(2**61)], [0, 5]])
    first, again = (noise.add(values, SeededRandomSource(3)) for values in (large, large.astype(object)))
    small = noise.add(np.zeros((2, 2), dtype=np.int64), SeededRandomSource(3))
    assert first.dtype == np.float64
    assert np.array_equal(first, again)
    assert np.array_equal(first[1], small[1] + [0, 5])
    assert first[0].tolist() == [float(2**61), -float(2**61)]


def test_counts_with_refined_noise_are_whole_and_their_margins_exact() -> None:
    table = private(VISITS, budget=Budget(epsilon=100, delta=0.1))
    answer = table.count(epsilon=8, delta=1e-6, noise="gaussian")
    assert isinstance(answer.value, int)
    multiplier = gaussian_multiplier(Fraction(8) - Fraction(1, 10**15), Fraction(1, 10**6))
    noise = GaussianNoise.dominating(1, multiplier**2)
    for confidence in LEVELS:
        margin = answer.margin(confidence)
        assert margin == math.floor(noise.margin(confidence) + 0.5)
    assert answer.standard_deviation == pytest.approx(math.hypot(noise.deviation, 12**-0.5))
