"""Values that an engine takes for one group have one text, so that no row decides in which order groups come."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from sqlglot import exp

import cloister as cl
from cloister.data.engines.base import Engine, value
from cloister.queries._contribution import Contribution
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_sql
from tests.queries.neighbors import compare, observe
from tests.support import engine_tables
from tests.support.thoroughness import is_thorough

DUCKDB = {
    "double": ["'-0.0'::DOUBLE", "'0.0'::DOUBLE", "'NaN'::DOUBLE", "-('NaN'::DOUBLE)", "1e-320", "-1e-320"],
    "single": ["'-0.0'::FLOAT", "'0.0'::FLOAT", "'NaN'::FLOAT", "-('NaN'::FLOAT)"],
    "decimal": ["1.10::DECIMAL(9, 3)", "1.1::DECIMAL(9, 3)", "0::DECIMAL(9, 3)", "(-0.0)::DECIMAL(9, 3)"],
    "wide": ["1::DECIMAL(30, 0)", "01::DECIMAL(30, 0)"],
    "zoned": ["'2020-01-01 12:00:00+02'::TIMESTAMPTZ", "'2020-01-01 10:00:00+00'::TIMESTAMPTZ"],
    "fine": ["'2020-01-01 10:00:00.0000001'::TIMESTAMP_NS", "'2020-01-01 10:00:00.0000002'::TIMESTAMP_NS"],
    "folded": ["'a' COLLATE NOCASE", "'A' COLLATE NOCASE", "'e' COLLATE NOCASE"],
    "unaccented": ["'e' COLLATE NOACCENT", "'\u00e9' COLLATE NOACCENT", "'e\u0301' COLLATE NOACCENT"],
    "truth": ["true", "'t'::BOOLEAN", "1::BOOLEAN"],
    "json": ["""'{"a": 1}'::JSON""", """'{"a":1}'::JSON""", """'{"a":1.0}'::JSON"""],
}
POSTGRES = {
    "double": ["'-0'::float8", "'0'::float8", "'NaN'::float8", "-('NaN'::float8)", "'1e-320'::float8"],
    "single": ["'-0'::real", "'0'::real", "'NaN'::real", "-('NaN'::real)"],
    "decimal": ["1.10::numeric", "1.1::numeric", "1.100::numeric", "-0.0::numeric", "0::numeric", "'NaN'::numeric"],
    "whole": ["1::numeric(9, 0)", "1.0::numeric(9, 0)", "'NaN'::numeric(9, 0)"],
    "wide": ["1::numeric(30, 0)", "1.0::numeric(30, 0)", "'NaN'::numeric(30, 0)"],
    "rounded": ["1234::numeric(9, -2)", "1200::numeric(9, -2)"],
    "padded": ["'a'::char(5)", "'a  '::char(5)", "' a'::char(5)"],
    "zoned": ["'2020-01-01 12:00:00+02'::timestamptz", "'2020-01-01 10:00:00+00'::timestamptz"],
    "folded": ["'a'::text COLLATE folded_texts", "'A'::text COLLATE folded_texts"],
    "formed": ["U&'\\00e9'::text COLLATE folded_texts", "U&'e\\0301'::text COLLATE folded_texts"],
    "json": ["""'{"a": 1.0}'::jsonb""", """'{"a":1.00}'::jsonb"""],
    "address": ["'10.0.0.1/32'::inet", "'10.0.0.1'::inet"],
}
SPARK = {
    "double": ["CAST('-0.0' AS DOUBLE)", "CAST('0.0' AS DOUBLE)", "CAST('NaN' AS DOUBLE)", "-CAST('NaN' AS DOUBLE)"],
    "single": ["CAST('-0.0' AS FLOAT)", "CAST('0.0' AS FLOAT)", "CAST('NaN' AS FLOAT)", "-CAST('NaN' AS FLOAT)"],
    "decimal": ["CAST('1.10' AS DECIMAL(9, 3))", "CAST('1.1' AS DECIMAL(9, 3))", "CAST('-0.0' AS DECIMAL(9, 3))"],
    "wide": ["CAST('1' AS DECIMAL(30, 0))", "CAST('1.0' AS DECIMAL(30, 0))"],
    "zoned": ["TIMESTAMP '2020-01-01 12:00:00+02:00'", "TIMESTAMP '2020-01-01 10:00:00+00:00'"],
    "folded": ["'a' COLLATE UTF8_LCASE", "'A' COLLATE UTF8_LCASE"],
    "unicode": ["'\u00e9' COLLATE UNICODE_CI", "'e\u0301' COLLATE UNICODE_CI", "'\u00c9' COLLATE UNICODE_CI"],
    "trimmed": ["'a' COLLATE UTF8_BINARY_RTRIM", "'a ' COLLATE UTF8_BINARY_RTRIM"],
}
NUMBERS = itertools.count()


def native_duckdb(values: list[str]) -> cl.Table:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT {values[0]} AS v")
    for item in values[1:]:
        connection.execute(f"INSERT INTO t SELECT {item}")
    return cl.open_table(connection.table("t"))


def native_postgres(url: str, values: list[str]) -> cl.Table:
    name = f"equal_{next(NUMBERS)}"
    rows = " UNION ALL ".join(f"SELECT {item} AS v" for item in values)
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE COLLATION IF NOT EXISTS folded_texts (provider = icu, locale = 'und-u-ks-level2', "
            f"deterministic = false); CREATE TABLE {name} AS {rows}"
        )
    return cl.open_table(url, name=name)


def texts_of_groups(engine: Engine, columns: int = 1) -> list[set[int]]:
    """Return how many texts the groups of each column have."""
    queries = [_texts_of(engine, place) for place in range(columns)]
    every = queries[0] if columns == 1 else exp.union(*queries, distinct=False)
    query = exp.select(exp.column("k", quoted=True), exp.column("n", quoted=True)).from_(every.subquery("every"))
    result = engine.execute(query, pa.schema([("k", pa.int64()), ("n", pa.int64())]))
    found = result.to_pylist()
    return [{row["n"] for row in found if row["k"] == place} for place in range(columns)]


def _texts_of(engine: Engine, place: int) -> exp.Select:
    grouped = value(engine, place)
    texts = exp.Count(this=exp.Distinct(expressions=[exp.cast(grouped.copy(), "TEXT")]))
    present = exp.Not(this=exp.Is(this=grouped.copy(), expression=exp.Null()))
    shown = (exp.alias_(exp.Literal.number(place), "k", quoted=True), exp.alias_(texts, "n", quoted=True))
    return exp.select(*shown).from_(engine.source()).where(present).group_by(grouped.copy())


@pytest.mark.parametrize("kind", DUCKDB)
def test_a_group_has_one_text_in_duckdb(kind: str) -> None:
    assert texts_of_groups(native_duckdb(DUCKDB[kind]).engine) == [{1}]


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("kind", POSTGRES)
def test_a_group_has_one_text_in_postgres(postgres_server: str, kind: str) -> None:
    assert texts_of_groups(native_postgres(postgres_server, POSTGRES[kind]).engine) == [{1}]


@pytest.mark.spark
@pytest.mark.slow
def test_a_group_has_one_text_in_spark(spark: Any) -> None:
    # All kinds are columns of one table, asked in one query, since Spark takes a second for each.
    rows = " UNION ALL ".join(
        "SELECT " + ", ".join(f"{values[min(row, len(values) - 1)]} AS `{kind}`" for kind, values in SPARK.items())
        for row in range(max(map(len, SPARK.values())))
    )
    found = texts_of_groups(cl.open_table(spark.sql(rows)).engine, len(SPARK))
    assert {kind: texts for kind, texts in zip(SPARK, found, strict=True) if texts != {1}} == {}


def zeros(*, is_turned: bool) -> pa.Table:
    """Return persons with both zeros among their values, the one or the other zero first."""
    both = [-0.0, 0.0] if is_turned else [0.0, -0.0]
    values = [*both, 1.0, 2.0, 3.0]
    persons = [float(person) for person in range(12) for _ in values]
    return pa.table({"p": persons, "x": values * 12, "note": ["n"] * len(persons)})


QUESTIONS = (
    "SELECT x, COUNT(*) AS n FROM data GROUP BY x",
    "SELECT ROUND(x * 0.5, 1) AS h, COUNT(*) AS n FROM (SELECT p, CLAMP(x, -9, 9) AS x FROM data) AS t GROUP BY 1",
    "SELECT note, f.w, COUNT(*) AS n FROM data JOIN factors AS f ON data.x = f.x GROUP BY note, f.w",
    "SELECT x, COUNT(*) AS n FROM (SELECT p, x FROM data WHERE x < 2.5) AS t GROUP BY x",
)
LIMITS = (
    Contribution(adjacency=cl.Adjacency.USER, unit="p", limit=3, groups=1),
    Contribution(adjacency=cl.Adjacency.USER, unit="p", limit=2, bounding="sample"),
)


def asked_on(engine: str) -> list[tuple[str, Contribution]]:
    """Return every question with every limit; on PostgreSQL with one of them, on Spark two that share nothing."""
    every = list(itertools.product(QUESTIONS, LIMITS))
    usual = {"postgres": [every[0], every[3], every[4], every[7]], "spark": [every[0], every[7]]}
    return every if is_thorough() else usual.get(engine, every)


def test_the_order_of_equal_zeros_decides_nothing(any_engine: engine_tables.NamedOpener) -> None:
    factors = pa.table({"x": [0.0, 1.0, 2.0, 3.0], "w": [0.0, -0.0, 5.0, 6.0]})
    tables = [any_engine.open(zeros(is_turned=is_turned)) for is_turned in (False, True)]
    for sql, limits in asked_on(any_engine.name):
        questions = [
            compile_sql(sql, Catalog(private={"data": table}, person="p", public={"factors": factors})).question
            for table in tables
        ]
        one, two = (observe(lambda _, asked=asked: asked, limits, None) for asked in questions)  # type: ignore[misc, arg-type]
        assert one.vectors == two.vectors, (sql, limits.bounding)


def test_a_person_more_moves_the_groups_by_no_more_than_is_declared(any_engine: engine_tables.NamedOpener) -> None:
    """Persons named 0.0 and -0.0 are one person, and so are their groups."""
    rows = pa.table({"p": [0.0, -0.0] * 6, "x": [0.0, 1.0, -0.0, 2.0, 3.0, -0.0, 4.0, 0.0, 5.0, 6.0, 7.0, 8.0]})
    others = pa.table({"p": [1.0, 2.0], "x": [0.0, -0.0]})
    tables = [any_engine.open(table) for table in (others, pa.concat_tables([others, rows]))]
    sql = "SELECT x, COUNT(*) AS n FROM data GROUP BY x"
    for limits in LIMITS:
        one, two = (
            observe(
                lambda found: compile_sql(sql, Catalog(private={"data": found}, person="p")).question, limits, table
            )
            for table in tables
        )
        compare(one, two)
