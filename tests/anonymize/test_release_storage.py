"""Releases stored beside their originals, in PostgreSQL and Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize import Release
from cloister.data.table import Table
from cloister.errors import DataError
from tests.support.engine_tables import NamedOpener

SCHEMA = cl.Schema(
    [
        cl.Column(name="id", role="identifier"),
        cl.Column(name="age", kind="numeric", bounds=(0, 110)),
        cl.Column(name="disease", role="sensitive"),
    ]
)
ROWS = pa.table(
    {
        "id": [f"p{number}" for number in range(40)],
        "age": [20 + number % 7 for number in range(40)],
        "disease": [("flu", "cold", "none")[number % 3] for number in range(40)],
    }
)


def released(table: Table) -> Release:
    release = cl.anonymize(table, models=[cl.KAnonymity(k=6)], algorithm="mondrian")
    assert isinstance(release, Release)
    return release


def test_a_release_is_stored_where_its_original_is(any_engine: NamedOpener, request: pytest.FixtureRequest) -> None:
    release = released(any_engine.open(ROWS, schema=SCHEMA))
    name = f"stored_release_{any_engine.name}"
    if any_engine.name not in ("postgres", "spark"):  # no database keeps what is in files and in memory
        with pytest.raises(DataError, match="write them to a file"):
            release.store(name)
        return
    release.store(name)
    stored = stored_table(any_engine.name, name, request)
    assert stored.columns == ("age", "disease")
    assert stored.frequencies(["age", "disease"]).equals(release.table.frequencies(["age", "disease"]))
    with pytest.raises(DataError, match="choose a name that is not taken"):
        release.store(name)


def stored_table(engine: str, name: str, request: pytest.FixtureRequest) -> Table:
    if engine == "postgres":
        return cl.open_table(request.getfixturevalue("postgres_server"), name=name)
    spark: Any = request.getfixturevalue("spark")
    return cl.open_table(spark.table(name))


@pytest.mark.postgres
@pytest.mark.slow
def test_a_release_of_rows_that_changed_is_not_kept(postgres_server: str) -> None:
    import psycopg

    from tests.support.engine_tables import postgres_opener

    table = postgres_opener(postgres_server)(ROWS, schema=SCHEMA)
    release = released(table)
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"DELETE FROM {table.engine.source().name} WHERE age = 20")
    with pytest.raises(DataError, match="anonymize it again"):
        release.store("stale_release")
    with pytest.raises(DataError, match="name a table"):
        cl.open_table(postgres_server, name="stale_release")
