from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from cloister.accounting.events import GaussianEvent
from cloister.core.random import random_source
from cloister.errors import ParameterError
from cloister.mechanisms.gaussian import SharedGaussian
from cloister.testing import distributions
from cloister.testing.statistics import check_independent, check_scale

REACH = 400


def law(variance: float) -> NDArray[np.float64]:
    weights = np.exp(-(np.arange(-REACH, REACH + 1) ** 2) / (2 * variance))
    return weights / weights.sum()


def sum_of(variance: float, shares: int) -> NDArray[np.float64]:
    total = law(variance)
    for _ in range(shares - 1):
        total = np.convolve(total, law(variance), mode="same")
    return total


def noise(**changes: object) -> SharedGaussian:
    options = {"epsilon": 1, "delta": 1e-3, "squared_sensitivity": 100, "dimensions": 1, "shares": 4, "colluding": 1}
    return SharedGaussian.calibrate(**(options | changes))  # type: ignore[arg-type]  # any of them


def lost(variance: int, shares: int, *, moved: int, epsilon: float) -> float:
    """Return the exact delta of a sum of shares for neighbors some steps apart."""
    here = sum_of(variance, shares)
    there = np.roll(here, moved)
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def wobble(spread: float) -> float:
    return 2 * sum(math.exp(-2 * math.pi**2 * spread * k * k) for k in range(1, 20))


@pytest.mark.parametrize("variance", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("shares", [2, 3, 5])
def test_a_sum_is_as_near_to_one_discrete_gaussian_as_the_docstring_proves(variance: float, shares: int) -> None:
    middle = slice(REACH - 6, REACH + 7)
    apart = np.abs(np.log(sum_of(variance, shares)[middle] / law(variance * shares)[middle])).max()
    bounds = [wobble(variance * count / (count + 1)) for count in range(1, shares)]
    proven = sum(math.log((1 + bound) / (1 - bound)) for bound in bounds)
    assert apart <= proven
    assert apart > proven / (3 if shares == 2 else 1000)


def test_the_wobble_of_the_least_share_is_what_the_docstring_says() -> None:
    assert wobble(4) < 1.1e-34


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
@pytest.mark.parametrize(("shares", "colluding"), [(2, 0), (2, 1), (4, 1), (4, 3), (9, 2)])
def test_honest_shares_are_enough(epsilon: float, shares: int, colluding: int) -> None:
    made = noise(epsilon=epsilon, shares=shares, colluding=colluding)
    assert lost(made.squared_share, made.honest, moved=10, epsilon=epsilon) <= 1e-3
    assert made.honest == shares - colluding


@pytest.mark.parametrize(("shares", "colluding"), [(2, 0), (4, 1), (4, 2)])
def test_one_share_less_is_not_enough(shares: int, colluding: int) -> None:
    made = noise(shares=shares, colluding=colluding)
    assert lost(made.squared_share, made.honest - 1, moved=10, epsilon=1) > 1e-3


def test_the_event_is_no_better_than_the_noise() -> None:
    made = noise(squared_sensitivity=10**6)
    assert isinstance(made.event, GaussianEvent)
    assert made.honest * made.squared_share >= made.event.squared_multiplier * 10**6 + 4
    assert made.honest * made.squared_share <= made.event.squared_multiplier * 10**6 + 8


def test_a_share_is_never_so_small_that_the_proof_fails() -> None:
    assert noise(epsilon=100, squared_sensitivity=1, shares=10).squared_share == 8


def test_more_colluders_need_more_noise() -> None:
    assert all(less.deviation < more.deviation for less, more in pairwise(noise(colluding=c) for c in range(4)))


@pytest.mark.statistical
def test_all_shares_together_have_the_stated_deviation() -> None:
    made, source = noise(shares=3, squared_sensitivity=10**8), random_source()
    check_scale(
        lambda count: np.sum([made.draw(source, count) for _ in range(3)], axis=0),
        distributions.discrete_gaussian,
        scale=made.deviation,
    )


@pytest.mark.statistical
def test_numbers_have_noise_of_their_own() -> None:
    check_independent(noise().draw(random_source(), 30_000).reshape(10_000, 3))


def test_noise_stays_far_inside_of_its_bound() -> None:
    made = noise(squared_sensitivity=10**12)
    drawn = sum(made.draw(random_source(), 1000) for _ in range(made.shares))
    assert np.abs(drawn).max() < made.largest / 2
    assert 16 * made.deviation < made.largest < 16.1 * made.deviation


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"colluding": 4}, "at most 3"),
        ({"colluding": -1}, "at most 3"),
        ({"shares": 0, "colluding": 0}, "at most 0"),
        ({"epsilon": Fraction(1, 10**10)}, "at least 1e-9"),
        ({"epsilon": 0}, "epsilon=0.5"),
        ({"delta": 0}, "delta=1e-6"),
        ({"dimensions": 10**16}, "release fewer numbers"),
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, object], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        noise(**changes)
