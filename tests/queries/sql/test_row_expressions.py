"""Row expressions are exact: the same whole numbers on every engine, on every row, and within their public bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from sqlglot import exp

from cloister.errors import UnsafeQueryError
from cloister.queries._aggregates import CountNotNull, Total
from cloister.queries._question import FixedPointNumber
from cloister.queries.catalog import Catalog
from cloister.queries.sql import compile_sql
from tests.support import engine_tables, exact_answers, expressions
from tests.support.thoroughness import examples


@dataclass(frozen=True)
class Engine:
    open: engine_tables.Opener
    examples: int


@pytest.fixture(scope="module")
def engine(any_engine: engine_tables.NamedOpener) -> Engine:
    tried = {"duckdb": examples(100, usual=14), "postgres": examples(60, usual=6), "spark": examples(10, usual=2)}
    return Engine(any_engine.open, tried.get(any_engine.name, tried["duckdb"]))


def catalog_of(engine: Engine, data: dict[str, Any]) -> Catalog:
    return Catalog(private={"data": engine.open(engine_tables.arrow_table(data), schema=expressions.SCHEMA)})


def number_of(catalog: Catalog, text: str) -> FixedPointNumber | None:
    """Return the number that SUM adds; None for one that is refused: too large, or the same in every row."""
    try:
        question = compile_sql(f"SELECT SUM({text}) FROM data", catalog).question
    except UnsafeQueryError as error:
        return _refused(error, "too large a number", "same number in every row")
    (total,) = question.aggregates
    assert isinstance(total, Total)
    return total.of


def _refused(error: UnsafeQueryError, *reasons: str) -> None:
    if not any(reason in error.problem for reason in reasons):
        raise error


def test_expressions_are_exact_on_every_row(engine: Engine) -> None:
    @settings(max_examples=engine.examples, suppress_health_check=list(HealthCheck))
    @given(expressions.tables(), st.lists(expressions.expressions(), min_size=1, max_size=8))
    def check(data: dict[str, Any], wanted: list[expressions.Expression]) -> None:
        catalog = catalog_of(engine, data)
        numbers = [(number_of(catalog, text), text, value) for text, value in wanted]
        kept = [(number, text, value) for number, text, value in numbers if number is not None]
        assume(kept)
        rows = compile_sql("SELECT COUNT(*) FROM data", catalog).question.rows
        cells = exact_answers.evaluate(rows, [exp.column("c0"), *(number.steps for number, _, _ in kept)])
        for row, (_, *found) in zip(expressions.rows_of(data), cells, strict=True):
            for steps, (number, text, value) in zip(found, kept, strict=True):
                expected = value(row)
                assert (None if steps is None else steps * number.unit) == expected, (text, row)
                assert steps is None or number.low <= steps <= number.high, (text, row)

    check()


def test_conditions_on_computed_numbers_are_exact(engine: Engine) -> None:
    @settings(max_examples=engine.examples, suppress_health_check=list(HealthCheck))
    @given(expressions.tables(), st.lists(expressions.conditions(), min_size=1, max_size=6))
    def check(data: dict[str, Any], wanted: list[expressions.Condition]) -> None:
        catalog = catalog_of(engine, data)
        kept = []
        for text, holds in wanted:
            try:
                question = compile_sql(f"SELECT COUNT(*) FILTER (WHERE {text}) FROM data", catalog).question
            except UnsafeQueryError as error:
                _refused(error, "too large a number")
                continue
            (count,) = question.aggregates
            assert isinstance(count, CountNotNull)
            kept.append((count.of, holds, text))
        assume(kept)
        cells = exact_answers.evaluate(question_rows(catalog), [exp.column("c0"), *(sql for sql, _, _ in kept)])
        for row, (_, *found) in zip(expressions.rows_of(data), cells, strict=True):
            for cell, (_, holds, text) in zip(found, kept, strict=True):
                assert (cell == 1) == (holds(row) is True), (text, row)

    check()


def question_rows(catalog: Catalog) -> Any:
    return compile_sql("SELECT COUNT(*) FROM data", catalog).question.rows


TEXTS = ["", "a", "abc", "é", "e\u0301x", "日本語テ", "🙂🙃x", "o'x", "a\\b", None, "12345"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SUBSTRING(t, 1, 2)", lambda item: item[:2]),
        ("SUBSTRING(t FROM 2 FOR 2)", lambda item: item[1:3]),
        ("SUBSTRING(t, 3)", lambda item: item[2:]),
        ("LEFT(t, 3)", lambda item: item[:3]),
        ("LEFT(t, 0)", lambda item: ""),
    ],
)
def test_parts_of_texts_are_by_code_points_everywhere(engine: Engine, text: str, part: Any) -> None:
    rows = {name: (storage, [None] * len(TEXTS)) for name, (storage, _) in expressions.VALUES.items()}
    rows["id"] = (expressions.StorageType.INTEGER, list(range(len(TEXTS))))
    rows["t"] = (expressions.StorageType.TEXT, TEXTS)
    ordered = {name: rows[name] for name in ("id", *expressions.VALUES)}
    compiled = compile_sql(f"SELECT {text} AS part, COUNT(*) AS n FROM data GROUP BY part", catalog_of(engine, ordered))
    expected: dict[str, int] = {}
    for item in TEXTS:
        if item is not None:
            expected[part(item)] = expected.get(part(item), 0) + 1
    assert {row["part"]: row["n"] for row in exact_answers.rows_of(compiled)} == expected


def test_units_are_exact_rationals() -> None:
    data = {"id": (expressions.StorageType.INTEGER, [0])} | {
        name: (storage, [None]) for name, (storage, _) in expressions.VALUES.items()
    }
    catalog = catalog_of(Engine(engine_tables.open_in_duckdb, 1), data)
    number = number_of(catalog, "i / 3 + 0.1")
    assert number is not None
    assert number.unit == Fraction(1, 30)
    assert number.bounds == (Fraction(-50, 3) + Fraction(1, 10), Fraction(70, 3) + Fraction(1, 10))
