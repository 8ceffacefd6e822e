from __future__ import annotations

import numpy as np
import pytest

from benchmarks import (
    harness,
    population_uniqueness,
    synthetic_population,
    uniqueness_models,
)

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines

COUNTS = np.repeat([1, 2, 3, 5, 20], [300, 100, 50, 20, 5])


def test_the_risk_benchmarks_are_found_and_their_parts_are_not() -> None:
    assert {"assessing", "population_uniqueness", "train_on_released"} <= set(harness.names())
    assert not {"synthetic_population", "uniqueness_models"} & set(harness.names())


def test_the_same_population_comes_out_every_time() -> None:
    first, second = synthetic_population.people(2000), synthetic_population.people(2000)
    assert np.array_equal(first, second)
    assert first.shape == (2000, len(synthetic_population.NAMES))


def test_children_are_single_pupils_and_the_old_are_retired() -> None:
    people = dict(zip(synthetic_population.NAMES, synthetic_population.people(5000).T, strict=True))
    children, old = people["age"] < 16, people["age"] >= 67
    assert (people["occupation"][children] == synthetic_population.PUPIL).all()
    assert (people["marital status"][children] == 0).all()
    assert (people["occupation"][old] == synthetic_population.RETIRED).all()


@pytest.mark.slow
def test_about_one_person_in_ten_is_unique() -> None:
    assert synthetic_population.uniqueness(synthetic_population.people()) == pytest.approx(0.104, abs=0.0005)


def test_zayatz_by_hand() -> None:
    """Two classes of one and one of two, half sampled: a unique is drawn with 1/2, one of two with 4/7 of the pairs."""
    once = {1: 4 / 8, 2: 2 * 4 * 4 / (8 * 7)}
    expected = 2 * (2 * once[1] / (2 * once[1] + once[2])) / 4
    assert uniqueness_models.zayatz(np.array([1, 1, 2]), 8) == pytest.approx(expected)


def test_pitman_finds_its_own_law() -> None:
    """Drawn by the sequential rule of the Pitman process with alpha 0.4 and theta 20."""
    counts = _pitman(3000, alpha=0.4, theta=20)
    population = _pitman(30_000, alpha=0.4, theta=20)
    truth = (population == 1).sum() / 30_000
    assert uniqueness_models.pitman(counts, 30_000) == pytest.approx(truth, rel=0.5)


def _pitman(rows: int, *, alpha: float, theta: float) -> np.ndarray:
    source = synthetic_population.SeededRandomSource(8)
    chance = synthetic_population.uniform(source, rows)
    tables: list[int] = []
    for row in range(rows):
        level = chance[row] * (theta + row)
        new = theta + alpha * len(tables)
        if level < new:
            tables.append(1)
            continue
        ends = np.cumsum(np.array(tables) - alpha)
        tables[int(np.searchsorted(ends, level - new))] += 1
    return np.array(tables)


def test_the_rule_takes_pitman_for_small_samples_and_the_smaller_of_two_for_large() -> None:
    rows = int(COUNTS.sum())
    assert uniqueness_models.decision_rule(COUNTS, 20 * rows) == uniqueness_models.pitman(COUNTS, 20 * rows)
    population = 4 * rows
    both = uniqueness_models.zayatz(COUNTS, population), uniqueness_models.slide_negative_binomial(COUNTS, population)
    assert uniqueness_models.decision_rule(COUNTS, population) == np.nanmin(both)


@pytest.mark.slow
def test_every_estimate_stands_beside_the_truth() -> None:
    rows = population_uniqueness.main(people=40_000, samples=1)
    assert len(rows) == 1 + 4 * (len(population_uniqueness.PUBLISHED) + 2)
    assert {row["name"] for row in rows if "met" in row} == {f"{share}% sample: error" for share in (1, 5, 10, 30)}
