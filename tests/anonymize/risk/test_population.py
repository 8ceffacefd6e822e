from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from benchmarks import synthetic_population
from cloister.anonymize.risk.population import PopulationRisk, estimate_population
from cloister.core.random import SeededRandomSource
from cloister.errors import ParameterError

PEOPLE = 60_000


@pytest.fixture(scope="module")
def people() -> np.ndarray:
    return synthetic_population.people(PEOPLE)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_the_truth_is_within_a_tenth_of_the_mean_estimate(people: np.ndarray, share: float) -> None:
    """One estimate strays by 8 % of the truth when a twentieth is drawn; the samples are always the same ten."""
    truth = synthetic_population.uniqueness(people)
    found = [_estimated(people, share, seed) for seed in range(10)]
    assert np.mean([one.uniqueness for one in found]) == pytest.approx(truth, rel=0.1)
    assert all(one.interval[0] < one.uniqueness < one.interval[1] for one in found)
    assert {one.model for one in found} == {"log-linear with log-normal spread"}
    assert {one.sample for one in found} == {round(share * PEOPLE)}


def _estimated(people: np.ndarray, share: float, seed: int) -> PopulationRisk:
    codes, counts = synthetic_population.classes(synthetic_population.sample(people, share, SeededRandomSource(seed)))
    return estimate_population(counts, population=PEOPLE, codes=codes)


def test_counts_alone_are_enough_for_a_rough_estimate(people: np.ndarray) -> None:
    truth = synthetic_population.uniqueness(people)
    _, counts = synthetic_population.classes(synthetic_population.sample(people, 0.2, SeededRandomSource(5)))
    found = estimate_population(counts, population=PEOPLE)
    assert found.model in ("gamma", "log-normal")
    assert found.uniqueness == pytest.approx(truth, rel=0.4)


def test_a_population_without_structure_is_fitted_by_the_gamma_family() -> None:
    """Classes with gamma intensities, whose codes say nothing: uniqueness is known in closed form."""
    rng = SeededRandomSource(7)
    uniform = synthetic_population.uniform(rng, 200_000)
    intensities = -4 * np.log(uniform)  # exponential with mean 4 in the population
    rate = 0.1
    means = rate * intensities
    counts = _poisson(means, synthetic_population.uniform(rng, 200_000))
    drawn = counts > 0
    codes = np.column_stack([np.arange(200_000) % 7, np.arange(200_000) // 7 % 11])[drawn]
    population = round(counts.sum() / rate)
    found = estimate_population(counts[drawn], population=population, codes=codes)
    truth = 200_000 * (1 / 4) / (1 / 4 + 1) ** 2 / population
    assert found.model == "gamma"
    assert found.uniqueness == pytest.approx(truth, rel=0.1)


def _poisson(means: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    from scipy import special

    counts = np.zeros(len(means), dtype=np.int64)
    for size in range(60):
        counts += uniform > special.pdtr(size, means)
    return counts


def test_the_journalist_is_below_the_prosecutor(people: np.ndarray) -> None:
    codes, counts = synthetic_population.classes(synthetic_population.sample(people, 0.1, SeededRandomSource(5)))
    found = estimate_population(counts, population=PEOPLE, codes=codes)
    assert found.journalist < len(counts) / counts.sum()
    sizes = dict(
        zip(map(tuple, synthetic_population.classes(people)[0]), synthetic_population.classes(people)[1], strict=True)
    )
    truth = np.mean(np.repeat([1 / sizes[tuple(code)] for code in codes], counts))
    assert found.journalist == pytest.approx(truth, rel=0.15)
    assert 0 < found.unique_matches < 1


def test_a_census_needs_no_estimate() -> None:
    found = estimate_population(np.array([1, 1, 2]), population=4)
    assert found.uniqueness == 0.5
    assert found.interval == (0.5, 0.5)
    assert found.model == "census"
    assert found.to_dict()["interval"] == [0.5, 0.5]


def test_a_table_without_unique_rows_bounds_what_was_not_drawn() -> None:
    """With 3 / rate unseen unique people, none is drawn in 5 % of samples."""
    found = estimate_population(np.full(200, 5), population=100_000)
    assert found.uniqueness == 0
    assert found.interval[1] == pytest.approx(-np.log(0.05) / 0.01 / 100_000, rel=0.01)


def test_a_table_in_which_everybody_is_unique_says_nothing() -> None:
    found = estimate_population(np.ones(50, dtype=np.int64), population=1000)
    assert found.model == "none"
    assert found.interval == (0, 1)


def test_a_column_with_one_value_is_no_structure() -> None:
    counts = np.array([1] * 30 + [2] * 10 + [3] * 5)
    found = estimate_population(counts, population=1000, codes=np.zeros((45, 1), dtype=np.int32))
    assert 0 <= found.interval[0] <= found.uniqueness <= found.interval[1] <= 1


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=80),
    st.integers(0, 10_000),
)
def test_every_estimate_lies_in_its_interval(classes: list[tuple[int, int, int]], others: int) -> None:
    counts, codes = np.array([item[0] for item in classes]), np.array([item[1:] for item in classes])
    found = estimate_population(counts, population=int(counts.sum()) + others, codes=codes)
    assert 0 <= found.interval[0] <= found.uniqueness <= found.interval[1] <= 1
    assert 0 <= found.unique_matches <= 1 + 1e-9
    assert 0 < found.journalist <= 1 + 1e-9


@pytest.mark.parametrize("population", [3, 0])
def test_a_population_smaller_than_its_sample_is_refused(population: int) -> None:
    with pytest.raises(ParameterError, match="give the number of people that the table was drawn from"):
        estimate_population(np.array([2, 2]), population=population)


def test_wide_codes_are_compacted() -> None:
    codes = np.array([[0, 10**9], [10**9, 0], [5, 5], [10**9, 10**9]] * 20, dtype=np.int64) + np.arange(80)[:, None]
    counts = np.array([1, 2, 1, 3] * 20)
    found = estimate_population(counts, population=10_000, codes=codes)
    assert 0 <= found.uniqueness <= 1
