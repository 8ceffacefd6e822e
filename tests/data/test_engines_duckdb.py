"""DuckDB: what its names may mean, its types, and its dates beyond the calendar."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cloister.data.engines.duckdb import connect
from cloister.data.sources import open_table
from cloister.data.values import StorageType
from cloister.errors import DataError, ParameterError, SourceNotFoundError

ENDLESS = """
SELECT day, CAST(day AS TIMESTAMP) AS at, CAST(day AS TIMESTAMP_S) AS seconds,
       CAST(day AS TIMESTAMP) AT TIME ZONE 'UTC' AS zoned
FROM (VALUES (DATE 'infinity'), ('-infinity'), ('0001-01-01 (BC)'), ('290000-01-01'), ('2020-01-01')) AS v(day)
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "store.duckdb"
    (tmp_path / "secret.csv").write_text("word\nSECRET\n")
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA clinic; CREATE TABLE clinic.visits AS SELECT 1 AS n")
        connection.execute('CREATE TABLE "a.b" AS SELECT 2 AS n; CREATE VIEW seen AS SELECT 3 AS n')
        connection.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{tmp_path}/secret.csv')")
    return f"duckdb:///{path}"


@pytest.mark.parametrize(
    ("name", "number"), [("clinic.visits", 1), ("CLINIC.Visits", 1), ("a.b", 2), ("main.a.b", 2), ("seen", 3)]
)
def test_tables_and_views_are_found_by_name(store: str, name: str, number: int) -> None:
    assert open_table(store, name=name).frequencies(["n"]).decoders == ((number,),)


def test_a_name_is_never_a_file_or_a_variable(store: str, tmp_path: Path) -> None:
    here = pd.DataFrame({"n": [1]})
    assert len(here) == 1
    for name in (f"{tmp_path}/secret.csv", "here", "duckdb_settings()", "pg_catalog.pg_type", "visits", "clinic.x"):
        with pytest.raises(SourceNotFoundError, match="name a table or view"):
            open_table(store, name=name)
        with pytest.raises(SourceNotFoundError, match="name a table or view"):
            open_table(f"{store}?table={name}")
    with pytest.raises(DataError, match="open those files") as caught:
        open_table(store, name="outside")
    assert "SECRET" not in str(caught.value)


def test_connections_resolve_no_variables() -> None:
    here = pd.DataFrame({"n": [1]})
    assert len(here) == 1
    with pytest.raises(duckdb.Error):
        connect().sql("SELECT * FROM here")


def test_tables_in_memory_read_no_files(tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("word\nSECRET\n")
    for source in (pa.table({"n": [1]}), path):
        engine: Any = open_table(source)._engine
        with pytest.raises(duckdb.Error, match="disabled by configuration"):
            engine._run(f"SELECT * FROM read_csv('{path}')")


def test_dates_outside_the_calendar_are_missing() -> None:
    table = open_table(duckdb.connect().sql(ENDLESS))
    day, moment = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)
    names = ["day", "at", "seconds", "zoned"]
    found = table.frequencies(names)
    assert found.decoders == ((day, None), *((moment, None),) * 3)
    assert found.weights.tolist() == [1, 4]
    for name in names:
        assert table.count(f"{name} IS NULL") == 4
        assert table.count(f"YEAR({name}) > 0") == 1
        assert table.count(f"{name} < '9999-12-31'") == 1
    assert table.frequencies(["day"], bins={"day": ["0001-01-01", "9999-12-31"]}).weights.tolist() == [1, 4]
    assert [(profile.missing, profile.distinct) for profile in table.profiles()] == [(4, 1)] * 4
    assert [column.null_count for column in table.to_arrow().columns] == [4] * 4


def test_times_that_do_not_fit_are_missing() -> None:
    table = open_table(pa.table({"at": pa.array([10**13, 0], pa.timestamp("s"))}))
    assert table.frequencies(["at"]).decoders == ((dt.datetime(1970, 1, 1), None),)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_with_a_zone_are_those_of_utc(unit: str) -> None:
    noon = dt.datetime(2020, 1, 1, 12, tzinfo=ZoneInfo("Europe/Paris"))
    table = open_table(pa.table({"at": pa.array([noon, None], pa.timestamp(unit, tz="Europe/Paris"))}))
    assert list(table.types.values()) == [StorageType.TIMESTAMP]
    assert table.frequencies(["at"]).decoders == ((dt.datetime(2020, 1, 1, 11), None),)
    assert table.count("at < '2020-01-01T11:30:00'") == 1


@pytest.mark.parametrize(
    ("sql", "storage", "stored"),
    [
        ("UUID '00000000-0000-0000-0000-00000000000A'", "text", "00000000-0000-0000-0000-00000000000a"),
        ("'a]'::ENUM('a]')", "text", "a]"),
        ("1.5::DECIMAL(4, 2)", "real", 1.5),
        ("7::DECIMAL(10, 0)", "integer", 7),
        ("7::DECIMAL(30, 0)", "text", "7"),
        ("7::HUGEINT", "text", "7"),
        ("7::UBIGINT", "text", "7"),
        ("TIME '10:00:00'", "text", "10:00:00"),
        ("TIMESTAMPTZ '2020-01-01 12:00:00+02'", "timestamp", dt.datetime(2020, 1, 1, 10)),
        ("TIMESTAMP_NS '2020-01-01 12:00:00'", "timestamp", dt.datetime(2020, 1, 1, 12)),
        ("'{}'::JSON", "text", "{}"),
        ("NULL", "text", None),
    ],
)
def test_types_with_one_meaning_are_mapped(sql: str, storage: str, stored: Any) -> None:
    table = open_table(duckdb.connect().sql(f"SELECT {sql} AS v"))
    assert table.types["v"] is StorageType(storage)
    assert table.frequencies(["v"]).decoders == ((stored,),)


@pytest.mark.parametrize(
    "sql",
    [
        "INTERVAL 1 DAY",
        "[1]",
        "['x']::VARCHAR[1]",
        "[1.5::DECIMAL(4, 2)]",
        "{'a': 1}",
        "MAP {'a': 1}",
        "'x'::BLOB",
        "'101'::BIT",
        "'10:00+02'::TIMETZ",
        "union_value(a := 1)",
    ],
)
def test_types_that_engines_spell_differently_are_refused(sql: str) -> None:
    table = open_table(duckdb.connect().sql(f"SELECT {sql} AS v, 1 AS n"))
    assert table.frequencies(["n"]).total == 1
    for use in (lambda: table.frequencies(["v"]), lambda: table.count("v IS NULL"), table.profiles, table.to_arrow):
        with pytest.raises(DataError, match='Column "v" holds .* engines spell differently'):
            use()


def test_periods_intervals_and_durations_of_pandas_are_refused() -> None:
    with pytest.raises(DataError, match='Column "month" holds'):
        open_table(pd.DataFrame({"month": pd.period_range("2020-01", periods=2, freq="M")}))
    with pytest.raises(DataError, match='Column "range" holds'):
        open_table(pd.DataFrame({"range": pd.interval_range(0, 2)}))
    with pytest.raises(DataError, match='Column "wait" holds'):
        open_table(pd.DataFrame({"wait": pd.to_timedelta([1, 2], unit="s")})).frequencies(["wait"])


def test_damaged_text_is_not_quoted() -> None:
    offsets = pa.array([0, 3], pa.int32()).buffers()[1]
    damaged = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"S\xffE")])
    with pytest.raises(DataError, match="cannot be read") as caught:
        open_table(pa.table({"word": damaged}))
    assert "S" not in str(caught.value).replace("DataError", "")


def test_what_polars_says_is_withheld() -> None:
    frame = pl.LazyFrame({"word": ["SECRET"]}).select(pl.col("word").cast(pl.Int64))
    with pytest.raises(DataError, match="Polars could not compute") as caught:
        open_table(frame)
    assert "SECRET" not in str(caught.value)


def test_an_address_that_is_no_url() -> None:
    with pytest.raises(ParameterError, match="is not a URL"):
        open_table("postgresql://[bad?table=t")
