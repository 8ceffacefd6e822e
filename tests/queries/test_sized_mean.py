"""Means of tables whose size is known: the published calibrations, and what they do to neighbors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from cloister import Budget, PrivateTable
from cloister.core.guarantees import Adjacency
from cloister.core.random import random_source
from cloister.errors import DataError, ParameterError
from cloister.queries._contribution import Contribution
from cloister.queries._question import QueryRows
from cloister.queries._sized_mean import SizedMean
from cloister.queries.catalog import column_number
from cloister.testing import SAMPLES, check_scale
from cloister.testing.distributions import discrete_laplace
from tests.queries.neighbors import fast_table
from tests.queries.tables import executed, private, visits

SALARIES = pa.table({"salary": [1000, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000]})
BOUNDS = (1000, 100_000)


def sized(
    rows: pa.Table, *, size: int, adjacency: str = "replace", within: Any = None, exact: bool = False, **options: Any
) -> SizedMean:
    table = fast_table(rows)
    interval = None if within is None else (Fraction(within[0]), Fraction(within[1]))
    return SizedMean(
        rows=QueryRows(engine=table.engine, source=table.engine.source()),
        number=column_number(table, rows.column_names[0], bounds=options.get("bounds", BOUNDS)),
        size=size,
        is_exact_size=exact,
        interval=interval,
        epsilon=Fraction(options.get("epsilon", 1)),
        contribution=Contribution(adjacency=Adjacency(adjacency)),
    )


def scale_of(*, bounds: list[int], size: int, epsilon: object, adjacency: str, within: Any = None) -> Fraction:
    """Return the scale of the noise in the unit of the mean, rounded to the grid of the noise."""
    mean = sized(SALARIES, size=size, adjacency=adjacency, within=within, bounds=bounds, epsilon=Fraction(str(epsilon)))
    scale = mean.noise.scale * mean.grid
    exactly = mean.sensitivity / mean.epsilon
    assert exactly <= scale <= exactly * (1 + Fraction(1, 2**19))
    return exactly


def test_the_size_that_is_stated_is_checked_when_the_table_is_opened() -> None:
    """Ten salaries are not a million: noise for a million rows would hide nobody."""
    for stated in ({"min_size": 10**6}, {"min_size": 11}, {"min_size": 10}):
        with pytest.raises(DataError, match="state a size that holds for the table and its neighbors"):
            private(SALARIES, **stated)
    with pytest.raises(DataError, match="state a size"):
        private(SALARIES, public_size=9, adjacency="replace")
    with pytest.raises(DataError):
        private(SALARIES, min_size=11, adjacency="replace")
    for fine in (
        {"min_size": 9},
        {"min_size": 10, "adjacency": "replace"},
        {"public_size": 10, "adjacency": "replace"},
    ):
        assert private(SALARIES, **fine).mean("salary", bounds=BOUNDS, epsilon=1).guarantee.holds


@pytest.mark.parametrize(
    ("options", "stated", "scale"),
    [
        ({"min_size": 5, "adjacency": "replace"}, "at least 5 rows", 19_800),
        ({"min_size": 4}, "at least 4 rows", 19_800),
        ({"public_size": 10, "adjacency": "replace"}, "exactly 10 rows", 9_900),
    ],
)
def test_a_sized_mean_through_a_private_table(options: Any, stated: str, scale: int) -> None:
    table = private(SALARIES, **options)
    answer = table.mean("salary", bounds=BOUNDS, epsilon=1)
    assert stated in answer.guarantee.explain()
    assert answer.margin() == pytest.approx(scale * np.log(20), rel=1e-5)
    assert BOUNDS[0] <= answer.value <= BOUNDS[1]
    assert "Missing values of salary count as the middle of its bounds." in answer.notes
    assert answer.cost == Budget(epsilon=1)
    narrow = table.mean("salary", bounds=BOUNDS, within=(2000, 4000), epsilon="2/5")
    assert narrow.margin() == pytest.approx(5000 * np.log(20), rel=1e-5)
    assert 2000 <= narrow.value <= 4000


def test_a_repeated_sized_mean_costs_nothing() -> None:
    table = private(SALARIES, min_size=5)
    first = table.mean("salary", bounds=BOUNDS, epsilon=2)
    again = table.mean("salary", bounds=BOUNDS, epsilon=1)
    assert again.value == first.value
    assert again.cost == Budget(epsilon=0)
    assert again.guarantee == first.guarantee
    assert again.margin() == first.margin()
    assert table.mean("salary", bounds=BOUNDS, epsilon=1, fresh=True).cost == Budget(epsilon=1)


@pytest.mark.statistical
def test_the_noise_of_a_sized_mean_has_the_stated_scale() -> None:
    mean = sized(SALARIES, size=10, exact=True, epsilon=Fraction(1, 2))
    truth = round(Fraction(3300) / mean.grid)
    source = random_source(None)
    exact = int(mean.noise.add(np.array([0]), source)[0])
    assert isinstance(exact, int)
    draws = mean.noise.add(np.zeros(SAMPLES, dtype=np.int64), source)
    check_scale(lambda size: draws[:size], discrete_laplace, scale=float(mean.noise.scale))
    steps = [mean.measure(source) - truth for _ in range(200)]
    assert abs(np.median(steps)) < float(mean.noise.scale)


rows_of_numbers = st.lists(st.one_of(st.none(), st.integers(-5, 15)), min_size=4, max_size=7)


class NoNoise:
    """Noise that adds nothing, to see what the mean is without it."""

    def add(self, values: Any, source: Any) -> Any:
        return values


@settings(max_examples=60)
@given(rows=rows_of_numbers, new=st.one_of(st.none(), st.integers(-5, 15)), data=st.data())
def test_neighbors_move_a_sized_mean_by_no_more_than_its_sensitivity(rows: Any, new: Any, data: Any) -> None:
    within = data.draw(st.sampled_from([None, (2, 3)]))

    def steps(found: list[Any], **options: Any) -> tuple[int, int]:
        column = pa.table({"x": pa.array(found, pa.int64())})
        mean = sized(column, bounds=(0, 10), within=within, **options)
        # The mean is rounded to a grid; the noise is for whole steps of it.
        quiet = mean.noise
        exact = _without_noise(mean)
        return exact, quiet.sensitivity

    replaced = [*rows[:-1], new]
    for options in ({"size": len(rows), "exact": True}, {"size": 4}):
        first, most = steps(rows, adjacency="replace", **options)
        second, _ = steps(replaced, adjacency="replace", **options)
        assert abs(first - second) <= most
    first, most = steps(rows, adjacency="add_remove", size=4)
    second, _ = steps([*rows, new], adjacency="add_remove", size=4)
    assert abs(first - second) <= most


def _without_noise(mean: SizedMean) -> int:
    class Silent:
        noise = NoNoise()

        def __getattr__(self, name: str) -> Any:
            return getattr(mean, name)

    return int(SizedMean.measure(Silent(), None))  # type: ignore[arg-type]


def test_the_way_to_a_mean_is_chosen_by_what_is_public() -> None:
    table = visits(min_size=100)
    sized_mean = table.mean("cost", epsilon=1)
    assert "at least 100 rows" in sized_mean.guarantee.explain()
    for other in (
        table.mean("cost", "age > 30", epsilon=1),
        table.mean("cost", epsilon=1, delta=1e-6),
        visits().mean("cost", epsilon=1),
        visits(unit="patient", max_rows_per_unit=3, min_size=100).mean("cost", epsilon=1),
    ):
        assert "at least" not in other.guarantee.explain()
        assert 0 <= other.value <= 25
    assert visits(min_size=100, budget=Budget(rho=1)).mean("cost", rho=0.1).cost == Budget(rho=0.1)


def test_what_a_sized_mean_cannot_be() -> None:
    with pytest.raises(ParameterError, match='adjacency="replace"'):
        visits(public_size=120)
    with pytest.raises(ParameterError, match="min_size=... or public_size=..."):
        visits().mean("cost", within=(1, 2), epsilon=1)
    with pytest.raises(ParameterError, match="min_size=... or public_size=..."):
        visits(min_size=100).mean("cost", "age > 3", within=(1, 2), epsilon=1)
    table = visits(min_size=5)
    before = executed(table)
    with pytest.raises(ParameterError):
        table.mean("cost", within=(4, 2), epsilon=1)
    assert executed(table) == before
    assert isinstance(table, PrivateTable)
