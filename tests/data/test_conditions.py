"""What a condition may say: nothing of it is dropped, and nothing forged or huge ends in a bare error."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError

ROWS = pa.table(
    {
        "i": [1, 2, 3, None],
        "t": ["x", "y", None, "z"],
        "d": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1), dt.date(2022, 1, 1)],
        "b": [True, False, None, True],
    }
)


@pytest.fixture(scope="module")
def table() -> Table:
    return open_table(ROWS)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("t NOT LIKE 'x'", 2),
        ("NOT t NOT LIKE 'x'", 1),
        ("i NOT IN (1)", 2),
        ("i NOT BETWEEN 1 AND 2", 1),
        ("t NOTNULL", 3),
        ("b IS NOT TRUE", 2),
        ("b IS UNKNOWN", 1),
        (f"i IN ({', '.join(map(str, range(2, 1500)))})", 2),
        (" AND ".join(["i < 3"] * 1200), 2),
        (" OR ".join(f"i = {number}" for number in range(3, 1200)), 1),
        ("NOT " * 40 + "i = 1", 1),
        ("i = 1 AND i = 1 OR i = 2 AND i = 2 OR i IS NULL", 3),
    ],
)
def test_conditions_are_taken_whole(table: Table, where: str, count: int) -> None:
    assert table.count(where) == count


@pytest.mark.parametrize(
    "where",
    [
        "i BETWEEN SYMMETRIC 2 AND 1",
        "i NOT BETWEEN SYMMETRIC 2 AND 1",
        "t ILIKE 'X'",
        "t NOT ILIKE 'X'",
        "t LIKE 'x' ESCAPE '!'",
        "t LIKE ANY ('x', 'y')",
        "t GLOB 'x'",
        "i IS DISTINCT FROM 1",
        "i IS NOT DISTINCT FROM 1",
        "i <=> 1",
        "t COLLATE NOCASE = 'X'",
        "i::text = '1'",
        "CAST(i AS DOUBLE) = 1",
        "d = TRY_CAST('2020-01-01' AS DATE)",
        "d = CAST('2020-01-01' AS TIMESTAMP(3))",
        "d = TIMESTAMP '2020-01-01' AT TIME ZONE 'UTC'",
        "LENGTH(t, 'utf8') = 1",
        "LENGTH(DISTINCT t) = 1",
        "i IN (1, NULL)",
        "i IN ()",
        "i IN UNNEST([1])",
        "i != ALL (1)",
        "t = N'x'",
        "t = 'x' 'y'",
        "t IS JSON",
        "i = 1_0",
        "i = 0x1F",
        "(i, t) = (1, 'x')",
        "x.i = 1",
        "i = - -1",
    ],
)
def test_what_would_be_dropped_or_differ_is_refused(table: Table, where: str) -> None:
    with pytest.raises(ParameterError, match="Fix: "):
        table.count(where)


ONE = exp.Literal.number(1)


@pytest.mark.parametrize(
    "where",
    [
        "NOT " * 3000 + "i = 1",
        "NOT " * 60 + "i = 1",
        "(" * 400 + "i = 1" + ")" * 400,
        "i = 1 OR (" * 100 + "i = 1" + ")" * 100,
        f"t = '{'x' * 1_000_001}'",
        exp.In(this=exp.column("i"), expressions=[ONE] * 100_001),
        # Parsing takes seconds; what is counted is the same.
        pytest.param(f"i IN ({', '.join(['1'] * 100_001)})", marks=pytest.mark.audit),
    ],
)
def test_huge_conditions_are_refused(table: Table, where: str | exp.Expression) -> None:
    with pytest.raises(ParameterError, match="too long or too deeply nested"):
        table.count(where)


def test_a_cyclic_expression_is_refused(table: Table) -> None:
    node = exp.Not(this=exp.true())
    node.args["this"] = node
    with pytest.raises(ParameterError, match="too deeply"):
        table.count(node)


NUMBER = exp.column("i")
WORD = exp.column("t")


@pytest.mark.parametrize(
    "forged",
    [
        exp.EQ(this=NUMBER, expression=exp.Literal.number("abc")),
        exp.EQ(this=NUMBER, expression=exp.Literal.number("nan")),
        exp.EQ(this=NUMBER, expression=exp.Literal.number("-inf")),
        exp.EQ(this=NUMBER, expression=exp.Neg(this=exp.Literal.number("1 OR 1=1"))),
        exp.EQ(this=NUMBER, expression=exp.Literal(this=None, is_string=False)),
        exp.EQ(this=WORD, expression=exp.Literal(this=7, is_string=True)),
        exp.EQ(this=WORD, expression=exp.Literal.string("a\0b")),
        exp.EQ(this=WORD, expression=exp.Literal.string("\ud800")),
        exp.Like(this=WORD, expression=exp.Literal.string("\ud800")),
        exp.EQ(),
        exp.And(this=exp.true()),
        exp.Between(this=NUMBER),
        exp.In(this=NUMBER, expressions=[None]),
        exp.Is(this=NUMBER),
        exp.EQ(this=exp.Column(), expression=exp.Literal.number(1)),
        exp.EQ(this=exp.Column(this=exp.Star()), expression=exp.Literal.number(1)),
        exp.EQ(this=exp.Year(), expression=exp.Literal.number(1)),
        exp.EQ(this=exp.column("d"), expression=exp.Cast(this=exp.Literal.string("2020-01-01"))),
        exp.Select(),
        exp.Expression(),
    ],
)
def test_forged_expressions_end_in_a_parameter_error(table: Table, forged: Any) -> None:
    with pytest.raises(ParameterError, match="Fix: "):
        table.count(forged)


def test_truth_values_are_rebuilt(table: Table) -> None:
    assert table.count(exp.Is(this=exp.column("b"), expression=exp.Boolean(this="yes; --"))) == 2


def test_long_conditions_are_quoted_in_part(table: Table) -> None:
    with pytest.raises(ParameterError) as caught:
        table.count(f"t = CONCAT('{'x' * 5000}')")
    assert len(str(caught.value)) < 800


def test_other_objects_are_not_conditions(table: Table) -> None:
    with pytest.raises(ParameterTypeError, match="age > 50"):
        table.count(3)  # type: ignore[arg-type]
