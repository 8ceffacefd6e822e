"""Margins of error cover what they say, and are not much wider than they have to be."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special
from scipy.signal import fftconvolve

from cloister.core.random import random_source
from cloister.errors import ParameterError
from cloister.mechanisms.sampling.discrete_noise import discrete_gaussian, discrete_laplace
from cloister.queries._uncertainty import (
    Exactly,
    GaussianNoise,
    LaplaceNoise,
    Linear,
    MomentsUncertainty,
    Noise,
    RatioUncertainty,
    Unknown,
    half_width,
    ratio,
)
from cloister.testing import FALSE_ALARM

LEVELS = (0.5, 0.8, 0.95, 0.99)
DRAWS = 20_000


def laplace(scale: float, size: int = DRAWS) -> NDArray[np.float64]:
    return np.asarray(discrete_laplace(Fraction(scale)).draw(random_source(None), size), dtype=np.float64)


def gaussian(sigma: float, size: int = DRAWS) -> NDArray[np.float64]:
    return np.asarray(discrete_gaussian(Fraction(sigma) ** 2).draw(random_source(None), size), dtype=np.float64)


def check_covered(errors: NDArray[Any], margins: NDArray[Any], confidence: float) -> None:
    """Fail if errors are inside of the margins so rarely that a true coverage would do so once in 10**9 times."""
    inside = int((np.abs(errors) <= margins).sum())
    assert special.bdtr(inside, len(errors), confidence) >= FALSE_ALARM, (inside / len(errors), confidence)


def laplace_inside(scale: float, steps: int) -> float:
    ratio_of = math.exp(-1 / scale)
    return 1 - 2 * ratio_of ** (steps + 1) / (1 + ratio_of)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 2.5, 10.0, 1e4])
@pytest.mark.parametrize("confidence", LEVELS)
def test_margins_of_laplace_counts_are_exact(scale: float, confidence: float) -> None:
    noise = LaplaceNoise(1, 1 / Fraction(scale))
    margin = Linear((noise.law(Fraction(1)),), 1).margins(confidence)[0]
    assert margin == int(margin)
    assert laplace_inside(scale, int(margin)) >= confidence
    needed = next(steps for steps in range(int(margin) + 1) if laplace_inside(scale, steps) >= confidence)
    assert margin <= max(1.5 * needed, needed + 1)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("confidence", LEVELS)
def test_margins_of_gaussian_counts_are_exact(sigma: float, confidence: float) -> None:
    noise = GaussianNoise.for_rho(1, 1 / (2 * Fraction(sigma) ** 2))
    margin = int(Linear((noise.law(Fraction(1)),), 1).margins(confidence)[0])
    weights = np.exp(-(np.arange(2000) ** 2) / (2 * sigma**2))
    covered = (2 * np.cumsum(weights) - 1) / (2 * weights.sum() - 1)
    assert covered[margin] >= confidence
    needed = int(np.searchsorted(covered, confidence))
    assert margin <= max(1.5 * needed, needed + 2)


@pytest.mark.parametrize("scales", [(3.0, 3.0), (1.0, 10.0), (0.5, 40.0), (1.0, 300.0), (2.0, 2.0, 2.0)])
@pytest.mark.parametrize("confidence", LEVELS)
def test_margins_of_sums_of_noises_cover_the_exact_convolution(scales: tuple[float, ...], confidence: float) -> None:
    reach = math.ceil(40 * sum(scales))
    points = np.arange(-reach, reach + 1)
    law = np.ones(1)
    for scale in scales:
        pmf = np.exp(-np.abs(points) / scale)
        law = fftconvolve(law, pmf / pmf.sum())
    center = len(law) // 2
    inside = np.concatenate([[law[center]], law[center] + 2 * np.cumsum(law[center + 1 :])])
    margin = Linear(tuple(Noise("laplace", scale, 1.0) for scale in scales), 1).margins(confidence)[0]
    needed = int(np.searchsorted(inside, confidence))
    assert inside[min(math.floor(margin), center)] >= confidence
    assert margin <= 1.5 * needed + 3


@pytest.mark.statistical
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_margins_of_mixed_noises_cover(confidence: float) -> None:
    noises = (Noise("laplace", 5.0, 1.0), Noise("gaussian", 8.0, 1.0))
    errors = laplace(5) + gaussian(8)
    margins = Linear(noises, DRAWS).margins(confidence)
    check_covered(errors, margins, confidence)
    assert margins[0] <= 1.5 * np.quantile(np.abs(errors), confidence)


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [0, 1, 3, 5, 8, 12, 20, 50, 300, 5000])
@pytest.mark.parametrize("mean", [0, 10, -49])
def test_margins_of_means_cover_also_where_the_count_is_nearly_zero(rows: int, mean: int) -> None:
    """A mean of numbers within 50 of the middle, at epsilon 1: half for the count, half for the sum."""
    counts, totals = rows + laplace(2), rows * mean + laplace(100)
    error = RatioUncertainty((Noise("laplace", 100.0, 1.0),), (Noise("laplace", 2.0, 1.0),), totals, counts, 50.0)
    shown = ratio(totals, counts, 50.0)
    for confidence in LEVELS:
        margins = error.margins(confidence)
        assert (margins <= 100).all()
        check_covered(shown - (mean if rows else 0), margins, confidence)
    if rows >= 50:
        needed = float(np.quantile(np.abs(shown - mean), 0.95))
        assert np.median(error.margins(0.95)) <= 1.5 * needed


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [0, 2, 5, 10, 30, 100, 2000])
@pytest.mark.parametrize(("mean", "variance"), [(0, 100), (30, 50), (45, 1), (0, 2500), (0, 0)])
@pytest.mark.parametrize("root", [False, True])
def test_margins_of_variances_cover(rows: int, mean: int, variance: int, root: bool) -> None:
    counts, totals = rows + laplace(3), rows * mean + laplace(150)
    squares = rows * (variance + mean**2) + laplace(3750) + 1250 * (counts - rows)
    noises = (
        (Noise("laplace", 3.0, 1.0),),
        (Noise("laplace", 150.0, 1.0),),
        (Noise("laplace", 3750.0, 1.0), Noise("laplace", 3750.0, 1250.0)),
    )
    error = MomentsUncertainty(noises, counts, totals, squares, 2500.0, False, root)
    truth = math.sqrt(variance) if root else variance
    shown = error.values(counts, totals, squares)
    assert ((shown >= 0) & (shown <= (50 if root else 2500))).all()
    for confidence in LEVELS:
        check_covered(shown - truth, error.margins(confidence), confidence)


def test_an_answer_that_says_nothing_has_a_margin_as_wide_as_its_range() -> None:
    noises = (Noise("laplace", 100.0, 1.0),)
    error = RatioUncertainty(
        noises, (Noise("laplace", 2.0, 1.0),), np.array([30.0, 0.0, 5.0]), np.array([0.0, -3.0, 2.0]), 50.0
    )
    assert ratio(error.totals, error.counts, 50.0).tolist() == [0.0, 0.0, 2.5]
    assert error.margins().tolist() == [50.0, 50.0, 52.5]
    assert error.deviations()[:2].tolist() == [50.0, 50.0]
    moments = MomentsUncertainty(
        (noises, noises, noises), np.array([0.0, 50.0]), np.array([0.0, 1.0]), np.array([0.0, 9.0]), 25.0, True, False
    )
    assert moments.values(moments.counts, moments.totals, moments.squares)[0] == 12.5
    assert moments.margins()[0] == 37.5  # a sample of two values has up to twice the variance of a population
    assert moments.margins()[1] <= 50
    assert np.isnan(moments.deviations()).all()


def test_samples_are_corrected_by_one_row() -> None:
    counts, totals, squares = np.array([10.0]), np.array([20.0]), np.array([90.0])
    parts: Any = ((), (), ())
    population = MomentsUncertainty(parts, counts, totals, squares, 100.0, False, False)
    sample = MomentsUncertainty(parts, counts, totals, squares, 100.0, True, False)
    assert population.values(counts, totals, squares)[0] == 5.0
    assert sample.values(counts, totals, squares)[0] == pytest.approx(50 / 9)


def test_rows_of_errors_can_be_taken_in_any_order() -> None:
    rows = np.array([2, 0])
    noises = (Noise("laplace", 10.0, 1.0),)
    counts, totals = np.array([10.0, 20.0, 1000.0]), np.array([0.0, 1.0, 2.0])
    errors: list[Any] = [
        Linear(noises, 3, 0.5),
        RatioUncertainty(noises, noises, totals, counts, 5.0),
        MomentsUncertainty((noises, noises, noises), counts, totals, counts, 25.0, True, True),
        Exactly(3),
        Unknown(3, "within 5 rows"),
    ]
    for error in errors:
        assert np.array_equal(error.take(rows).margins(), error.margins()[rows], equal_nan=True)
        assert np.array_equal(error.take(rows).deviations(), error.deviations()[rows], equal_nan=True)


def test_half_widths_grow_with_confidence_and_noise() -> None:
    def width(scale: float, confidence: float) -> float:
        return half_width((Noise("laplace", scale, 1.0), Noise("gaussian", scale, 1.0)), confidence)

    assert width(5, 0.5) < width(5, 0.9) < width(5, 0.99)
    assert width(5, 0.9) < width(6, 0.9)
    assert half_width((), 0.9) == 0
    assert half_width((Noise("laplace", 0.0),), 0.9) == 0
    assert Noise("gaussian", 2.0).half_width(0.95) == pytest.approx(3.92, abs=0.01)
    with pytest.raises(ParameterError):
        Linear((), 1).margins(1.5)
    for kind in (Exactly(1), Unknown(1)):
        with pytest.raises(ParameterError):
            kind.margins(0)
