"""Hostile tables cover what they claim, and the check sees rows that decide what shows."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pyarrow as pa
import pytest

from cloister.errors import LawViolatedError, ParameterError
from cloister.testing.hostile import (
    EXTREME_BOUNDS,
    HostileColumn,
    check_alike,
    hostile_pairs,
    observe,
)

COLUMNS = [
    HostileColumn("age", "real", low=0.0, high=110.0),
    HostileColumn("children", "integer", low=0, high=9),
    HostileColumn("sex", "text", values=("F", "M"), odd=("X",)),
]


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_pairs_differ_by_one_row() -> None:
    for pair in hostile_pairs(COLUMNS):
        first, second = rows_of(pair.first), rows_of(pair.second)
        assert abs(len(first) - len(second)) <= 1, pair
        left = list(second)
        common = [row for row in first if row in left and left.remove(row) is None]  # type: ignore[func-returns-value]
        assert max(len(first), len(second)) - len(common) == 1, pair


@pytest.mark.parametrize("kind", ["real", "integer", "text", "boolean", "date", "timestamp", "decimal"])
def test_every_odd_value_is_in_some_table(kind: str) -> None:
    column = HostileColumn("it", kind, values=tuple(HostileColumn("it", kind, low=0, high=1).hostile[1:3]))
    [pair] = [pair for pair in hostile_pairs([column, COLUMNS[0]], most=2) if "every odd row" in pair.name]
    # Arrow gives decimals back with all of their places, and without the sign of a zero.
    kept = pa.table({"it": pa.array(column.hostile, type=pair.first["it"].type, from_pandas=False)})["it"].to_pylist()
    assert {repr(value) for value in kept} <= {repr(value) for value in pair.first["it"].to_pylist()}
    assert None in kept


def test_reals_hold_what_floats_hold() -> None:
    held = [value for pair in hostile_pairs(COLUMNS) for value in pair.first["age"].to_pylist()]
    held += [value for pair in hostile_pairs(COLUMNS) for value in pair.second["age"].to_pylist()]
    assert {"nan", "inf", "-inf", "-0.0", "5e-324", "1e+308", "None"} <= set(map(repr, held))
    assert math.inf in held


def test_extreme_bounds_give_finite_ordinary_values() -> None:
    for low, high in EXTREME_BOUNDS:
        usual = HostileColumn("it", "real", low=low, high=high).usual
        assert all(low <= value <= high for value in usual)


def test_pairs_can_be_fewer_and_have_rows() -> None:
    assert [pair.name for pair in hostile_pairs(COLUMNS, most=5)] == [
        "no rows, and one",
        "every odd row, and one less",
        *(f'"{column.name}" always low, but once' for column in COLUMNS),
    ]
    assert all(pair.first.num_rows >= 3 for pair in hostile_pairs(COLUMNS, fewest_rows=3))


def test_columns_need_public_facts() -> None:
    with pytest.raises(ParameterError, match="low and high"):
        HostileColumn("age", "real")
    with pytest.raises(ParameterError, match="use one of"):
        HostileColumn("age", "complex", low=0, high=1)
    with pytest.raises(ParameterError, match="hostile_pairs"):
        check_alike(len, [])


def raises_for_a_row(table: pa.Table) -> str:
    if None in table["sex"].to_pylist():
        raise ZeroDivisionError
    return "done"


def warns_of_a_row(table: pa.Table) -> str:
    if math.inf in table["age"].to_pylist():
        warnings.warn("overflow", RuntimeWarning, stacklevel=2)
    return "done"


def ends_otherwise(table: pa.Table) -> str:
    return "done" if table.num_rows else "nothing to learn from"


@pytest.mark.parametrize("run", [raises_for_a_row, warns_of_a_row, ends_otherwise])
def test_what_rows_decide_is_found(run: Any) -> None:
    with pytest.raises(LawViolatedError, match="Rows decide what shows"):
        check_alike(run, hostile_pairs(COLUMNS))


def refuses(table: pa.Table) -> str:
    raise ParameterError("Never.", fix="nothing.")


def test_a_refusal_of_everybody_is_alike_and_said() -> None:
    report = check_alike(refuses, hostile_pairs(COLUMNS))
    assert report.refused
    assert "Never." in str(report.behavior)
    assert report.pairs == len(hostile_pairs(COLUMNS)) > 30


def test_the_same_rows_run_once() -> None:
    seen: list[int] = []
    check_alike(lambda table: seen.append(id(table)), hostile_pairs(COLUMNS))
    assert len(seen) == len(set(seen))


def test_warnings_show_once_each() -> None:
    def twice(table: pa.Table) -> None:
        for _ in range(2):
            warnings.warn("again", UserWarning, stacklevel=2)

    behavior = observe(twice, pa.table({"age": [1]}))
    assert behavior.warned == ("UserWarning: again",)
    assert "warning of" in str(behavior)
