"""The acceptance tests of the specification that concern mechanisms, by their identifiers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.accounting.conversions import classic_gaussian_multiplier, gaussian_delta, gaussian_multiplier
from cloister.core.guarantees import Adjacency
from cloister.core.random import SystemRandomSource
from cloister.mechanisms import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Select,
    Staircase,
    TruncatedLaplace,
    approximate_laplace_scale,
    randomized_response_epsilon,
    sensitivity,
    truncated_laplace_scale,
)
from cloister.mechanisms.laplace import ClampedLaplace
from cloister.testing import statistics


@pytest.mark.parametrize(
    ("truth", "second", "epsilon"),
    [(0.5, 0.5, 1.098612), (0.8, 0.8, 3.044522), (0.5, 0.75, 1.609438), (0.5, 1, math.inf)],
)
def test_cdp_01_randomized_response(truth: float, second: float, epsilon: float) -> None:
    found = randomized_response_epsilon(truth, second)
    assert (math.inf if found is None else float(found)) == pytest.approx(epsilon, abs=5e-7)


def test_cdp_02_laplace_scale_and_half_width() -> None:
    assert DiscreteLaplace(sensitivity=1, epsilon=0.1).scale == 10
    assert DiscreteLaplace(sensitivity=1, epsilon=0.001).scale == 1000
    assert Laplace(sensitivity=1, epsilon=0.1).scale == 10
    assert Laplace(sensitivity=1, epsilon=0.1).margin(0.95) == pytest.approx(29.957, abs=5e-4)


@pytest.mark.parametrize(("mode", "scale"), [("torra", 1.651908), ("generic", 1.505468), ("tight", 1.407022)])
def test_cdp_03_approximate_laplace(mode: str, scale: float) -> None:
    found = approximate_laplace_scale(sensitivity=1, epsilon=0.5, delta=0.1, mode=mode)
    assert float(found) == pytest.approx(scale, abs=5e-7)


@pytest.mark.parametrize(
    ("bounds", "change", "epsilon", "scale"),
    [((0, 10), 1, 1, 1.611560), ((0, 10), 10, 1, 10), ((0, 100), 1, 0.5, 3.559608)],
)
def test_cdp_04_bounded_laplace_fixed_points(
    bounds: tuple[int, int], change: int, epsilon: float, scale: float
) -> None:
    found = truncated_laplace_scale(bounds=bounds, sensitivity=change, epsilon=epsilon)
    assert found == pytest.approx(scale, abs=5e-7)
    lattice = TruncatedLaplace(bounds=bounds, sensitivity=change, epsilon=epsilon).scale
    assert found <= lattice <= found * 1.0005


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma", "classic"),
    [
        (0.1, 1e-5, 30.74957, 48.448),
        (0.5, 1e-5, 7.031827, 9.6896),
        (1, 1e-5, 3.730632, 4.844805),
        (2, 1e-5, 1.993812, 2.4224),
        (5, 1e-5, 0.891868, 0.96896),
        (10, 1e-5, 0.499889, 0.48448),
        (1, 1e-6, 4.224679, 5.298803),
    ],
)
def test_cdp_06_analytic_gaussian(epsilon: float, delta: float, sigma: float, classic: float) -> None:
    assert float(gaussian_multiplier(epsilon, delta)) == pytest.approx(sigma, abs=1e-5)
    assert Gaussian(sensitivity=1, epsilon=epsilon, delta=delta).standard_deviation == pytest.approx(sigma, abs=1e-5)
    if epsilon < 1:
        assert float(classic_gaussian_multiplier(epsilon, delta)) == pytest.approx(classic, abs=5e-4)


def test_cdp_06_the_classic_formula_is_broken_at_large_epsilon() -> None:
    assert gaussian_delta(1 / 0.48448, 10) == pytest.approx(2.27e-5, abs=5e-8)
    with pytest.raises(ValueError, match='calibration="analytic"'):
        classic_gaussian_multiplier(10, 1e-5)


def test_cdp_07_exponential_mechanism() -> None:
    nationality = Select(candidates=("R", "A", "J", "I"), score_sensitivity=1, epsilon=0.5)
    assert nationality.probabilities([2, 6, 2, 2]) == pytest.approx([0.174878, 0.475367, 0.174878, 0.174878], abs=1e-6)
    votes = Select(candidates=("football", "volleyball", "basketball", "swimming"), score_sensitivity=1, epsilon=1)
    found = votes.probabilities([49, 25, 6, 2])
    assert found == pytest.approx([0.999993855, 6.144e-6, 4.60e-10, 6.22e-11], rel=1e-3)
    assert found[0] == pytest.approx(0.999993855, abs=1e-9)


def test_cdp_08_large_counts_do_not_overflow() -> None:
    counts = [22379, 16117, 6633, 1530, 1518, 628, 37]
    marital = Select(candidates=tuple(range(7)), score_sensitivity=1, epsilon=1)
    assert marital.probabilities(counts)[0] == 1.0
    assert {marital.release(counts).index for _ in range(50)} == {0}


@pytest.mark.statistical
def test_cdp_09_staircase_mean_absolute_value() -> None:
    mechanism = Staircase(sensitivity=1, epsilon=1)
    draws = mechanism._sampler().draw(SystemRandomSource(), 10_000_000) * float(mechanism.lattice.granularity)
    sizes = np.abs(draws)
    assert 6.2 * sizes.std() / math.sqrt(sizes.size) < 0.002  # so that chance alone fails once in 1e9 runs
    assert sizes.mean() == pytest.approx(0.9595, abs=0.002)
    assert math.exp(0.5) / (math.e - 1) == pytest.approx(0.959517, abs=5e-7)


# CDP-13: brute force over small domains ---------------------------------------------------------------------------

Query = Callable[[Sequence[int]], Sequence[Fraction]]


def _largest_change(
    query: Query, datasets: Sequence[Sequence[int]], adjacency: Adjacency, domain: Sequence[int]
) -> Any:
    """Return the largest L1 change and the largest squared L2 change over all neighbors of the given datasets."""
    changes = [
        [abs(a - b) for a, b in zip(query(data), query(other), strict=True)]
        for data in datasets
        for other in _neighbors(data, adjacency, domain)
    ]
    return max(sum(change) for change in changes), max(sum(c * c for c in change) for change in changes)


def _neighbors(data: Sequence[int], adjacency: Adjacency, domain: Sequence[int]) -> list[list[int]]:
    if adjacency == Adjacency.ADD_REMOVE:
        return [[*data, value] for value in domain]
    return [[*data[:i], value, *data[i + 1 :]] for i in range(len(data)) for value in domain]


def _datasets(domain: Sequence[int], sizes: Sequence[int]) -> list[Sequence[int]]:
    return [data for size in sizes for data in itertools.combinations_with_replacement(domain, size)]


DOMAIN = (-2, 0, 1, 3)
BOUNDS = (-2, 3)
RELATIONS = (Adjacency.ADD_REMOVE, Adjacency.REPLACE)


def _variance(data: Sequence[int], divisor: int) -> Fraction:
    middle = Fraction(sum(data), len(data))
    return sum(((value - middle) ** 2 for value in data), Fraction(0)) / divisor


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_cdp_13_counts_and_histograms(adjacency: Adjacency) -> None:
    data = _datasets(DOMAIN, (1, 2, 3))

    def count(rows: Sequence[int]) -> list[Fraction]:
        return [Fraction(sum(value > 0 for value in rows))]

    def overlapping(rows: Sequence[int]) -> list[Fraction]:
        return [Fraction(sum(value >= 0 for value in rows))] * 3

    def histogram(rows: Sequence[int]) -> list[Fraction]:
        return [Fraction(sum(value == cell for value in rows)) for cell in DOMAIN]

    assert _largest_change(count, data, adjacency, DOMAIN)[0] == sensitivity.count(adjacency)
    l1, squared = _largest_change(overlapping, data, adjacency, DOMAIN)
    many = sensitivity.overlapping_counts(3, adjacency)
    assert (l1, squared) == (many.l1, round(many.l2**2))
    l1, squared = _largest_change(histogram, data, adjacency, DOMAIN)
    cells = sensitivity.histogram(adjacency)
    assert (l1, squared) == (cells.l1, round(cells.l2**2))
    assert cells.l2**2 >= squared


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_cdp_13_several_cells_and_totals_per_person(adjacency: Adjacency) -> None:
    """A person is a set of at most two symptoms of three, coded as a bit mask, or a number of visits up to 4."""
    people = [mask for mask in range(8) if mask.bit_count() <= 2]
    data = _datasets(people, (1, 2))

    def symptoms(rows: Sequence[int]) -> list[Fraction]:
        return [Fraction(sum(mask >> bit & 1 for mask in rows)) for bit in range(3)]

    found = _largest_change(symptoms, data, adjacency, people)
    assert found[0] <= sensitivity.histogram(adjacency, cells_per_unit=2).l1
    if adjacency == Adjacency.ADD_REMOVE:
        assert found == (2, 2)
    visits = range(5)

    def total(rows: Sequence[int]) -> list[Fraction]:
        return [Fraction(sum(rows))]

    assert _largest_change(total, _datasets(visits, (1, 2)), adjacency, visits)[0] == sensitivity.unit_totals(
        4, adjacency
    )


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_cdp_13_sums(adjacency: Adjacency) -> None:
    data = _datasets(DOMAIN, (1, 2, 3))

    def total(rows: Sequence[int]) -> list[Fraction]:
        return [Fraction(sum(rows))]

    def centered(rows: Sequence[int]) -> list[Fraction]:
        return [sum((value - Fraction(1, 2) for value in rows), Fraction(0))]

    assert _largest_change(total, data, adjacency, DOMAIN)[0] == sensitivity.bounded_sum(BOUNDS, adjacency)
    assert _largest_change(centered, data, adjacency, DOMAIN)[0] == sensitivity.bounded_sum(
        BOUNDS, adjacency, centered=True
    )


def _mean(rows: Sequence[int]) -> list[Fraction]:
    return [Fraction(sum(rows), len(rows))]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_cdp_13_means(size: int) -> None:
    exactly, from_size = _datasets(DOMAIN, (size,)), _datasets(DOMAIN, range(size, size + 3))
    replace, add = Adjacency.REPLACE, Adjacency.ADD_REMOVE
    assert _largest_change(_mean, exactly, replace, DOMAIN)[0] == sensitivity.mean(BOUNDS, replace, rows=size)
    for relation in RELATIONS:
        assert _largest_change(_mean, from_size, relation, DOMAIN)[0] == sensitivity.mean(
            BOUNDS, relation, at_least=size
        )
    assert sensitivity.mean(BOUNDS, add) == sensitivity.mean(BOUNDS, replace) == 5


@pytest.mark.parametrize("size", [2, 3, 4])
def test_cdp_13_variances(size: int) -> None:
    data = _datasets(DOMAIN, (size,))
    replace, add = Adjacency.REPLACE, Adjacency.ADD_REMOVE

    def population(rows: Sequence[int]) -> list[Fraction]:
        return [_variance(rows, len(rows))]

    def sample(rows: Sequence[int]) -> list[Fraction]:
        return [_variance(rows, len(rows) - 1)]

    assert _largest_change(population, data, replace, DOMAIN)[0] == sensitivity.variance(BOUNDS, replace, rows=size)
    assert _largest_change(sample, data, replace, DOMAIN)[0] == sensitivity.variance(
        BOUNDS, replace, rows=size, sample=True
    )
    assert _largest_change(population, data, add, DOMAIN)[0] == sensitivity.variance(BOUNDS, add, rows=size)
    every = _datasets(DOMAIN, range(1, 5))
    assert _largest_change(population, every, add, DOMAIN)[0] == sensitivity.variance(BOUNDS, add)


@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("pick", [min, max, lambda rows: sorted(rows)[len(rows) // 2]])
def test_cdp_13_order_statistics(adjacency: Adjacency, pick: Callable[[Sequence[int]], int]) -> None:
    def query(rows: Sequence[int]) -> list[Fraction]:
        return [Fraction(pick(rows))]

    data = _datasets(DOMAIN, (1, 2, 3))
    assert _largest_change(query, data, adjacency, DOMAIN)[0] == sensitivity.order_statistic(BOUNDS, adjacency)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "mechanism",
    [
        DiscreteLaplace(sensitivity=1, epsilon=0.01),
        Laplace(sensitivity=1, epsilon=0.01, dimensions=1000),
        Gaussian(sensitivity=1, epsilon=0.1, delta=1e-6, dimensions=1000),
        ClampedLaplace(sensitivity=1, epsilon=0.01, dimensions=1000, bounds=(-(10**9), 10**9)),
    ],
    ids=lambda item: type(item).__name__,
)
def test_cdp_19_every_coordinate_has_noise_of_its_own(mechanism: Any) -> None:
    noisy = np.asarray(mechanism.release(np.zeros(1000, dtype=np.int64)).value)
    assert np.unique(noisy).size > 300
    repeats = np.stack([np.asarray(mechanism.release(np.zeros(1000, dtype=np.int64)).value)[:3] for _ in range(1000)])
    statistics.check_independent(repeats)
