from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from cloister.data._inference import infer_schema
from cloister.data.columns import Column, Kind, Role
from cloister.data.schema import Schema
from cloister.data.values import ColumnProfile, StorageType
from cloister.errors import DataWarning, ParameterTypeError, UnconfirmedSchemaError


def profile(name: str, kind: StorageType, values: list[Any], **facts: Any) -> ColumnProfile:
    present = [value for value in values if value is not None]
    distinct = list(dict.fromkeys(present))
    return ColumnProfile(
        **{
            "name": name,
            "type": kind,
            "rows": len(values),
            "missing": len(values) - len(present),
            "distinct": len(distinct),
            "minimum": min(present, default=None),
            "maximum": max(present, default=None),
            "common": tuple(distinct[:1000]),
            **facts,
        }
    )


def infer(name: str, kind: StorageType, values: list[Any], **facts: Any) -> Column:
    return infer_schema([profile(name, kind, values, **facts)])[0]


class Example:
    def profiles(self) -> list[ColumnProfile]:
        return [
            profile("patient_id", StorageType.INTEGER, [1, 1, 2, 3]),
            profile("client_id", StorageType.INTEGER, [1, 1, 2, 3]),
            profile("age", StorageType.INTEGER, [17, 21, 34, 87]),
            profile("diagnosis", StorageType.TEXT, ["flu", "flu", "rare-disease-x", None]),
        ]


def test_everything_inferred_is_a_guess_with_its_evidence() -> None:
    schema = Schema.infer(Example())
    assert [column.role for column in schema.values()] == [
        Role.IDENTIFIER,
        Role.IDENTIFIER,
        Role.QUASI,
        Role.SENSITIVE,
    ]
    assert schema["age"].guessed == {"role", "kind", "storage", "bounds"}
    assert schema["diagnosis"].guessed == {"role", "kind", "storage", "categories"}
    assert schema["patient_id"].guessed == {"role", "kind", "storage", "subject"}
    assert schema.subject == "patient_id"
    assert all(column.evidence for column in schema.values())
    assert not any("rare" in column.evidence for column in schema.values())
    with pytest.raises(UnconfirmedSchemaError, match=r"schema\.confirm\("):
        schema.require_confirmed()


def test_identifiers_get_no_domain() -> None:
    column = infer("phone", StorageType.TEXT, ["+44 20 7946 0000", "+44 20 7946 0001"])
    assert (column.role, column.kind) == (Role.IDENTIFIER, Kind.TEXT)
    assert column.categories is None
    assert infer("patient_id", StorageType.INTEGER, [1, 2]).bounds is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (17, 87, (17, 87)),
        (12_285, 1_484_705, (12_000, 1_500_000)),
        (-1234, -1, (-1300, -1)),
        (0, 0, (0, 1)),
        (0.0123, 0.4567, ("0.012", "0.46")),
        (5, 5, (5, 6)),
        (float("nan"), 5.0, None),
        (0.0, float("inf"), None),
        (None, None, None),
    ],
)
def test_bounds_are_rounded_outward(low: Any, high: Any, expected: Any) -> None:
    column = infer("x", StorageType.REAL, [1.0], minimum=low, maximum=high)
    if expected is None:
        assert column.bounds is None
        assert "bounds" not in column.guessed
    else:
        assert column.bounds == Column(name="x", kind=Kind.NUMERIC, bounds=expected).bounds


def test_dates_are_rounded_to_years() -> None:
    days = infer("visit", StorageType.DATE, [date(2021, 5, 3), date(2022, 2, 1)])
    assert (days.kind, days.bounds) == (Kind.DATETIME, (date(2021, 1, 1), date(2022, 12, 31)))
    moment = datetime(2021, 5, 3, 12, tzinfo=UTC)
    times = infer("visit", StorageType.TIMESTAMP, [moment])
    assert times.bounds == (datetime(2021, 1, 1, tzinfo=UTC), datetime(2021, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
    assert infer("visit", StorageType.DATE, [], minimum="x", maximum="y").bounds is None


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("birth_date", Role.QUASI),
        ("zip", Role.QUASI),
        ("Sex", Role.QUASI),
        ("race", Role.QUASI),
        ("nationality", Role.QUASI),
        ("disease", Role.SENSITIVE),
        ("monthly_salary", Role.SENSITIVE),
        ("religion", Role.SENSITIVE),
        ("something", Role.QUASI),
    ],
)
def test_roles_come_from_names_and_nothing_is_called_insensitive(name: str, role: Role) -> None:
    assert infer(name, StorageType.TEXT, ["a", "b", "a"]).role is role


def test_near_unique_numbers_may_be_measures() -> None:
    values = list(range(50_000, 50_100))
    assert infer("salary", StorageType.INTEGER, values).role is Role.SENSITIVE
    assert infer("whatever", StorageType.INTEGER, values).role is Role.IDENTIFIER


@pytest.mark.parametrize(
    ("name", "kind", "values", "expected"),
    [
        ("smoker", StorageType.BOOLEAN, [True], Kind.NOMINAL),
        ("zip_code", StorageType.INTEGER, [90210, 90210, 10001], Kind.NOMINAL),
        ("children", StorageType.INTEGER, [0, 1, 1, 2], Kind.NUMERIC),
        ("type", StorageType.REAL, [0.5, 0.5], Kind.NUMERIC),
        ("gps", StorageType.TEXT, ["1,2", "1,2"], Kind.LOCATION),
        ("notes", StorageType.TEXT, ["a long text of more than six words"] * 3, Kind.TEXT),
        ("hobbies", StorageType.TEXT, ["chess|go", "go|tennis", "chess|go"], Kind.SET),
        ("color", StorageType.TEXT, ["red", "blue", "red"], Kind.NOMINAL),
        ("day", StorageType.DATE, [date(2020, 1, 1)], Kind.DATETIME),
    ],
)
def test_kinds(name: str, kind: StorageType, values: list[Any], expected: Kind) -> None:
    assert infer(name, kind, values).kind is expected


def test_categories_are_proposed_only_when_all_are_known() -> None:
    assert infer("color", StorageType.TEXT, ["red", "blue", "red"]).categories == ("blue", "red")
    assert infer("color", StorageType.TEXT, ["red", "blue"], distinct=5).categories is None
    assert infer("color", StorageType.TEXT, [], distinct=0).categories is None
    many = [f"c{number}" for number in range(201)] * 2
    assert infer("color", StorageType.TEXT, many).categories is None
    assert infer("flag", StorageType.BOOLEAN, [True]).categories == (False, True)


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        (["1,5", "2,25", "1.234,5", "##"], "numbers with commas"),
        (["1,234", "5,678.50"], "numbers with commas"),
        (["31.12.2020", "01.02.2021"], "day first"),
        (["31/12/2020", "1/2/21"], "day first"),
        (["$5", "$1,234.50", ""], "currency"),
        (["12,50 €", "7 EUR"], "currency"),
    ],
)
def test_numbers_and_dates_that_are_spelled_oddly_get_a_hint(values: list[str], hint: str) -> None:
    column = infer("amount", StorageType.TEXT, values)
    assert hint in column.evidence
    assert not any(value in column.evidence for value in values if value)


def test_texts_get_no_hint() -> None:
    assert "looks like" not in infer("city", StorageType.TEXT, ["Bern", "Rome, Italy", "5"] * 2).evidence
    assert "looks like" not in infer("city", StorageType.TEXT, []).evidence


def test_a_path_is_not_a_table() -> None:
    with pytest.raises(ParameterTypeError, match=r"Fix: open it first.*open_table"):
        Schema.infer("adult.csv")  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match="open it first"):
        Schema([Column(name="a")]).check("adult.csv")  # type: ignore[arg-type]


def test_a_table_without_rows_is_told() -> None:
    class Empty:
        def profiles(self) -> list[ColumnProfile]:
            return [profile("age", StorageType.TEXT, [])]

    with pytest.warns(DataWarning, match="has no rows"):
        assert list(Schema.infer(Empty())) == ["age"]
