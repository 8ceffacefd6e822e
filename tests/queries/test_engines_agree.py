"""The same SQL on DuckDB, PostgreSQL and Spark: the same exact core, the same plan, the same guarantee."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._query_plan import plan
from cloister.queries.catalog import Catalog
from cloister.queries.payment import check_price
from cloister.queries.sql import compile_sql
from tests.support import engine_tables
from tests.support.thoroughness import is_thorough

SCHEMA = cl.Schema(
    [
        cl.Column(name="who", role="identifier"),
        cl.Column(name="age", kind="numeric", bounds=(0, 99)),
        cl.Column(name="cost", kind="numeric", bounds=(0, 250.5)),
        cl.Column(name="sex", categories=["F", "M"]),
        cl.Column(name="ward"),
    ]
)
ROWS = pa.table(
    {
        "who": pa.array([number % 37 if number % 11 else None for number in range(400)], pa.int64()),
        "age": pa.array([number * 7 % 120 - 5 if number % 13 else None for number in range(400)], pa.int64()),
        "cost": pa.array([number * 1.37 - 20 if number % 17 else float("nan") for number in range(400)], pa.float64()),
        "sex": pa.array([["F", "M", "X", None][number % 4] for number in range(400)]),
        "ward": pa.array([["north", "south", "ö", ""][number * 3 % 4] for number in range(400)]),
    }
)
QUERIES = (
    "SELECT COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a, STDDEV(cost) AS d FROM data",
    "SELECT sex, COUNT(*) AS n, AVG(cost) AS c FROM data WHERE age >= 18 OR ward = 'ö' GROUP BY sex",
    "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(cost) AS n, MEDIAN(age) AS m FROM data GROUP BY 1",
    "SELECT CASE WHEN cost > 100 THEN 'dear' ELSE 'cheap' END AS k, SUM(age * 2 - 1) AS s FROM data GROUP BY k",
    "WITH grown AS (SELECT * FROM data WHERE age > 30) SELECT sex, MAX(cost) AS m FROM grown GROUP BY sex",
)
OF_PERSONS = (
    "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT who) AS u FROM data GROUP BY ward",
    "SELECT AVG(LEAST(v, 12)) AS v FROM (SELECT who, COUNT(*) AS v FROM data GROUP BY who) AS p",
    "SELECT COUNT(DISTINCT ward) AS w, QUANTILE(cost, 0.9) AS q FROM data",
)
ROW = Contribution()
PERSON = Contribution(adjacency=cl.Adjacency.USER, unit="who", limit=5)
CAPPED = Contribution(adjacency=cl.Adjacency.USER, unit="who", limit=5, per_group=2, groups=3)
CASES = [(sql, ROW) for sql in QUERIES] + [
    (sql, contribution) for sql in (*QUERIES, *OF_PERSONS) for contribution in (PERSON, CAPPED)
]
ON_SPARK = [(sql, (ROW, PERSON, CAPPED)[place % 3]) for place, sql in enumerate(QUERIES)] + [
    (sql, (PERSON, CAPPED)[place % 2]) for place, sql in enumerate(OF_PERSONS)
]
"""What Spark, where each takes a third of a second, is usually asked: every query, and every unit of privacy."""


def core(table: cl.Table, sql: str, contribution: Contribution) -> Any:
    """Return every exact number, the guarantee and the event of a query."""
    catalog = Catalog(private={"data": table}, person="who" if contribution.is_person else None)
    question = compile_sql(sql, catalog).question
    planned = plan(question, contribution, check_price(epsilon=1, delta=1e-6))
    exact = ExactCore(question, contribution, planned.design.reach)
    cells = exact.cells(planned.design.components)
    vectors = {name: item.vector(cells).tolist() for name, item in planned.design.measurements.items()}
    ranks = [
        [(item.positions.tolist(), item.weights.tolist()) for item in exact.ranks(ranking.number)]
        for ranking in planned.design.rankings
    ]
    numbers = list(vectors.values())
    return cells.shown, numbers, ranks, planned.guarantee, planned.event.to_dict()


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.spark
def test_the_same_sql_means_the_same_everywhere(postgres_server: str, spark: Any) -> None:
    openers = [
        engine_tables.open_in_duckdb,
        engine_tables.postgres_opener(postgres_server),
        engine_tables.spark_opener(spark),
    ]
    tables = [opener(ROWS).with_schema(SCHEMA) for opener in openers]
    for sql, contribution in CASES:
        asked = tables if is_thorough() or (sql, contribution) in ON_SPARK else tables[:-1]
        first, *others = (core(table, sql, contribution) for table in asked)
        for other in others:
            assert other == first, sql
