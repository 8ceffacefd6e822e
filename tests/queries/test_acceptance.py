"""The worked examples of queries, through `PrivateTable` as an analyst would ask them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import cloister as cl
from cloister.errors import DataError
from cloister.queries.postprocessing import mean_from_histogram

SALARIES = [1000, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000]
INCOMES = [1234, 1300, 1233, 1250, 1284, 2000, 2300, 2044, 2573, 2745, 2853, 2483, 3633, 3182, 3274, 3935]
SURE = 10**6
"""An epsilon that leaves no noise to speak of."""


def table(values: list[int], bounds: tuple[int, int]) -> cl.Table:
    schema = cl.Schema([cl.Column(name="x", kind="numeric", bounds=bounds)])
    return cl.open_table(pa.table({"x": values}), schema=schema)


@pytest.mark.parametrize(
    ("options", "epsilon", "scale"),
    [
        ({}, 1, 19800),
        ({"within": (2000, 4000)}, 1, 2000),
        ({"within": (2000, 4000)}, 0.4, 5000),
        ({"within": (2000, 4000)}, 2, 1000),
    ],
)
def test_cdp_10_means_of_a_table_of_at_least_five(options: dict[str, object], epsilon: float, scale: float) -> None:
    private = cl.PrivateTable(
        table(SALARIES, (1000, 100_000)), budget=cl.Budget(epsilon=9), adjacency="replace", min_size=5
    )
    answer = private.mean("x", epsilon=epsilon, **options)
    assert answer.standard_deviation == pytest.approx(scale * 2**0.5, rel=1e-5)


def test_cdp_10_a_size_that_is_not_true_is_refused() -> None:
    with pytest.raises(DataError, match="state a size that holds"):
        cl.PrivateTable(
            table(SALARIES, (1000, 100_000)), budget=cl.Budget(epsilon=1), adjacency="replace", min_size=10**6
        )


def test_cdp_10_the_exact_means() -> None:
    for values, mean in ((SALARIES, 3300), ([*SALARIES, 100_000], 12090.909)):
        private = cl.PrivateTable(table(values, (1000, 100_000)), budget=cl.Budget(epsilon=2 * SURE))
        assert private.mean("x", epsilon=SURE).value == pytest.approx(mean, abs=0.1)


def test_cdp_11_a_histogram_and_the_mean_that_follows_from_it() -> None:
    private = cl.PrivateTable(table(INCOMES, (1000, 4000)), budget=cl.Budget(epsilon=3 * SURE))
    counts = private.histogram("x", bins=[1000, 2000, 3000, 4000], epsilon=SURE)["count"].tolist()
    assert counts == [5, 7, 4]
    assert mean_from_histogram(counts, [1500, 2500, 3500]) == 2437.5
    assert private.mean("x", epsilon=SURE).value == pytest.approx(2332.6875, abs=0.01)


def test_cdp_20_adult_in_sql(shared_data: Path) -> None:
    schema = cl.Schema([cl.Column(name="age", kind="numeric", bounds=(17, 90), storage="integer")])
    private = cl.PrivateTable(
        cl.open_table(shared_data / "adult" / "adult.csv", schema=schema), budget=cl.Budget(epsilon=9 * SURE)
    )
    frame = private.sql(
        "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE age > 50) AS old, "
        "COUNT(*) FILTER (WHERE age >= 44 AND age < 55) AS middle FROM data",
        epsilon=SURE,
    )
    assert frame.rows() == [{"n": 32561, "old": 6460, "middle": 6577}]
