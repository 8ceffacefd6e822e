from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.core import exact
from cloister.core.random import SeededRandomSource, SystemRandomSource, random_source
from cloister.mechanisms.sampling.discrete_noise import (
    GeometricLaw,
    HalfGaussianLaw,
    discrete_gaussian,
    discrete_laplace,
    fill,
    geometric,
)
from cloister.testing import distributions, statistics
from tests.mechanisms.sampling import reference
from tests.support.words import PreparedWords

SOURCE = SystemRandomSource()

SCALES = [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(64), Fraction(1000, 7), Fraction(10**9 + 7, 3)]


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace_follows_its_law(scale: Fraction) -> None:
    statistics.check_scale(
        lambda size: discrete_laplace(scale).draw(SOURCE, size), distributions.discrete_laplace, scale=float(scale)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("sigma", [Fraction(1, 2), *SCALES[1:5], Fraction(10**6, 3)], ids=str)
def test_discrete_gaussian_follows_its_law(sigma: Fraction) -> None:
    statistics.check_scale(
        lambda size: discrete_gaussian(sigma**2).draw(SOURCE, size), _gaussian_law(sigma), scale=float(sigma)
    )


def _gaussian_law(sigma: Fraction) -> Callable[[float], Any]:
    return distributions.discrete_gaussian if sigma < 10_000 else distributions.gaussian


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3)], ids=str)
def test_the_reference_sampler_agrees(scale: Fraction) -> None:
    theirs = [reference.discrete_laplace(SOURCE, scale) for _ in range(3000)]
    statistics.check_same_distribution(discrete_laplace(scale).draw(SOURCE, 200_000), theirs)
    theirs = [reference.discrete_gaussian(SOURCE, scale**2) for _ in range(1500)]
    statistics.check_same_distribution(discrete_gaussian(scale**2).draw(SOURCE, 200_000), theirs)


@pytest.mark.statistical
def test_huge_scales_give_python_integers_of_the_right_law() -> None:
    scale = Fraction(10**30)
    draws = discrete_laplace(scale).draw(SOURCE, 20_000)
    assert draws.dtype == object
    statistics.check_distribution(draws.astype(float) / 1e30, distributions.laplace(1.0))
    draws = discrete_gaussian(scale**2).draw(SOURCE, 20_000)
    assert draws.dtype == object
    statistics.check_distribution(draws.astype(float) / 1e30, distributions.gaussian(1.0))
    assert len({int(draw) % 1000 for draw in draws}) > 900


def test_a_tiny_scale_is_all_zeros() -> None:
    assert not discrete_laplace(Fraction(1, 1000)).draw(SOURCE, 1000).any()
    assert not discrete_gaussian(Fraction(1, 10**6)).draw(SOURCE, 1000).any()


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(300)], ids=str)
def test_geometric_thresholds_are_the_exact_probabilities(scale: Fraction) -> None:
    size = 1 if scale == 3 else 4
    for k, threshold in zip(range(1, 40), GeometricLaw(scale).block_thresholds(size, 200), strict=False):
        low, high = exact.exp_bounds(-k * size / scale, digits=80)
        assert threshold.low <= (1 - low) * 2**200
        assert (1 - high) * 2**200 <= threshold.high
        assert threshold.high - threshold.low < 2**60


def test_gaussian_thresholds_are_the_exact_probabilities() -> None:
    weights = [exact.exp_bounds(-Fraction(h * h, 18)) for h in range(60)]
    whole = (sum(w[0] for w in weights), sum(w[1] for w in weights) + Fraction(1, 10**50))
    for h, threshold in zip(range(1, 40), HalfGaussianLaw(Fraction(9)).block_thresholds(1, 200), strict=False):
        low, high = (sum(w[side] for w in weights[:h]) / whole[1 - side] for side in (0, 1))
        assert threshold.low <= high * 2**200
        assert low * 2**200 <= threshold.high


def test_weights_are_those_of_the_laws() -> None:
    assert GeometricLaw(Fraction(5)).exponent(10) == 2
    assert HalfGaussianLaw(Fraction(8)).exponent(4) == 1


def test_a_place_close_to_its_coin_is_decided_exactly() -> None:
    scale = Fraction(10_000)
    size = 2**8
    threshold = math.floor(math.exp(-(size // 2) / 10_000) * 2**64)
    for shift, kept in ((-(2**20), True), (2**20, False)):
        source = PreparedWords(0, 2**63, threshold + shift, 0, 0, 0)
        draw = geometric(scale).draw(source, 1)[0]
        assert (draw == size // 2) == kept


def test_fill_returns_exactly_what_is_asked() -> None:
    def half(size: int) -> Any:
        return np.arange(size)[::2]

    assert fill(half, 1000).size == 1000
    assert fill(half, 0).size == 0


@pytest.mark.statistical
def test_cdp_05_geometric_probabilities_and_variance() -> None:
    a = math.exp(-1)
    assert (1 - a) / (1 + a) == pytest.approx(0.462117, abs=5e-7)
    repeatable = discrete_laplace(Fraction(1)).draw(SeededRandomSource(5), 1_000_000)
    assert statistics.fit(repeatable, distributions.discrete_laplace(1.0)).p_value > 1e-3
    draws = discrete_laplace(Fraction(1)).draw(random_source(), 1_000_000)
    assert statistics.fit(draws, distributions.discrete_laplace(1.0)).p_value > statistics.FALSE_ALARM
    assert abs((draws == 0).mean() - 0.462117) < 6.2 * 0.0005
    assert abs(draws.var() - 1.841347) < 6.2 * 0.0049
