from __future__ import annotations

import datetime as dt
import math
import sys
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sqlglot

from cloister.data.columns import Column, Kind
from cloister.data.measures import CountPresent, Sum, SumOfSquares
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import (
    CloisterError,
    DataWarning,
    MissingBoundsError,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
    UnknownColumnError,
)


@pytest.fixture(scope="module")
def table() -> Table:
    return open_table(
        pa.table(
            {
                "age": [30, 41, None, 30],
                "cost": [1.5, math.nan, 2.0, -0.0],
                "sex": ["F", "M", "F", None],
                "seen": pa.array([dt.date(2020, 1, 1)] * 4),
                "at": pa.array([dt.datetime(2020, 1, 1, 5)] * 4, pa.timestamp("us")),
                "well": [True, False, None, True],
            }
        )
    )


def test_repr_shows_columns_and_types_but_no_data(table: Table) -> None:
    assert repr(table) == "Table(age: integer, cost: real, sex: text, seen: date, at: timestamp, well: boolean)"
    assert repr(table.frequencies(["age"])) == "FrequencyTable(columns=['age'])"
    measured = table.frequencies(["age"], measures={"n": CountPresent("sex")})
    assert repr(measured) == "FrequencyTable(columns=['age'], measures=['n'])"
    assert repr(measured.measures["n"]) == "MeasuredSums(unit=1, steps=(0, 1))"
    assert "41" not in repr(table.profiles())


def test_rows_leave_in_three_shapes(table: Table) -> None:
    rows = table.to_arrow()
    assert rows.column("cost").to_pylist() == [1.5, None, 2.0, 0.0]
    assert isinstance(table.to_pandas(), pd.DataFrame)
    assert isinstance(table.to_polars(), pl.DataFrame)
    assert table.to_polars().shape == (4, 6)


@pytest.mark.parametrize(("package", "method"), [("pandas", "to_pandas"), ("polars", "to_polars")])
def test_a_missing_package_is_named(table: Table, monkeypatch: pytest.MonkeyPatch, package: str, method: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"cloister\[{package}\]"):
        getattr(table, method)()


def test_a_schema_can_be_changed(table: Table) -> None:
    schema = SimpleNamespace(columns={"sex": SimpleNamespace(categories=("M", "X", "F"))})
    other = table.with_schema(schema)
    assert table.schema is None
    assert other.schema is schema
    assert other.frequencies(["sex"]).decoders == (("M", "X", "F", None),)
    assert other.frequencies(["sex"]).dense().tolist() == [1, 0, 2, 1]


def test_guessed_categories_are_not_declared(table: Table) -> None:
    column = SimpleNamespace(categories=("M", "F"), guessed=frozenset({"categories"}))
    found = table.with_schema(SimpleNamespace(columns={"sex": column})).frequencies(["sex", "age"])
    assert found.declared == (False, False)


@pytest.mark.parametrize(
    ("column", "categories", "codes"),
    [
        ("age", (30.0, Fraction(41), 7.5, "30", True, math.inf, 2**70), [0, 1, 7]),
        ("cost", (2, 0, "x", 1.5), [0, 1, 3, 4]),
        ("sex", (1, True, "M", "F"), [2, 3, 4]),
        ("well", (0, False, True), [1, 2, 3]),
        ("seen", (dt.datetime(2020, 1, 1), "never", 3, dt.date(2020, 1, 1)), [3]),
        ("at", ("2020-01-01 05:00", dt.date(2020, 1, 1)), [0]),
        ("at", (dt.datetime(2020, 1, 1, 5), "2020-01-01 05:00Z"), [0]),
    ],
)
def test_declared_categories_are_read_as_the_columns_type(
    table: Table, column: str, categories: tuple[Any, ...], codes: list[int]
) -> None:
    schema = SimpleNamespace(columns={column: SimpleNamespace(categories=categories)})
    found = table.with_schema(schema).frequencies([column])
    assert found.decoders == ((*categories, None),)
    assert found.codes[:, 0].tolist() == codes
    assert found.to_arrow().num_rows == len(codes)


def test_bins_win_over_categories(table: Table) -> None:
    schema = SimpleNamespace(columns={"age": SimpleNamespace(categories=(30,))})
    found = table.with_schema(schema).frequencies(["age"], bins={"age": [0, 40, 50]})
    assert found.weights.tolist() == [2, 1, 1]


def test_a_condition_may_be_an_expression(table: Table) -> None:
    assert table.count(sqlglot.parse_one("age > 35")) == 1


@pytest.mark.parametrize(
    ("where", "fix"),
    [
        ("sex = 1", "compare like with like"),
        ("age + 1 > 2", "use columns"),
        ("hours-per-week > 2", "double quotes"),
        ("age IN (SELECT 1)", "use columns"),
        ("EXISTS(SELECT 1)", "use columns"),
        ("UPPER(sex) = 'F'", "use columns"),
        ("COUNT(*) > 1", "use columns"),
        ("CAST(sex AS INT) = 1", "use columns"),
        ("CAST('1' AS INT) = age", "use columns"),
        ("other.age = 1", "use columns"),
        ("well < TRUE", "use columns"),
        ("age IS 5", "use columns"),
        ("age", "compare like with like"),
        ("5", "use columns"),
        ("age = NULL", "IS NULL"),
        ("age IN (1, NULL)", "IS NULL"),
        ("seen = 'x'", "write dates as"),
        ("at = '2020-01-01T00:00:00Z'", "write dates as"),
        ("YEAR(age) = 1", "compare like with like"),
        ("LENGTH(age) = 1", "compare like with like"),
        ("age LIKE '3%'", "compare like with like"),
        ("sex LIKE sex", "no backslash"),
        ("sex LIKE 'a\\%'", "no backslash"),
        ("age IS TRUE", "compare like with like"),
        ("age > 1e999", "below 1e308"),
        ("age > 1; DROP TABLE x", "double quotes"),
        ("age >", "double quotes"),
        ("", "double quotes"),
        (7, 'where="age > 50"'),
    ],
)
def test_conditions_that_are_refused(table: Table, where: Any, fix: str) -> None:
    with pytest.raises((ParameterError, ParameterTypeError)) as caught:
        table.count(where)
    assert fix in caught.value.fix


@pytest.mark.parametrize("where", ['"AGE" = 1', "agee = 1", 'sex = "F"'])
def test_conditions_on_unknown_columns(table: Table, where: str) -> None:
    with pytest.raises(UnknownColumnError, match="use one of the schema's columns: age"):
        table.count(where)


def test_bins_of_dates_and_times_may_be_endless() -> None:
    days = [dt.date(1, 1, 1), dt.date(2020, 1, 1), dt.date(9999, 12, 31), None]
    rows = pa.table(
        {"day": days, "at": pa.array([None if day is None else dt.datetime(*day.timetuple()[:3]) for day in days])}
    )
    for name, middle in (("day", dt.date(2020, 1, 1)), ("at", dt.datetime(2020, 1, 1))):
        counted = open_table(rows).frequencies([name], bins={name: [-math.inf, middle, math.inf]})
        assert dict(zip(counted.codes[:, 0].tolist(), counted.weights.tolist(), strict=True)) == {0: 1, 1: 2, 2: 1}


@pytest.mark.parametrize(
    ("options", "error", "fix"),
    [
        ({"columns": "age"}, ParameterTypeError, r'write \["age"\]'),
        ({"columns": ["age", "age"]}, ParameterError, "once"),
        ({"columns": ["agee"]}, UnknownColumnError, "age, cost"),
        ({"columns": [3]}, UnknownColumnError, "age, cost"),
        ({"columns": ["sex"], "bins": {"age": [0, 1]}}, ParameterError, "add it to columns"),
        ({"columns": ["sex"], "bins": {"agee": [0, 1]}}, UnknownColumnError, "age, cost"),
        ({"columns": ["age"], "bins": {"age": [0]}}, ParameterError, "at least two edges"),
        ({"columns": ["age"], "bins": {"age": [0, 0.5, 1, 1.5, 2]}}, ParameterError, "smallest first"),
        ({"columns": ["age"], "bins": {"age": [2, 1]}}, ParameterError, "smallest first"),
        ({"columns": ["age"], "bins": {"age": "0-9"}}, ParameterTypeError, "bins="),
        ({"columns": ["age"], "bins": {"age": 10}}, ParameterTypeError, "bins="),
        ({"columns": ["age"], "bins": {"age": [0, math.nan]}}, ParameterError, "finite"),
        ({"columns": ["age"], "bins": {"age": [0, 2**63]}}, ParameterError, "inf"),
        ({"columns": ["sex"], "bins": {"sex": ["a", "b"]}}, ParameterTypeError, "bin numbers"),
        ({"columns": ["seen"], "bins": {"seen": [1, 2]}}, ParameterTypeError, "date edges"),
        ({"columns": ["at"], "bins": {"at": ["x", "y"]}}, ParameterTypeError, "timestamp edges"),
        ({"columns": ["seen"], "bins": {"seen": ["2020-01-01", -math.inf]}}, ParameterError, "smallest first"),
        ({"columns": ["seen"], "bins": {"seen": [math.inf, "2020-01-01"]}}, ParameterError, "smallest first"),
        ({"columns": ["seen"], "bins": {"seen": [math.inf, math.inf]}}, ParameterError, "smallest first"),
        ({"columns": [], "measures": {"m": "age"}}, ParameterTypeError, "Sum"),
        ({"columns": [], "measures": {"m": Sum("agee")}}, UnknownColumnError, "age, cost"),
        ({"columns": [], "measures": {"m": Sum("cost")}}, MissingBoundsError, "bounds="),
        ({"columns": [], "measures": {"m": Sum("age", granularity=2)}}, MissingBoundsError, "bounds="),
        ({"columns": [], "measures": {"m": Sum("sex", bounds=(0, 1))}}, ParameterTypeError, "CountPresent"),
        ({"columns": [], "measures": {"m": SumOfSquares("age")}}, ParameterError, "coarser"),
        ({"columns": [], "measures": {"m": SumOfSquares("age", bounds=(0, 2**50))}}, ParameterError, "coarser"),
    ],
)
def test_requests_that_are_refused(table: Table, options: dict[str, Any], error: type[CloisterError], fix: str) -> None:
    with pytest.raises(error, match=f"Fix: .*{fix}"):
        table.frequencies(**options)


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"granularity": 0.3}, r"granularity=0\.25"),
        ({"granularity": 0}, "positive granularity"),
        ({"granularity": 2**61}, "2\\*\\*60"),
        ({"bounds": (0, 2**54)}, "coarser"),
        ({"bounds": (0, 2**40), "granularity": 2**-20}, "coarser"),
        ({"bounds": (5, 1)}, "smaller number first"),
        ({"bounds": (0, math.nan)}, "finite"),
    ],
)
def test_sums_that_are_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=f"Fix: .*{fix}"):
        Sum("age", **options)


def test_steps_bound_what_one_row_adds() -> None:
    assert Sum("x", bounds=(10, 20)).steps(StorageType.REAL) == (0, 20)
    assert Sum("x", bounds=(-3, -1), granularity=0.5).steps(StorageType.INTEGER) == (-6, 0)
    assert Sum("x", bounds=(-3, 2), granularity=4).steps(StorageType.INTEGER) == (-1, 1)
    assert SumOfSquares("x", bounds=(-3, 2)).steps(StorageType.INTEGER) == (0, 9)
    assert Sum("x", bounds=(0, 0.49999999999999994)).steps(StorageType.REAL) == (0, 1)
    assert CountPresent("x").steps(StorageType.TEXT) == (0, 1)
    assert SumOfSquares("x", bounds=(0, 1), granularity=0.25).unit == Fraction(1, 16)
    assert Sum("x") == Sum("x")
    assert Sum("x") != SumOfSquares("x")


def test_intervals_print_their_ends_and_date_bins_may_be_text(table: Table) -> None:
    found = table.frequencies(
        ["seen", "age"], bins={"seen": ["2019-01-01", "2020-01-01", "2021-01-01"], "age": [-math.inf, 35, math.inf]}
    )
    assert [str(item) for item in found.decoders[0]] == ["[2019-01-01, 2020-01-01)", "[2020-01-01, 2021-01-01)", "None"]
    assert [str(item) for item in found.decoders[1]] == ["[-inf, 35)", "[35, inf]", "None"]
    assert found.weights.tolist() == [2, 1, 1]
    at = table.frequencies(["at"], bins={"at": ["2020-01-01", "2020-01-01 05:00:00", "2020-01-02"]})
    assert at.codes.tolist() == [[1]]


def test_measures_without_names_are_refused(table: Table) -> None:
    with pytest.raises(ParameterTypeError, match=r"Fix: write for example measures=\{"):
        table.frequencies([], measures=[CountPresent("age")])  # type: ignore[arg-type]


def test_a_value_in_double_quotes_gets_a_hint() -> None:
    with pytest.raises(UnknownColumnError, match="single quotes: 'Male'"):
        open_table(pa.table({"sex": ["Male"]})).count('sex = "Male"')
    with pytest.raises(UnknownColumnError) as caught:
        open_table(pa.table({"sex": ["Male"]})).count("sex = Male")
    assert "single quotes" in caught.value.fix


def test_a_schema_that_contradicts_the_table_is_told() -> None:
    schema = Schema([Column(name="sex", kind=Kind.NUMERIC, bounds=(0, 5))])  # type: ignore[arg-type]
    with pytest.warns(DataWarning, match='"sex" is called numeric and stored as text'):
        open_table(pa.table({"sex": ["Male"]}), schema)


def test_days_and_times_outside_of_the_bins_are_in_the_endless_ones() -> None:
    days = [dt.date(1900, 1, 1), dt.date(2026, 1, 31), dt.date(2026, 2, 1), dt.date(9999, 12, 31), None]
    times = [None if day is None else dt.datetime(day.year, day.month, day.day, 12) for day in days]
    table = open_table(pa.table({"day": days, "time": times}))
    edges = {"day": [-math.inf, dt.date(2026, 2, 1), math.inf], "time": [-math.inf, dt.datetime(2026, 2, 1), math.inf]}
    for name, cuts in edges.items():
        counted = table.frequencies([name], bins={name: cuts})
        assert counted.dense().tolist() == [2, 2, 1]
        for wrong in ([math.inf, cuts[1]], [cuts[1], -math.inf], [-math.inf, -math.inf], [cuts[1], cuts[1]]):
            with pytest.raises(ParameterError, match="smallest first"):
                table.frequencies([name], bins={name: wrong})
