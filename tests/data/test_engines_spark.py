from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from cloister.data.engines import _spark as spark_engine
from cloister.data.measures import Sum
from cloister.data.sources import open_table
from cloister.data.values import StorageType
from cloister.errors import DataError, DataWarning, ParameterTypeError

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_unusual_types_follow_the_common_rules(spark: Any) -> None:
    frame = spark.sql(
        "SELECT CAST(1 AS TINYINT) AS small, CAST(1.25 AS DECIMAL(9, 2)) AS amount, CAST(7 AS DECIMAL(10, 0)) AS whole,"
        " CAST(9 AS DECIMAL(30, 0)) AS wide, CAST(0.1 AS FLOAT) AS single, 'aB' COLLATE UTF8_LCASE AS folded,"
        " TIMESTAMP_NTZ '2020-01-01 12:00:00' AS plain, TIMESTAMP '2020-01-01 12:00:00' AS zoned,"
        " array(1, 2) AS tags, 1 AS `a.b`"
    )
    table = open_table(frame)
    kinds = ["integer", "real", "integer", "text", "real", "text", "timestamp", "timestamp", "text", "integer"]
    assert list(table.types.values()) == [StorageType(kind) for kind in kinds]
    names = ["small", "amount", "whole", "wide", "single", "plain", "zoned", "folded"]
    noon = dt.datetime(2020, 1, 1, 12)
    values = table.frequencies(names).decode()
    assert [values[name] for name in names] == [[1], [1.25], [7], ["9"], [0.10000000149011612], [noon], [noon], ["aB"]]
    assert table.count("folded = 'ab'") == 0


@pytest.mark.parametrize("sql", ["array(1)", "map('a', 1)", "struct(1)", "X'01'", "INTERVAL 1 DAY", "INTERVAL 1 MONTH"])
def test_types_that_engines_spell_differently_are_refused(spark: Any, sql: str) -> None:
    table = open_table(spark.sql(f"SELECT {sql} AS v, 1 AS n"))
    assert table.count("n = 1") == 1
    with pytest.raises(DataError, match='Column "v" holds .* engines spell differently'):
        table.frequencies(["v"])


def test_dates_outside_the_calendar_are_missing(spark: Any) -> None:
    table = open_table(
        spark.sql(
            "SELECT day, CAST(day AS TIMESTAMP_NTZ) AS at FROM (VALUES (make_date(12000, 1, 1)), (make_date(-5, 1, 1)),"
            " (DATE '2020-01-01')) AS v(day)"
        )
    )
    found = table.frequencies(["day", "at"])
    assert found.decoders == ((dt.date(2020, 1, 1), None), (dt.datetime(2020, 1, 1), None))
    assert found.weights.tolist() == [1, 2]
    assert table.count("day IS NULL AND at IS NULL") == 2
    assert [profile.missing for profile in table.profiles()] == [2, 2]


def test_repeated_names_are_repaired_and_the_view_is_gone_afterwards(spark: Any) -> None:
    with pytest.warns(DataWarning, match="a_2"):
        table = open_table(spark.sql("SELECT 1 AS a, 2 AS a"))
    assert table.frequencies(["a", "a_2"]).decoders == ((1,), (2,))
    assert not [view for view in spark.catalog.listTables() if view.name.startswith("cloister_data")]


def test_sums_beyond_64_bits_are_exact(spark: Any) -> None:
    table = open_table(spark.sql(f"SELECT {2**63 - 1}L AS n FROM range(3)"))
    assert table.frequencies([], measures={"n": Sum("n")}).measures["n"].values.tolist() == [3 * (2**63 - 1)]


def test_sparks_words_are_withheld(spark: Any) -> None:
    table = open_table(spark.sql("SELECT CAST(name AS INT) AS n FROM (VALUES ('SECRET'), ('7')) AS v(name)"))
    with pytest.raises(DataError, match="executors' logs") as caught:
        table.frequencies(["n"])
    assert "SECRET" not in str(caught.value)


def test_a_lost_session_says_so(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from py4j.protocol import Py4JNetworkError

    table = open_table(spark.range(2))

    def fail(*_: Any) -> None:
        raise Py4JNetworkError("SECRET")

    monkeypatch.setattr(table._engine, "_collect", fail)
    with pytest.raises(DataError, match="start the session again"):
        table.count()

    def bug(*_: Any) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(table._engine, "_collect", bug)
    with pytest.raises(KeyError):
        table.count()


def test_a_spark_column_is_not_a_table(spark: Any) -> None:
    with pytest.raises(ParameterTypeError, match="give a path"):
        open_table(spark.range(2).schema)


def test_pandas_serves_where_arrow_is_not_offered() -> None:
    frame = SimpleNamespace(toPandas=lambda: pd.DataFrame({"a": [1, 2]}))
    assert spark_engine._to_arrow(frame).to_pylist() == [{"a": 1}, {"a": 2}]
