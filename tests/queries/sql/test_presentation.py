"""Post-processing of noisy answers: formulas with honest margins, HAVING, ORDER BY and LIMIT."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pytest

from cloister.queries._uncertainty import Exactly, Linear, Noise, Unknown
from cloister.queries.answers import Estimate
from cloister.queries.catalog import Catalog
from cloister.queries.sql import Compiled, compile_sql


def noisy(values: list[float], scale: float = 1.0) -> Estimate:
    error = Linear((Noise("laplace", scale),), len(values)) if scale else Exactly(len(values))
    return Estimate(name="m", values=np.array(values, dtype=float), error=error)


def present(compiled: Compiled, keys: list[list[Any]], aggregates: list[Estimate]) -> dict[str, Estimate]:
    columns = [Estimate.key(key.name, values) for key, values in zip(compiled.question.keys, keys, strict=True)]
    assert len(aggregates) == len(compiled.question.aggregates)
    return {column.name: column for column in compiled.presentation.present(columns, aggregates)}


def shown(compiled: Compiled, keys: list[list[Any]], aggregates: list[Estimate], name: str) -> list[Any]:
    return present(compiled, keys, aggregates)[name].values.tolist()


def formula(rows: Catalog, text: str, *values: Estimate) -> Estimate:
    return present(compile_sql(f"SELECT {text} AS x FROM data", rows), [], list(values))["x"]


def test_plain_columns_keep_their_error_and_get_their_alias(rows: Catalog) -> None:
    compiled = compile_sql("SELECT sex AS s, COUNT(*) AS n FROM data GROUP BY sex", rows)
    columns = present(compiled, [["F", "M"]], [noisy([5, 6])])
    assert list(columns) == ["s", "n"]
    assert columns["s"].is_key
    assert columns["n"].margins().tolist() == noisy([5, 6]).margins().tolist()


def test_aggregates_are_asked_once(rows: Catalog) -> None:
    query = "SELECT COUNT(*) AS a, count( * ) AS b, SUM(age) / COUNT(*) AS c FROM data HAVING COUNT(*) > 1 "
    query += "ORDER BY SUM(AGE)"
    assert len(compile_sql(query, rows).question.aggregates) == 2


def test_output_columns_without_a_name_are_called_by_their_text(rows: Catalog) -> None:
    compiled = compile_sql("SELECT COUNT(*), COUNT(*), sex FROM data GROUP BY sex", rows)
    assert [output.name for output in compiled.presentation.outputs] == ["COUNT(*)", "COUNT(*)_2", "sex"]


@pytest.mark.parametrize(
    ("text", "value", "margin"),
    [
        ("COUNT(*) + 1", 11, 3),
        ("2 * COUNT(*)", 20, 6),
        ("-COUNT(*)", -10, 3),
        ("1 - COUNT(*)", -9, 3),
        ("COUNT(*) / 4", 2.5, 0.75),
        ("ABS(COUNT(*) - 12)", 2, 3),
        ("ABS(COUNT(*) - 100)", 90, 3),
        ("CAST(COUNT(*) AS DOUBLE)", 10, 3),
        ("FLOOR(COUNT(*) / 4)", 2, 1),
        ("CEIL(COUNT(*) / 4)", 3, 1),
        ("ROUND(COUNT(*) / 4, 1)", 2.5, 0.8),
        ("SQRT(COUNT(*))", math.sqrt(10), math.sqrt(10) - math.sqrt(7)),
        ("LN(COUNT(*))", math.log(10), math.log(10) - math.log(7)),
        ("EXP(COUNT(*))", math.exp(10), math.exp(13) - math.exp(10)),
        ("LEAST(COUNT(*), 12)", 10, 3),
        ("GREATEST(COUNT(*), 9, 1)", 10, 3),
        ("COALESCE(COUNT(*), 0)", 10, 10),
        ("100 / COUNT(*)", 10, 100 / 7 - 10),
        ("COUNT(*) * COUNT(*)", 100, 69),
    ],
)
def test_formulas_have_the_margin_of_the_farthest_end(rows: Catalog, text: str, value: float, margin: float) -> None:
    scale = 3 / -math.log(0.05)
    column = formula(rows, text, noisy([10], scale))
    assert column.values.tolist() == pytest.approx([value])
    assert column.margins().tolist() == pytest.approx([margin])


def test_margins_of_two_noisy_numbers_hold_together(rows: Catalog) -> None:
    column = formula(rows, "SUM(age) / COUNT(*)", noisy([400], 2.0), noisy([10], 0.5))
    a, b = (-scale * math.log(0.025) for scale in (2.0, 0.5))
    assert column.margins().tolist() == pytest.approx([(400 + a) / (10 - b) - 40])


def test_a_division_by_what_could_be_zero_has_no_margin_and_does_not_fail(rows: Catalog) -> None:
    column = formula(rows, "SUM(age) / COUNT(*)", noisy([400, 400, -1]), noisy([0, 1, 50]))
    assert math.isnan(column.values[0])
    assert column.values[1] == 400
    assert column.margins()[1] == math.inf
    assert math.isfinite(column.margins()[2])


def test_functions_outside_of_their_domain_give_nan(rows: Catalog) -> None:
    assert math.isnan(formula(rows, "SQRT(SUM(age))", noisy([-4])).values[0])
    assert math.isnan(formula(rows, "LN(SUM(age))", noisy([-4])).values[0])


def test_missing_values_are_replaced(rows: Catalog) -> None:
    assert formula(rows, "COALESCE(AVG(age), 7)", noisy([math.nan])).values.tolist() == [7]
    assert math.isnan(formula(rows, "SUM(age) / NULLIF(COUNT(*), 0)", noisy([3]), noisy([0])).values[0])


def test_unknown_errors_stay_unknown(rows: Catalog) -> None:
    lost = Estimate(name="m", values=np.array([5.0]), error=Unknown(1))
    assert np.isnan(formula(rows, "MEDIAN(age) + 1", lost).margins()).all()
    assert np.isnan(formula(rows, "CASE WHEN COUNT(*) > 1 THEN 1 ELSE 0 END", noisy([5])).margins()).all()


def test_confidence_is_checked(rows: Catalog) -> None:
    with pytest.raises(ValueError, match="confidence"):
        formula(rows, "COUNT(*) + 1", noisy([5])).margins(2)


def test_constants_and_cases_can_be_shown(rows: Catalog) -> None:
    compiled = compile_sql(
        "SELECT 'all' AS who, 1.5 AS w, TRUE AS t, NULL AS x, IF(COUNT(*) > 5, 'big', 'small') AS size, "
        "CASE sex WHEN 'F' THEN 1 ELSE 2 END AS code FROM data GROUP BY sex",
        rows,
    )
    columns = present(compiled, [["F", "M"]], [noisy([9, 1])])
    assert [column.values.tolist() for column in columns.values()] == [
        ["all", "all"],
        [1.5, 1.5],
        [True, True],
        [None, None],
        ["big", "small"],
        [1.0, 2.0],
    ]


def test_keys_can_be_computed_with(rows: Catalog) -> None:
    compiled = compile_sql("SELECT age * 2 AS twice, COUNT(*) AS n FROM data GROUP BY age", rows)
    columns = present(compiled, [[1, 2, None]], [noisy([1, 1, 1])])
    assert columns["twice"].values[:2].tolist() == [2, 4]
    assert columns["twice"].margins()[:2].tolist() == [0, 0]


ORDERED = "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex "


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("", ["F", "M", "X"]),
        ("ORDER BY n", ["X", "F", "M"]),
        ("ORDER BY n DESC", ["F", "X", "M"]),
        ("ORDER BY n DESC NULLS FIRST", ["M", "F", "X"]),
        ("ORDER BY n NULLS FIRST", ["M", "X", "F"]),
        ("ORDER BY 2 DESC LIMIT 1", ["F"]),
        ("ORDER BY sex DESC LIMIT 1 OFFSET 1", ["M"]),
        ("ORDER BY COUNT(*) > 0 OR TRUE", None),
        ("ORDER BY -COUNT(*)", ["F", "X", "M"]),
        ("ORDER BY n * 0, sex DESC", ["X", "F", "M"]),
        ("HAVING n > 1", ["F"]),
        ("HAVING NOT n > 1", ["X"]),
        ("HAVING COUNT(*) IS NULL", ["M"]),
        ("HAVING n IS NOT NULL", ["F", "X"]),
        ("HAVING n BETWEEN 1 AND 5", ["F", "X"]),
        ("HAVING n IN (1, 2) OR sex = 'F'", ["F", "X"]),
        ("HAVING n < 2 AND sex <> 'F'", ["X"]),
        ("HAVING sex >= 'M'", ["M", "X"]),
        ("HAVING n <> 5 OR n = 5", ["F", "X"]),
        ("HAVING n <= 1", ["X"]),
        ("LIMIT 0", []),
        ("LIMIT 2", ["F", "M"]),
        ("OFFSET 2", ["X"]),
        ("LIMIT 99999999999999999999", ["F", "M", "X"]),
    ],
)
def test_having_order_and_limit_read_noisy_values(rows: Catalog, tail: str, expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="Fix: use COUNT"):
            compile_sql(ORDERED + tail, rows)
        return
    compiled = compile_sql(ORDERED + tail, rows)
    assert shown(compiled, [["F", "M", "X"]], [noisy([5, math.nan, 1])], "sex") == expected


def test_margins_follow_the_rows(rows: Catalog) -> None:
    compiled = compile_sql("SELECT sex, 100 / COUNT(*) AS p FROM data GROUP BY sex ORDER BY p LIMIT 1", rows)
    column = present(compiled, [["F", "M"]], [noisy([10, 50])])["p"]
    assert column.values.tolist() == [2]
    width = -math.log(0.05)
    assert column.margins().tolist() == pytest.approx([100 / (50 - width) - 2])


def test_dates_and_truth_values_are_compared_as_such(rows: Catalog) -> None:
    months = [dt.date(2020, 1, 1), dt.date(2020, 2, 1)]
    compiled = compile_sql(
        "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM data GROUP BY m HAVING m > '2020-01-15' ORDER BY m",
        rows,
    )
    assert shown(compiled, [months], [noisy([1, 2])], "m") == [dt.date(2020, 2, 1)]
    compiled = compile_sql("SELECT smoker, COUNT(*) AS n FROM data GROUP BY smoker HAVING smoker = TRUE", rows)
    assert shown(compiled, [[False, True]], [noisy([1, 2])], "smoker") == [True]


def test_an_alias_hides_a_column_in_order_by_only(rows: Catalog) -> None:
    compiled = compile_sql("SELECT sex, -COUNT(*) AS age FROM data GROUP BY sex ORDER BY age", rows)
    assert shown(compiled, [["F", "M"]], [noisy([1, 2])], "sex") == ["M", "F"]


def test_nothing_to_show_is_shown_as_nothing(rows: Catalog) -> None:
    compiled = compile_sql("SELECT sex, COUNT(*) + 1 AS n FROM data GROUP BY sex ORDER BY n", rows)
    assert shown(compiled, [[]], [noisy([])], "n") == []
