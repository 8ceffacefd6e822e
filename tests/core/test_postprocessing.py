from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from cloister.core import postprocessing

VECTORS = np.array([[60.0, -30.0, 1.0, 9.0], [0.0, 0.0, 0.0, 0.0], [5.0, 5.0, 5.0, 5.0]])


def _posterior(value: float, deviation: float, rate: float) -> float:
    """Integrate the posterior of a Laplace prior and normal noise numerically."""

    def weight(theta: float) -> float:
        return math.exp(-((value - theta) ** 2) / (2 * deviation**2) - rate * abs(theta))

    ends = sorted({0.0, value, *(value + side * 12 * deviation for side in (-1, 1))})
    parts = list(pairwise(ends))
    mass = sum(integrate.quad(weight, *part, epsabs=0, epsrel=1e-10)[0] for part in parts)
    return sum(integrate.quad(lambda t: t * weight(t), *part, epsabs=1e-12, epsrel=1e-10)[0] for part in parts) / mass


@pytest.mark.parametrize("value", [-3.0, 0.25, 2.0, 11.0])
@pytest.mark.parametrize(("deviation", "rate"), [(1.0, 0.2), (2.0, 1.5), (0.5, 4.0)])
def test_the_normal_posterior_mean_agrees_with_quadrature(value: float, deviation: float, rate: float) -> None:
    found = postprocessing.normal_posterior_mean(np.array([value]), deviation=deviation, prior=rate)
    assert found[0] == pytest.approx(_posterior(value, deviation, rate), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("noise", ["laplace", "normal"])
def test_the_first_order_step_is_the_variance_times_the_rate_for_both_noises(noise: str) -> None:
    far, rate = np.array([400.0]), 1e-4
    if noise == "laplace":
        found, variance = postprocessing.laplace_posterior_mean(far, scale=3.0, prior=rate), 2 * 3.0**2
    else:
        found, variance = postprocessing.normal_posterior_mean(far, deviation=3.0, prior=rate), 3.0**2
    assert far[0] - found[0] == pytest.approx(variance * rate, rel=1e-3)


def test_vectors_are_shrunk_each_by_itself() -> None:
    for shrink in (
        lambda x: postprocessing.empirical_bayes(x, variance=50.0),
        lambda x: postprocessing.james_stein(x, variance=50.0),
        lambda x: postprocessing.laplace_posterior_mean(x, scale=5.0, prior=postprocessing.prior_rate(x)),
        lambda x: postprocessing.normal_posterior_mean(x, deviation=5.0, prior=postprocessing.prior_rate(x)),
    ):
        together = shrink(VECTORS)
        assert np.isfinite(together).all()
        assert (together[1] == 0).all()
        for row, alone in zip(together, VECTORS, strict=True):
            assert (row == shrink(alone)).all()


def test_extreme_numbers_do_not_overflow() -> None:
    tiny = np.array([1e-150, 0.0, 0.0])
    assert (postprocessing.empirical_bayes(tiny, variance=1e10) == 0).all()
    assert (postprocessing.james_stein(tiny, variance=1e10) == 0).all()
    assert postprocessing.james_stein(np.full(3, 1e200), variance=1.0) == pytest.approx(np.full(3, 1e200))


def test_fewer_than_three_numbers_are_left_by_james_stein() -> None:
    assert (postprocessing.james_stein(np.array([3.0, 4.0]), variance=100.0) == [3.0, 4.0]).all()
