"""The noise in answers has the stated scale, and coordinates are independent."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from cloister import Budget
from cloister.core.random import random_source
from cloister.errors import SeededRandomnessWarning
from cloister.queries._aggregates import CountRows, CountUnits, Mean, Variance
from cloister.queries._contribution import Contribution
from cloister.queries._query_plan import QueryPlan, plan
from cloister.queries._question import QueryRows, Question
from cloister.queries._release import measure
from cloister.queries._uncertainty import GaussianNoise, LaplaceNoise
from cloister.queries.catalog import column_key, column_number
from cloister.queries.payment import check_price
from cloister.testing import SAMPLES, check_independent, check_scale
from cloister.testing.distributions import Distribution, discrete_gaussian, discrete_laplace
from tests.queries.neighbors import fast_table
from tests.queries.tables import private, visits
from tests.queries.test_sensitivity import PERSON

EMPTY = pa.table({"who": pa.array([], pa.string()), "k": pa.array([], pa.int64()), "x": pa.array([], pa.int64())})


def noise_of(
    contribution: Contribution, *, noise: str = "auto", **price: Any
) -> tuple[QueryPlan, dict[str, NDArray[Any]]]:
    """Return the noise of counts, a mean and a variance in as many groups as samples, all of which are empty."""
    table = fast_table(EMPTY)
    person = table.engine.stored(0) if contribution.is_person else None
    number = column_number(table, "x", bounds=(0, 3))
    question = Question(
        rows=QueryRows(engine=table.engine, source=table.engine.source(), person=person),
        aggregates=(CountRows(), CountUnits(), Mean(number), Variance(number)),
        keys=(column_key(table, "k", values=range(SAMPLES)),),
    )
    planned = plan(question, contribution, check_price(**price), noise=noise)
    return planned, measure(planned, contribution, random_source(None)).vectors


def law_of(noise: LaplaceNoise | GaussianNoise, factor: float) -> Distribution:
    if isinstance(noise, LaplaceNoise):
        return discrete_laplace(float(noise.scale) * factor)
    return discrete_gaussian(float(noise.squared_sigma) ** 0.5 * noise.refinement * factor)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("contribution", "options"),
    [
        (Contribution(), {"epsilon": 2}),
        (Contribution(), {"epsilon": 2, "delta": 1e-3, "noise": "gaussian"}),
        (Contribution(), {"rho": 1}),
        (PERSON, {"epsilon": 200_000}),
    ],
    ids=["laplace", "gaussian", "concentrated", "persons"],
)
def test_every_measurement_has_the_noise_that_is_stated(contribution: Contribution, options: Any) -> None:
    planned, vectors = noise_of(contribution, **options)
    parts = []
    for name, vector in vectors.items():
        noise = planned.noises[name]
        for part in vector * noise.refinement:
            parts.append(part)
            check_scale(
                lambda size, part=part: part[:size],
                lambda factor, noise=noise: law_of(noise, factor),
                scale=1.0,
                what=f"The noise of {name}",
            )
    check_independent(np.stack([part[:SAMPLES] for part in parts], axis=1))
    neighbors = parts[0].reshape(-1, 2)
    check_independent(neighbors, what="The noise of groups beside each other")


@pytest.mark.statistical
def test_a_histogram_has_laplace_noise_of_scale_one_over_epsilon() -> None:
    rows = pa.table({"k": pa.array(np.repeat(np.arange(100), 7))})
    table = private(rows)
    frame = table.histogram("k", values=range(SAMPLES), epsilon=0.5)
    truth = np.where(np.arange(SAMPLES) < 100, 7, 0)
    errors = (frame["count"] - truth).astype(np.int64)
    check_scale(lambda size: errors[:size], discrete_laplace, scale=2.0)


@pytest.mark.statistical
def test_a_histogram_of_persons_has_noise_for_the_limit() -> None:
    rows = pa.table({"who": pa.array([1, 2, 3]), "k": pa.array([1, 2, 3])})
    table = private(rows, unit="who", max_rows_per_unit=40)
    counts = np.asarray(table.histogram("k", values=range(10, SAMPLES + 10), epsilon=1)["count"], dtype=np.int64)

    def rounded(scale: float) -> Distribution:
        """Return the law of discrete Laplace noise in 65536ths of a row, rounded half up to whole rows."""
        fine = discrete_laplace(scale * 65_536)
        assert fine.cdf is not None
        inner = fine.cdf
        return Distribution(cdf=lambda x: inner((np.floor(x) + 0.5) * 65_536 - 1), lattice=1)

    check_scale(lambda size: counts[:size], rounded, scale=40.0)


def test_seeded_answers_are_charged_and_tainted_and_not_stored() -> None:
    table = visits(budget=Budget(epsilon=1))
    with pytest.warns(SeededRandomnessWarning):
        answer = table.count(epsilon=0.25, random_state=7)
    with pytest.warns(SeededRandomnessWarning):
        again = table.count(epsilon=0.25, random_state=7)
    assert answer.value == again.value
    assert not answer.guarantee.holds
    assert "predictable" in answer.guarantee.explain()
    assert table.remaining == Budget(epsilon=0.5)
    fresh = table.count(epsilon=0.25)
    assert fresh.guarantee.holds
    assert fresh.cost == Budget(epsilon=0.25)
    for ask in (table.mean, table.median):
        with pytest.warns(SeededRandomnessWarning):
            assert not ask("cost", epsilon="1/100", random_state=1).guarantee.holds
    with pytest.warns(SeededRandomnessWarning):
        assert not table.top_k("ward", 1, epsilon="1/100", random_state=1).guarantee.holds


def test_the_default_randomness_is_the_operating_systems() -> None:
    table = visits()
    values = {table.count(epsilon=1e-6, fresh=True).value for _ in range(5)}
    assert len(values) > 1
    assert table.count(epsilon=1).guarantee.holds


def test_noise_is_exact_beyond_64_bits() -> None:
    huge = LaplaceNoise(2**80, Fraction(1, 3))
    source = random_source(None)
    noisy = huge.add(np.array([[2**62, -(2**62)]], dtype=object), source)
    assert noisy.shape == (1, 2)
    assert any(abs(int(value)) > 2**63 for value in huge.add(np.zeros((1, 50), dtype=np.int64), source).flat)
