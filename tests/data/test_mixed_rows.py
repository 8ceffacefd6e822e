from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import cloister as cl
from cloister.core.random import SeededRandomSource, integers_below
from cloister.data.mixed_rows import MixedRows, nearest_rows, number_rows, read_mixed_rows
from cloister.errors import ParameterError

CELLS = st.tuples(st.sampled_from([0.0, 1.0, 2.5, 7.0, math.nan]), st.sampled_from([0.0, 0.1, 0.3]), st.integers(0, 2))


def mixed(rows: list[tuple[float, float, int]]) -> MixedRows:
    listed = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return MixedRows(
        ("x", "y", "name"), listed[:, :2], listed[:, 2:].astype(np.int32), np.array([0.0, 0.0]), np.array([7.0, 0.3])
    )


def slow(first: MixedRows, second: MixedRows, neighbors: int, *, squared: bool) -> tuple[Any, Any]:
    """The obvious way: every pair, in double precision, sorted by distance and place."""
    here, there = first.scaled(), second.scaled()
    apart = np.abs(here[:, None] - there[None])
    both = np.isnan(here)[:, None] & np.isnan(there)[None]
    apart = np.where(both, 0.0, np.where(np.isnan(apart), 1.0, apart))
    apart = apart**2 if squared else apart
    names = (first.codes[:, None] != second.codes[None]).sum(axis=2)
    mean = np.round((apart.sum(axis=2) + names) / 3, 12)
    distances = np.sqrt(mean) if squared else mean
    places = np.argsort(distances, axis=1, kind="stable")[:, :neighbors]
    return np.take_along_axis(distances, places, axis=1), places


@given(
    st.lists(CELLS, min_size=1, max_size=8),
    st.lists(CELLS, min_size=3, max_size=40),
    st.integers(1, 3),
    st.booleans(),
)
def test_neighbors_are_those_of_the_obvious_way(
    rows: list[tuple[float, float, int]], among: list[tuple[float, float, int]], neighbors: int, squared: bool
) -> None:
    first, second = mixed(rows), mixed(among)
    distances, places = nearest_rows(first, second, neighbors=neighbors, squared=squared)
    expected, where = slow(first, second, neighbors, squared=squared)
    assert places.tolist() == where.tolist()
    assert distances == pytest.approx(expected, abs=1e-12)


def test_many_rows_with_many_names_and_near_ties() -> None:
    source = SeededRandomSource(3)
    drawn = integers_below(source, 2**20, 4 * 6_000).reshape(-1, 4)
    rows = MixedRows(
        ("x", "y", "a", "b"),
        drawn[:, :2] / 2**20,
        (drawn[:, 2:] % 700).astype(np.int32),
        np.zeros(2),
        np.ones(2),
    )
    here, there = rows.take(np.arange(100)), rows.take(np.arange(100, 6_000))
    distances, places = nearest_rows(here, there, neighbors=2)
    apart = np.abs(here.numbers[:, None] - there.numbers[None]).sum(axis=2)
    apart = np.round((apart + (here.codes[:, None] != there.codes[None]).sum(axis=2)) / 4, 12)
    expected = np.argsort(apart, axis=1, kind="stable")[:, :2]
    assert np.array_equal(places, expected)
    assert np.array_equal(distances, np.take_along_axis(apart, expected, axis=1))


def test_single_precision_does_not_decide() -> None:
    def numbers(*values: float) -> MixedRows:
        listed = np.array(values)[:, None]
        return MixedRows(("x",), listed, np.zeros((len(values), 0), np.int32), np.zeros(1), np.ones(1))

    # In single precision the first two of the others are the same number.
    distances, places = nearest_rows(numbers(0.7), numbers(0.7 + 1e-10, 0.7 + 1e-11, 0.9))
    assert places.tolist() == [[1]]
    assert distances[0, 0] == pytest.approx(1e-11, abs=1e-12)


@pytest.mark.parametrize("neighbors", [0, 4])
def test_impossible_numbers_of_neighbors_are_refused(neighbors: int) -> None:
    rows = mixed([(0.0, 0.0, 0)] * 3)
    with pytest.raises(ParameterError, match="Fix: ask for fewer neighbors"):
        nearest_rows(rows, rows, neighbors=neighbors)


def test_other_columns_are_refused() -> None:
    rows = mixed([(0.0, 0.0, 0)])
    with pytest.raises(ParameterError, match="Fix: compare rows with the same columns"):
        nearest_rows(rows.only(["x"]), rows)


def test_tables_are_read_alike() -> None:
    first = pa.table({"age": [30, None], "job": ["nurse", "clerk"], "seen": [dt.date(2024, 1, 2), dt.date(2024, 1, 1)]})
    second = pa.table({"age": [40.5], "job": ["clerk"], "seen": [dt.date(2024, 1, 3)]})
    here, there = read_mixed_rows([cl.open_table(first), cl.open_table(second)], ["job", "age", "seen"])
    assert here.columns == ("age", "seen", "job")
    assert here.column("job")[1] == there.column("job")[0] != here.column("job")[0]
    assert np.isnan(here.column("age")[1])
    assert (there.column("seen")[0] - here.column("seen")).tolist() == [1, 2]
    assert there.scaled().tolist() == [[1.0, 1.0]]
    assert "nurse" not in repr(here)


def test_numbers_that_name_things_are_names() -> None:
    table = pa.table({"zip": [10115, 10117], "age": [1, 2]})
    schema = cl.Schema.from_dict({"columns": {"zip": {"kind": "nominal"}, "age": {"kind": "numeric"}}})
    (rows,) = read_mixed_rows([cl.open_table(table, schema=schema)], ["zip", "age"], bounds={"age": (0, 4)})
    assert rows.columns == ("age", "zip")
    assert rows.scaled().tolist() == [[0.25], [0.5]]


def test_a_column_of_two_kinds_is_refused() -> None:
    tables = [cl.open_table(pa.table({"a": values})) for values in ([1, 2], ["x", "y"])]
    with pytest.raises(ParameterError, match="Fix: store the column alike"):
        read_mixed_rows(tables, ["a"])


def test_a_column_without_values_is_compared_as_missing() -> None:
    tables = [cl.open_table(pa.table({"a": pa.array([None, None], pa.float64()), "b": [1, 2]})) for _ in range(2)]
    here, there = read_mixed_rows(tables, ["a", "b"])
    assert nearest_rows(here, there)[0].tolist() == [[0.0], [0.0]]


@settings(max_examples=30)
@given(st.lists(CELLS, min_size=1, max_size=20), st.lists(CELLS, min_size=1, max_size=20))
def test_equal_rows_have_equal_numbers(
    rows: list[tuple[float, float, int]], others: list[tuple[float, float, int]]
) -> None:
    kinds = [item.tolist() for item in number_rows([mixed(rows), mixed(others)])]
    listed = [[str(row) for row in part] for part in (rows, others)]
    pairs = list(zip(kinds[0] + kinds[1], listed[0] + listed[1], strict=True))
    assert len(set(pairs)) == len({kind for kind, _ in pairs}) == len({row for _, row in pairs})


def test_numbers_at_both_ends_of_what_a_float_holds_are_scaled_alike() -> None:
    ends = np.array([[-1.7e308], [0.0], [1.7e308], [math.nan]])
    rows = MixedRows(("x",), ends, np.zeros((4, 0), np.int32), np.array([-1.7e308]), np.array([1.7e308]))
    assert rows.scaled()[:3, 0].tolist() == [0.0, 0.5, 1.0]
    assert math.isnan(rows.scaled()[3, 0])
