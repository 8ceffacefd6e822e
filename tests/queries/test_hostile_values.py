"""No value of a row makes a question fail, or adds more than is declared, on any engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

import cloister as cl
from cloister.errors import DataError
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._measurements import MeasurementDesign, design
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_sql
from tests.queries import hostile_values
from tests.queries.hostile_values import (
    CONDITIONS,
    DUCKDB,
    IN_SHORT,
    NUMBERS,
    POSTGRES,
    SPARK,
    THOROUGH,
    Native,
    rows_of,
)
from tests.support.thoroughness import is_thorough

pytestmark = pytest.mark.no_cover  # tracing would double their time; quicker tests reach the same lines

PERSON = Contribution(adjacency=cl.Adjacency.USER, unit="who", limit=2, groups=2)
SAMPLED = Contribution(adjacency=cl.Adjacency.USER, unit="who", limit=2, bounding="sample")


def exactly(table: cl.Table, sql: str, contribution: Contribution) -> tuple[MeasurementDesign, Any, list[Any]]:
    """Return what a question computes before any noise."""
    catalog = Catalog(private={"data": table}, person="who" if contribution.is_person else None)
    found = design(compile_sql(sql, catalog).question, contribution)
    core = ExactCore(found.question, contribution, found.reach)
    return found, core.cells(found.components), [core.ranks(ranking.number) for ranking in found.rankings]


def aggregates(columns: dict[str, Native], thorough: tuple[str, ...]) -> list[str]:
    """Return an aggregate for each function and condition of some columns, and a few of the others."""
    made = []
    for name, column in columns.items():
        if name not in thorough:
            made += [form.format(x=name) for form in IN_SHORT[column.kind]]
            continue
        made += [f"SUM({form.format(x=name)})" for form in NUMBERS[column.kind]]
        made += [f"COUNT(*) FILTER (WHERE {form.format(x=name)})" for form in CONDITIONS[column.kind]]
        made += [f"COUNT({name})", f"COUNT(DISTINCT {name})"]
        if column.kind == "number":
            made += [f"AVG({name})", f"VAR_POP({name})"]
    return made


def pieces(made: list[str], size: int) -> Iterator[str]:
    for start in range(0, len(made), size):
        part = made[start : start + size]
        yield ", ".join(f"{aggregate} AS a{number}" for number, aggregate in enumerate(part))


def check_every_value(
    table: cl.Table,
    columns: dict[str, Native],
    *,
    size: int,
    rankings: tuple[str, ...],
    thorough: tuple[str, ...] = THOROUGH,
    apart: str = "",
) -> None:
    """Ask for all aggregates but those with a certain word in them, which are slow beside each other."""
    asked = [aggregate for aggregate in aggregates(columns, thorough) if not apart or apart not in aggregate]
    for selected in pieces(asked, size):
        found, cells, _ = exactly(table, f"SELECT id, {selected} FROM data GROUP BY id", Contribution())
        for name, measurement in found.measurements.items():
            moved = np.abs(measurement.vector(cells).astype(object)).sum(axis=0)
            assert max(moved.tolist()) <= measurement.l1, name
    for name in rankings:
        found, _, ranks = exactly(table, f"SELECT id, MEDIAN({name}) AS m FROM data GROUP BY id", Contribution())
        number = found.rankings[0].number
        for cell in ranks[0]:
            assert cell.weights.sum() <= 1
            assert all(number.low <= position <= number.high for position in cell.positions)


def check_groups_and_persons(table: cl.Table, columns: dict[str, Native]) -> None:
    """Ask in groups of every column at once, chosen privately, and for values of each person."""
    names = ", ".join(columns)
    for contribution in (PERSON, SAMPLED):
        exactly(cl.Table(table.engine), f"SELECT {names}, COUNT(*) AS n FROM data GROUP BY {names}", contribution)
    inner, outer = [], []
    for place, name in enumerate(name for name, column in columns.items() if column.kind == "number"):
        for function in ("SUM", "AVG", "MIN", "MAX"):
            inner.append(f"{function}({name}) AS {function.lower()}{place}")
            outer.append(f"SUM(CLAMP({function.lower()}{place}, -9, 9)) AS o{len(outer)}")
    query = f"SELECT {', '.join(outer)} FROM (SELECT who, {', '.join(inner)} FROM data GROUP BY who) AS p"
    found, cells, _ = exactly(table, query, PERSON)
    most = len({person % 3 for person in range(len(rows_of(columns)))})
    for name, measurement in found.measurements.items():
        assert np.abs(measurement.vector(cells).astype(object)).sum() <= most * measurement.l1, name
    for name in ("day", "zoned"):
        exactly(table, f"SELECT DATE_TRUNC('month', {name}) AS k, COUNT(*) AS n FROM data GROUP BY 1", PERSON)


@pytest.mark.slow
def test_no_value_makes_a_question_fail_in_duckdb() -> None:
    table = hostile_values.in_duckdb(DUCKDB, rows=rows_of(DUCKDB))
    numbers = tuple(name for name, column in DUCKDB.items() if column.kind == "number")
    check_every_value(table, DUCKDB, size=60, rankings=numbers)
    check_groups_and_persons(table, DUCKDB)
    table.to_arrow()
    table.profiles()


@pytest.mark.postgres
@pytest.mark.slow
def test_no_value_makes_a_question_fail_in_postgres(postgres_server: str) -> None:
    table = hostile_values.in_postgres(postgres_server, POSTGRES, rows=rows_of(POSTGRES))
    numbers = tuple(name for name, column in POSTGRES.items() if column.kind == "number")
    check_every_value(table, POSTGRES, size=60, rankings=numbers)
    check_groups_and_persons(table, POSTGRES)
    table.to_arrow()
    table.profiles()


@pytest.mark.spark
@pytest.mark.slow
def test_no_value_makes_a_question_fail_in_spark(spark: Any) -> None:
    """Also far from Greenwich, where the first and the last instants have no wall-clock time."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    table = hostile_values.in_spark(spark, SPARK, rows=rows_of(SPARK))
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    try:
        thorough = ("amount", "note", "zoned", *(("big",) if is_thorough() else ()))
        check_every_value(table, SPARK, size=60, rankings=("amount",), thorough=thorough, apart="DISTINCT")
        check_groups_and_persons(table, SPARK)
        table.to_arrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("score", ["5", "NULL", "'NaN'"])
def test_a_score_that_is_no_number_is_a_missing_one(postgres_server: str, score: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS scores")
        connection.execute("CREATE TABLE scores (name text, score numeric(9, 0), wide numeric(30, 0))")
        connection.execute(f"INSERT INTO scores VALUES ('Ann', 3, 3), ('Bob', {score}, {score})")
    schema = cl.Schema(
        [cl.Column(name="name"), cl.Column(name="score", kind="numeric", bounds=(0, 9)), cl.Column(name="wide")]
    )
    table = cl.open_table(postgres_server, name="scores", schema=schema)
    private = cl.PrivateTable(table, budget=cl.Budget(epsilon=100_000))
    bob = "SELECT SUM(CASE WHEN name = 'Bob' THEN score END) AS s, COUNT(wide) AS n FROM data"
    private.sql(bob, epsilon=1e-6)
    frame = private.sql(bob, epsilon=50_000)
    assert (round(frame["s"][0]), round(frame["n"][0])) == ((5, 2) if score == "5" else (0, 1))


@pytest.mark.postgres
@pytest.mark.slow
def test_texts_without_a_counterpart_are_refused_before_any_is_read(postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bytes")
        connection.execute("CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    url = postgres_server.replace("/postgres?", "/bytes?")
    with psycopg.connect(url, autocommit=True, client_encoding="SQL_ASCII") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS n, 'a'::text AS note")
    table = cl.open_table(url, name="t")
    assert table.count("n = 1") == 1
    with pytest.raises(DataError, match="encoding is UTF8"):
        table.frequencies(["note"])
