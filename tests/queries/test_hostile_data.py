"""Single rows, odd tables and look-alike questions that must not change more than they may."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest

import cloister as cl
from cloister.core.random import SystemRandomSource
from cloister.errors import DataError, UnsafeQueryError
from cloister.queries._aggregates import Variance
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._measurements import design
from cloister.queries._question import Question
from cloister.queries._uncertainty import MomentsUncertainty, Noise
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_sql


def exactly(question: Question, contribution: Contribution) -> dict[str, list[int]]:
    found = design(question, contribution)
    cells = ExactCore(question, contribution, found.reach).cells(found.components)
    return {name: [int(step) for step in item.vector(cells).ravel()] for name, item in found.measurements.items()}


def people(persons: int) -> cl.Table:
    rows = pa.table({"p": np.arange(persons), "x": np.tile([0.0, 100_000.0], persons)[:persons]})
    schema = cl.Schema(
        [cl.Column(name="p", role="identifier"), cl.Column(name="x", kind="numeric", bounds=(0, 100_000))]
    )
    return cl.open_table(rows, schema=schema)


def test_sums_of_squares_do_not_wrap_around() -> None:
    contribution = Contribution(adjacency=cl.Adjacency.USER, unit="p", limit=10)

    def squares(persons: int) -> tuple[int, int]:
        table = people(persons)
        question = compile_sql("SELECT VARIANCE(x) FROM data", Catalog(private={"data": table}, person="p")).question
        name = next(name for name in exactly(question, contribution) if name.startswith("square"))
        declared = design(question, contribution).measurements[name].l1
        return exactly(question, contribution)[name][0], declared

    values = {persons: squares(persons) for persons in (1758, 1759, 1760, 1761)}
    steps = [values[persons][0] for persons in values]
    assert max(abs(after - before) for before, after in pairwise(steps)) <= values[1758][1]


def test_a_large_table_has_the_variance_that_it_has() -> None:
    private = cl.PrivateTable(people(4000), budget=cl.Budget(epsilon=100), unit="p", max_rows_per_unit=10)
    answer = private.std("x", epsilon=50, sample=False)
    assert answer.value == pytest.approx(50_000, abs=2 * answer.margin(0.999999))


@pytest.mark.parametrize("rows", [["a"] * 5, ["A", *["a"] * 5], ["a", "A", "a"]])
def test_a_collation_of_the_table_does_not_move_rows_between_groups(rows: list[str]) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (s VARCHAR COLLATE NOCASE)")
    connection.executemany("INSERT INTO t VALUES (?)", [[row] for row in rows])
    schema = cl.Schema([cl.Column(name="s", categories=["a", "A"])])
    catalog = Catalog(private={"data": cl.open_table(connection.table("t"), schema=schema)})
    question = compile_sql("SELECT s, COUNT(*) FROM data GROUP BY s", catalog).question
    assert exactly(question, Contribution())["rows"] == [rows.count("a"), rows.count("A")]


def test_text_that_is_not_text_is_refused_when_the_table_is_opened() -> None:
    damaged = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], dtype=np.int32)), pa.py_buffer(b"\xff\xfe")]
    )
    with pytest.raises(DataError, match="convert its columns"):
        cl.open_table(pa.table({"s": damaged}))


@pytest.mark.postgres
@pytest.mark.parametrize("odd", ["1e400", "-1e400", "1e-400", "'NaN'", "'Infinity'", "0"])
def test_no_decimal_makes_a_question_fail(postgres_server: str, odd: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS odd_decimals")
        connection.execute(f"CREATE TABLE odd_decimals AS SELECT unnest(ARRAY[1, {odd}, 7]::numeric[]) AS n")
    schema = cl.Schema([cl.Column(name="n", kind="numeric", bounds=(0, 10))])
    private = cl.PrivateTable(
        cl.open_table(f"{postgres_server}&table=odd_decimals", schema=schema), budget=cl.Budget(epsilon=10_000)
    )
    wanted = 8 + {"1e400": 10, "'Infinity'": 10}.get(odd, 0)
    assert private.sum("n", epsilon=5000).value == pytest.approx(wanted, abs=0.1)
    assert 2 <= private.count("n > 0", epsilon=5000).value <= 3


@pytest.mark.parametrize(("rows", "epsilon"), [(3, 0.1), (10, 0.5), (30, 0.1), (100, 0.1)])
@pytest.mark.parametrize("root", [False, True])
def test_the_margin_of_a_sample_variance_covers(rows: int, epsilon: float, root: bool) -> None:
    """Values at both ends of the bounds, where the variance is largest: 2,000 draws of the noise."""
    values = np.array([-1.0, 1.0] * rows)[:rows]
    truth = np.var(values, ddof=1)
    scale = 3 / epsilon
    words = SystemRandomSource().words(3 * 2000).astype(np.float64).reshape(3, 2000) / 2.0**64
    noise = np.sign(words - 0.5) * -np.log1p(-2 * np.abs(words - 0.5)) * scale
    counts, totals, squares = rows + noise[0], values.sum() + noise[1], (values**2).sum() + noise[2]
    law = (Noise("laplace", scale),)
    moments = MomentsUncertainty((law, law, law), counts, totals, squares, 1.0, True, root)
    shown = moments.values(counts, totals, squares)
    wanted = np.sqrt(truth) if root else truth
    assert np.mean(np.abs(shown - wanted) <= moments.margins(0.95) + 1e-9) > 0.93


def named(**tables: Any) -> dict[str, Any]:
    return {name: cl.open_table(pa.table(columns)) for name, columns in tables.items()}


def test_an_answer_about_one_table_is_not_given_for_another(tmp_path: Any) -> None:
    base = pa.table({"p": [1, 2, 3]})
    tables = named(a={"p": list(range(1001))}, b={"p": list(range(10))})
    counted = []
    for order in (("a", "b"), ("b", "a")):
        with cl.open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            private = cl.PrivateTable(
                cl.open_table(base),
                dataset="d",
                budget=cl.Budget(epsilon=100),
                ledger=ledger,
                unit="p",
                max_rows_per_unit=1,
                others={name: tables[name] for name in order},
            )
            counted.append(private.sql("SELECT COUNT(*) AS n FROM a", epsilon=10)["n"][0])
            assert private.sql("SELECT COUNT(*) AS n FROM b", epsilon=10)["n"][0] < 100
    assert counted[0] > 900
    assert counted[1] > 900


def test_columns_in_another_order_are_another_table(tmp_path: Any) -> None:
    counted = []
    for columns in (["q", "r"], ["r", "q"]):
        rows = pa.table({"q": pa.nulls(500, pa.int64()), "r": list(range(500))}).select(columns)
        with cl.open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            private = cl.PrivateTable(cl.open_table(rows), dataset="d", budget=cl.Budget(epsilon=100), ledger=ledger)
            counted.append(private.count_present("q", epsilon=10).value)
    assert max(counted) < 50


def test_groups_that_differ_by_a_factor_are_different_groups() -> None:
    schema = cl.Schema([cl.Column(name="x", kind="numeric", bounds=(0, 3))])
    private = cl.PrivateTable(cl.open_table(pa.table({"x": [1, 2, 2]}), schema=schema), budget=cl.Budget(epsilon=9))
    frame = private.sql("SELECT x * 3 AS a, x * 2 AS b, COUNT(*) AS n FROM data GROUP BY 1, 2", epsilon=9)
    assert {(row["a"], row["b"]) for row in frame.rows()} >= {(3, 2), (6, 4), (9, 6)}
    with pytest.raises(cl.CloisterError, match="GROUP BY"):
        private.sql("SELECT x * 3 AS a, COUNT(*) AS n FROM data GROUP BY x * 2", epsilon=1)


def test_the_first_rows_of_another_table_come_in_its_own_order() -> None:
    base = cl.open_table(pa.table({"p": [1, 1], "day": [1, 2]}))
    other = cl.open_table(pa.table({"p": [1, 1, 1]}))
    private = cl.PrivateTable(
        base,
        budget=cl.Budget(epsilon=100),
        unit="p",
        max_rows_per_unit=2,
        bounding="truncate",
        order_by="day",
        others={"labs": other},
    )
    assert private.sql("SELECT COUNT(*) AS n FROM labs", epsilon=50)["n"][0] == pytest.approx(2, abs=1)


def test_a_variance_is_of_the_number_that_is_asked() -> None:
    """The unit of a number is part of what it is."""
    schema = cl.Schema([cl.Column(name="x", kind="numeric", bounds=(0, 8))])
    table = cl.open_table(pa.table({"x": [0, 8] * 500}), schema=schema)
    catalog = Catalog(private={"data": table})
    question = compile_sql("SELECT VAR_POP(x), VAR_POP(x * 3) FROM data", catalog).question
    units = {item.of.unit for item in question.aggregates if isinstance(item, Variance)}
    assert units == {Fraction(1), Fraction(3)}
    frame = cl.PrivateTable(table, budget=cl.Budget(epsilon=400)).ask(question, epsilon=400)
    assert frame.columns[0].values[0] == pytest.approx(16, rel=0.02)
    assert frame.columns[1].values[0] == pytest.approx(144, rel=0.02)


@pytest.mark.parametrize(
    "condition",
    [
        "MOD(CLAMP(x, 0, 10), 1e30) = 1",
        "CLAMP(x, 0, 10) % 1e30 = 1",
        "FLOOR(CLAMP(x, 0, 10) / 1e30) = 0",
        "CLAMP(x, 0, 10) * 0 + 1e-30 > CLAMP(x, 0, 1) * 0",
        "CEIL(CLAMP(x, 0, 10) / 1e30) = 0",
        "ROUND(CLAMP(x, 0, 10), 40) = 0",
        "x + 1e300 > 5e299",
    ],
)
@pytest.mark.parametrize("name", ["Bob", "Cy"])
def test_no_constant_fails_in_some_rows_only(condition: str, name: str) -> None:
    """What one row could make fail would tell whether that row is there, at any price."""
    schema = cl.Schema([cl.Column(name="name"), cl.Column(name="x", kind="numeric", bounds=(0, 9))])
    private = cl.PrivateTable(
        cl.open_table(pa.table({"name": ["Ann", name], "x": [1, 2]}), schema=schema), budget=cl.Budget(epsilon=1)
    )
    try:
        private.sql(f"SELECT COUNT(*) FROM data WHERE name = 'Bob' AND {condition}", epsilon=0.001)
    except UnsafeQueryError:
        assert private.remaining == cl.Budget(epsilon=1)


@pytest.mark.hidden_failures
def test_a_connection_that_compares_in_its_own_way_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT unnest([0, 1]) AS x")
    schema = cl.Schema([cl.Column(name="x", kind="numeric", bounds=(0, 1))])
    private = cl.PrivateTable(cl.open_table(connection.table("t"), schema=schema), budget=cl.Budget(epsilon=2))
    query = "SELECT CASE WHEN x > 0 THEN 'A' ELSE 'a' END AS g, COUNT(*) AS n FROM data GROUP BY g"
    assert len(private.sql(query, epsilon=1)) == 2
    connection.execute("SET default_collation = 'nocase'")
    with pytest.raises(DataError, match="RESET default_collation"):
        private.sql(query, epsilon=1, fresh=True)


def test_texts_that_look_like_names_of_tables_stay_texts() -> None:
    names = ['"table data"', '"cloister_data"', '"cloister_data"']
    schema = cl.Schema([cl.Column(name="name")])
    private = cl.PrivateTable(cl.open_table(pa.table({"name": names}), schema=schema), budget=cl.Budget(epsilon=90))
    found = [private.count(f"name = '{name}'", epsilon=40).value for name in names[:2]]
    assert found == [1, 2]


def test_a_table_can_stand_beside_itself() -> None:
    table = cl.open_table(pa.table({"p": [1, 2, 2]}))
    private = cl.PrivateTable(
        table, budget=cl.Budget(epsilon=9999), unit="p", max_rows_per_unit=9, others={"again": table}
    )
    joined = private.sql("SELECT COUNT(*) AS n FROM data AS a JOIN again AS b ON a.p = b.p", epsilon=9999)
    assert joined["n"][0] == pytest.approx(5, abs=1)
