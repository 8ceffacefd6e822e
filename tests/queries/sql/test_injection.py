"""Names and literals are data: no text in them becomes a part of the SQL that an engine runs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cloister.data.sources import open_table
from cloister.errors import CloisterError
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_sql
from tests.support import engine_tables, exact_answers
from tests.support.thoroughness import on_engines

HOSTILE = [
    "x'; DROP TABLE data; --",
    'x" OR 1=1 --',
    "x\\' OR 1=1 --",
    "x' OR '1'='1",
    "/* x */",
    "'; SELECT * FROM data; --",
    "x`; DROP TABLE data",
    "{{x}}",
    "$1",
    "%s",
    "?",
    ":x",
    "x\nUNION SELECT 1",
    "\u02bc\u2019\uff07 OR 1=1",
    "\u202e x",
    "\\",
    "''",
    "E'\\''",
]


def quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark + mark) + mark


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
    rows = pa.table({"id": list(range(len(HOSTILE))), "t": HOSTILE})
    public = pa.table({"t": HOSTILE, "n": list(range(len(HOSTILE)))})
    return Catalog(private={"data": openers[request.param]()(rows)}, public={"p": public})


def count(catalog: Catalog, query: str) -> float:
    ((value,),) = [list(row.values()) for row in exact_answers.rows_of(compile_sql(query, catalog))]
    return float(value)


ON_SPARK = ("x'; DROP TABLE data; --", "x\\' OR 1=1 --", "x`; DROP TABLE data", "x\nUNION SELECT 1", "E'\\''")
"""What ends a text or a name in some dialect; all others are asked for at once."""
ON_ENGINES = pytest.mark.parametrize(("catalog", "text"), on_engines(HOSTILE, spark=ON_SPARK), indirect=["catalog"])


def test_all_literals_at_once_equal_themselves_and_nothing_else(catalog: Catalog) -> None:
    said = [quoted(text, "'") for text in HOSTILE]
    assert count(catalog, f"SELECT COUNT(*) FROM data WHERE t IN ({', '.join(said)})") == len(HOSTILE)
    for every_second in (said[::2], said[1::2]):
        assert count(catalog, f"SELECT COUNT(*) FROM data WHERE t IN ({', '.join(every_second)})") == len(every_second)


@ON_ENGINES
def test_a_literal_equals_itself_and_nothing_else(catalog: Catalog, text: str) -> None:
    said = quoted(text, "'")
    conditions = (f"t = {said}", f"t IN ({said}, 'nothing')", f"CASE WHEN t = {said} THEN {said} END = {said}")
    counts = ", ".join(f"COUNT(*) FILTER (WHERE {holds}) AS n{place}" for place, holds in enumerate(conditions))
    (row,) = exact_answers.rows_of(compile_sql(f"SELECT {counts} FROM data", catalog))
    assert row == {"n0": 1, "n1": 1, "n2": 1}
    assert count(catalog, f"SELECT COUNT(*) FROM data JOIN p ON data.t = p.t WHERE p.t = {said}") == 1


@ON_ENGINES
def test_aliases_are_only_shown(catalog: Catalog, text: str) -> None:
    alias = quoted(text, '"')
    query = f"WITH {alias} AS (SELECT t AS {alias} FROM data) SELECT COUNT({alias}) AS {alias} FROM {alias} AS {alias}"
    (row,) = exact_answers.rows_of(compile_sql(query, catalog))
    assert row == {text: len(HOSTILE)}


@ON_ENGINES
def test_unknown_names_reach_no_engine(catalog: Catalog, text: str) -> None:
    name = quoted(text, '"')
    for query in (
        f"SELECT COUNT({name}) FROM data",
        f"SELECT COUNT(*) FROM {name}",
        f"SELECT COUNT(*) FROM data WHERE {name}.t = 'x'",
        f"SELECT {name}(t) FROM data",
        f"SELECT COUNT(*) FROM data WHERE t COLLATE {name} = 'x'",
    ):
        with pytest.raises(CloisterError, match="Fix: "):
            compile_sql(query, catalog)


@pytest.mark.parametrize(
    "name", ["select", "a b", 'say "x"; --', "größe", "A", "a", "c0", "cloister_rows", "x'y", "`t`"]
)
def test_columns_of_any_name_are_found_exactly(name: str) -> None:
    rows = pa.table(
        {"A": [1, 2, 3], "a": [1, 2, None], name: [1, None, None]}
        if name not in "Aa"
        else {"A": [1, 2, 3], "a": [1, 2, None]}
    )
    catalog = Catalog(private={"data": open_table(rows)})
    expected = {"A": 3, "a": 2}.get(name, 1)
    assert count(catalog, f"SELECT COUNT({quoted(name, chr(34))}) FROM data") == expected


def test_names_that_differ_in_case_only_are_not_guessed() -> None:
    catalog = Catalog(private={"data": open_table(pa.table({"Name": [1], "NAME": [2]}))})
    with pytest.raises(CloisterError, match="There is no column"):
        compile_sql("SELECT COUNT(name) FROM data", catalog)
