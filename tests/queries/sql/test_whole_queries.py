"""Whole queries: without noise, the answer is what a plain database gives for the same text."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.queries._aggregates import Total
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_sql
from tests.support import engine_tables, exact_answers
from tests.support.thoroughness import on_engines

SEXES, REGIONS = ["F", "M"], ["north", "south", "west"]
VISITS = pa.table(
    {
        "patient_id": pa.array([1, 1, 1, 2, 2, 3, 4, 5, 5, 6, 7, 7], pa.int64()),
        "age": pa.array([30, 30, 31, 45, 46, None, 0, 110, 110, 67, 18, 19], pa.int64()),
        "cost": pa.array([0.0, 12.5, 100.0, 3.25, None, 7.75, 50.0, 99.5, 0.5, 20.0, 64.0, 1.0], pa.float64()),
        "sex": pa.array(["F", "F", "F", "M", "M", "F", "M", None, None, "F", "M", "M"]),
        "zip": pa.array(["10", "10", "11", "20", "20", "99", "10", "20", "21", None, "30", "30"]),
        "day": pa.array([dt.date(2020 + n % 3, 1 + n, 10 + n) for n in range(12)], pa.date32()),
        "urgent": pa.array([True, False, None, True, True, False, False, True, False, None, True, False]),
    }
)
SCHEMA = Schema(
    [
        Column(name="patient_id"),
        Column(name="age", kind="numeric", bounds=(0, 110)),
        Column(name="cost", kind="numeric", bounds=(0, 100)),
        Column(name="sex", kind="nominal", categories=SEXES),
        Column(name="zip", kind="nominal", categories=["10", "11", "20", "21", "30", "99"]),
        Column(name="day", kind="datetime", bounds=("2020-01-01", "2022-12-31")),
        Column(name="urgent", kind="nominal"),
    ]
)
REGION = pa.table(
    {
        "zip": ["10", "11", "20", "21", "30"],
        "region": ["north", "north", "south", None, "west"],
        "weight": [0.5, 1.0, 0.25, 2.0, 1.5],
        "code": [1, 2, 3, 4, 5],
    }
)

QUERIES = [
    "SELECT COUNT(*) AS n FROM data",
    "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a, MIN(age) AS low, MAX(age) AS high FROM data",
    "SELECT sex, COUNT(*) AS n FROM data WHERE sex IS NOT NULL GROUP BY sex ORDER BY sex",
    (
        "SELECT sex, COUNT(age) AS n, AVG(cost) AS c FROM data WHERE sex IN ('F', 'M') GROUP BY sex "
        "HAVING COUNT(*) > 4 ORDER BY n DESC, sex"
    ),
    (
        "SELECT sex, urgent, SUM(cost) AS s FROM data WHERE sex IS NOT NULL AND urgent IS NOT NULL GROUP BY 1, 2 "
        "ORDER BY 3 DESC LIMIT 2 OFFSET 1"
    ),
    (
        "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM data WHERE age IS NOT NULL GROUP BY decade "
        "HAVING COUNT(*) > 0 ORDER BY decade"
    ),
    (
        "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS band, COUNT(*) AS n "
        "FROM data WHERE age IS NOT NULL GROUP BY band ORDER BY band"
    ),
    "SELECT YEAR(day) AS y, COUNT(*) AS n, AVG(cost) AS c FROM data GROUP BY YEAR(day) ORDER BY y",
    "SELECT age > 40 AS older, COUNT(*) AS n FROM data WHERE age IS NOT NULL GROUP BY age > 40 ORDER BY older",
    "SELECT SUBSTRING(zip, 1, 1) AS area, COUNT(*) AS n FROM data WHERE zip IS NOT NULL GROUP BY area ORDER BY area",
    "SELECT 100.0 * COUNT(*) FILTER (WHERE urgent) / COUNT(*) AS share, ROUND(AVG(cost), 1) AS c FROM data",
    "SELECT SUM(CASE WHEN sex = 'F' THEN cost ELSE 0 END) / SUM(cost) AS share FROM data",
    "SELECT VAR_SAMP(age) AS v, VAR_POP(age) AS p, STDDEV_SAMP(cost) AS s, STDDEV_POP(cost) AS q FROM data",
    (
        "SELECT SUM(COALESCE(age, 0) + 2 * cost) AS s, SUM(ABS(cost - 50)) AS d, SUM(LEAST(cost, 10)) AS m FROM data "
        "WHERE cost IS NOT NULL"
    ),
    (
        "WITH adults AS (SELECT sex, age, cost * 2 AS twice FROM data WHERE age >= 18) "
        "SELECT sex, SUM(twice) AS t FROM adults WHERE sex IS NOT NULL GROUP BY sex ORDER BY sex"
    ),
    "SELECT COUNT(*) AS n FROM (SELECT * FROM data WHERE age > 20) AS x WHERE x.cost > 5 OR x.urgent",
    (
        "SELECT region, COUNT(*) AS n, SUM(weight * age) AS w FROM data JOIN region ON data.zip = region.zip "
        "WHERE region IS NOT NULL GROUP BY region ORDER BY region"
    ),
    (
        "SELECT region, COUNT(*) AS n FROM data AS d LEFT JOIN region USING (zip) WHERE region IS NOT NULL "
        "GROUP BY region ORDER BY region"
    ),
    "SELECT COUNT(*) AS n, COUNT(weight) AS w, SUM(COALESCE(weight, 10)) AS s FROM data LEFT JOIN region USING (zip)",
    (
        "SELECT AVG(LEAST(visits, 20)) AS v, COUNT(*) AS n FROM "
        "(SELECT patient_id, COUNT(*) AS visits FROM data GROUP BY patient_id) AS p"
    ),
    (
        "SELECT LEAST(visits, 3) AS v, COUNT(*) AS n FROM (SELECT patient_id, COUNT(*) AS visits FROM data "
        "GROUP BY patient_id HAVING COUNT(*) > 1) AS p GROUP BY v HAVING COUNT(*) > 0 ORDER BY v"
    ),
    (
        "SELECT SUM(LEAST(total, 500)) AS s, AVG(oldest) AS a, SUM(LEAST(days, 9)) AS d FROM (SELECT patient_id, "
        "SUM(cost) AS total, MAX(age) AS oldest, COUNT(DISTINCT day) AS days FROM data GROUP BY patient_id) AS p"
    ),
    (
        "SELECT SUM(LEAST(u, 5)) AS s FROM (SELECT patient_id, COUNT(*) FILTER (WHERE urgent) AS u FROM data "
        "GROUP BY patient_id) AS p"
    ),
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT patient_id, sex FROM data WHERE sex IS NOT NULL) AS p",
    "SELECT COUNT(DISTINCT patient_id) AS n FROM data WHERE cost > 10",
    "(SELECT SUM(IF(age > 40, 1, 0)) AS a, SUM(CAST(age AS REAL) / 2) AS b, SUM(CAST(age AS INTEGER)) AS c FROM data)",
    "SELECT SUM(DAY(day)) AS d, SUM(EXTRACT(MONTH FROM day)) AS m, SUM(YEAR(day)) AS y, AVG(QUARTER(day)) q FROM data",
    "SELECT SUM(CAST(urgent AS INTEGER)) AS u, COUNT(*) FILTER (WHERE (urgent)) AS v FROM data",
    (
        "SELECT (sex) AS s, (COUNT(*)) AS n FROM data WHERE sex IS NOT NULL GROUP BY (sex) "
        "HAVING (COUNT(*) > 0) AND (COUNT(*)) < 100 ORDER BY (sex)"
    ),
    "SELECT SUM(FLOOR(-cost / 7)) AS f, SUM(CEIL(age / 7 - 5)) AS c, SUM(TRUNC(5 - cost)) AS t FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE CASE WHEN age > 40 THEN urgent ELSE cost > 5 END",
    "SELECT COUNT(*) AS n FROM data WHERE age + 0.5 > 30.5 AND cost * 2 <= age AND age < 1e300",
    (
        "SELECT region, COUNT(*) AS n FROM data JOIN region ON (data.zip = region.zip) AND (code > 1) "
        "WHERE region IS NOT NULL GROUP BY region ORDER BY region"
    ),
    (
        "SELECT SUM(LEAST(c, 9)) AS c, SUM(LEAST(d, 3)) AS d, MAX(e) AS e FROM (SELECT patient_id, COUNT(cost) AS c, "
        "COUNT(DISTINCT age) FILTER (WHERE cost > 5) AS d, (MIN(age) + 1) * 2 AS e FROM data GROUP BY (patient_id)) p"
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT patient_id, YEAR(day) AS y, COUNT(*) AS c FROM data "
        "GROUP BY patient_id, YEAR(day) HAVING COUNT(*) = 1 AND YEAR(day) > 2020) AS p WHERE y < 2022"
    ),
    "SELECT SUM(LEAST(age, -5)) AS a, SUM(GREATEST(cost, 250)) AS b FROM data WHERE age > 0 AND cost >= 0",
    (
        "SELECT COUNT(*) AS n, SUM(one) AS s, COUNT(one) AS c, SUM(COALESCE(one, 3)) AS t FROM data LEFT JOIN "
        "(SELECT patient_id, 1 AS one FROM data WHERE age > 40 GROUP BY patient_id) AS p "
        "ON data.patient_id = p.patient_id"
    ),
    (
        "SELECT COUNT(*) AS n, COUNT(old) AS c, SUM(CASE WHEN old THEN 1 ELSE 0 END) AS s FROM data AS a LEFT JOIN "
        "(SELECT patient_id, age IS NULL OR age > 100 AS old FROM data WHERE cost > 5) AS b USING (patient_id)"
    ),
    (
        "SELECT sex, AVG(LEAST(p.visits, 10)) AS v FROM data JOIN (SELECT patient_id, COUNT(*) AS visits FROM data "
        "GROUP BY patient_id) AS p ON data.patient_id = p.patient_id WHERE sex IS NOT NULL GROUP BY sex ORDER BY sex"
    ),
    "SELECT sex, COUNT(*) AS n FROM data WHERE sex IS NOT NULL GROUP BY sex ORDER BY -COUNT(*), sex DESC",
    (
        "SELECT CASE sex WHEN 'F' THEN 0 WHEN 'M' THEN 1 END AS code, COUNT(*) AS n FROM data WHERE sex IS NOT NULL "
        "GROUP BY 1 ORDER BY 1"
    ),
    (
        "SELECT sex, CASE WHEN COUNT(*) > 4 THEN 'many' ELSE 'few' END AS size FROM data WHERE sex IS NOT NULL "
        "GROUP BY sex ORDER BY sex"
    ),
    "SELECT COUNT(*) AS n FROM data WHERE day BETWEEN '2020-01-01' AND '2021-06-30' AND zip LIKE '1%' OR age % 2 = 1",
    "SELECT SUM(POWER(age - 50, 2)) AS s, SUM(ROUND(cost, 0)) AS r, SUM(-age) AS m FROM data WHERE age > 0",
]


@pytest.fixture(
    scope="module",
    params=[
        "duckdb",
        pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow]),
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def catalog(request: pytest.FixtureRequest) -> Catalog:
    openers = {
        "duckdb": lambda: engine_tables.open_in_duckdb,
        "postgres": lambda: engine_tables.postgres_opener(request.getfixturevalue("postgres_server")),
        "spark": lambda: engine_tables.spark_opener(request.getfixturevalue("spark")),
    }
    table = openers[request.param]()(VISITS, schema=SCHEMA)
    return Catalog(private={"data": table}, person="patient_id", public={"region": REGION})


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("data", VISITS)
    connection.register("region", REGION)
    return connection


# One of each function, kind of join and kind of subquery; presenting rows is the same on every engine.
ON_SPARK = [QUERIES[place] for place in (1, 5, 6, 9, 10, 12, 13, 16, 18, 21, 25, 26, 29, 31, 33, 38, 42, 43)]


@pytest.mark.parametrize(("catalog", "query"), on_engines(QUERIES, spark=ON_SPARK), indirect=["catalog"])
def test_without_noise_the_answer_is_that_of_a_plain_database(
    catalog: Catalog, plain: duckdb.DuckDBPyConnection, query: str
) -> None:
    expected = _plain_rows(plain, query)
    found = exact_answers.rows_of(compile_sql(query, catalog))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert list(ours) == list(theirs)
        for name, value in theirs.items():
            assert _same(ours[name], value), (name, ours, theirs)


def test_means_of_each_person_are_rounded_down_to_a_small_part_of_a_step(
    catalog: Catalog, plain: duckdb.DuckDBPyConnection
) -> None:
    query = (
        "SELECT SUM(a) AS a, SUM(c) AS c, SUM(d) AS d FROM (SELECT patient_id, AVG(age) AS a, AVG(cost) AS c, "
        "AVG(age - 60) FILTER (WHERE cost > 5) AS d FROM data GROUP BY patient_id) AS p"
    )
    compiled = compile_sql(query, catalog)
    (found,), (expected,) = exact_answers.rows_of(compiled), _plain_rows(plain, query)
    for name, total in zip(expected, compiled.question.aggregates, strict=True):
        assert isinstance(total, Total)
        assert expected[name] - 7 * total.of.unit <= found[name] <= expected[name] + 1e-9
        assert total.of.unit <= Fraction(1, 1000)


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, str | bool) or theirs is None:
        return ours == theirs
    return math.isclose(float(ours), float(theirs), rel_tol=1e-9, abs_tol=1e-9)


def _plain_rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = connection.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
