from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cloister as cl
from cloister.attacks.auditing.features import leaves
from cloister.mechanisms import DiscreteLaplace, Select, SparseVector

ROWS = [{"region": "north", "n": 3.5}, {"region": "south", "n": 5.5}]
EXPECTED = {
    "keys of output": "'north', 'south'",
    "order of output": "'north', 'south'",
    "keys of output['north']": "'n'",
    "output['north']['n']": 3.5,
    "keys of output['south']": "'n'",
    "output['south']['n']": 5.5,
}


@pytest.mark.parametrize("output", [5, 2.5, "yes", None, b"raw"])
def test_a_number_or_a_word_is_one_leaf(output: Any) -> None:
    assert leaves(output) == {"output": output}


def test_a_vector_has_a_leaf_per_coordinate() -> None:
    expected = {"length of output": 2, "output[0]": 1.5, "output[1]": 2.5}
    assert leaves([1.5, 2.5]) == leaves((1.5, 2.5)) == leaves(np.array([1.5, 2.5])) == expected


def test_outputs_without_floats_are_also_seen_as_a_whole() -> None:
    assert leaves((1, "a"))["the whole output"] == "(1, 'a')"
    assert "the whole output" not in leaves((1, 0.5))


def test_a_set_is_what_is_in_it() -> None:
    assert leaves({"flu", "cold"})["keys of output"] == "'cold', 'flu'"
    assert leaves({"flu"}) == {"keys of output": "'flu'", "output['flu']": True}


@pytest.mark.parametrize(
    "output",
    [
        ROWS,
        {"region": ["north", "south"], "n": [3.5, 5.5]},
        {"region": np.array(["north", "south"]), "n": np.array([3.5, 5.5])},
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        pa.Table.from_pylist(ROWS),
    ],
    ids=["rows", "columns", "arrays", "pandas", "polars", "arrow"],
)
def test_a_grouped_answer_has_a_leaf_per_group_whatever_holds_it(output: Any) -> None:
    assert leaves(output) == EXPECTED


def test_rows_in_another_order_differ_in_their_order_alone() -> None:
    assert leaves(ROWS[::-1]) == {**EXPECTED, "order of output": "'south', 'north'"}
    assert leaves([("south", 5.5), ("north", 3.5)])["output['north'][1]"] == 3.5


def test_groups_may_be_named_by_numbers_when_said_so() -> None:
    rows = [{"year": 2024, "n": 3.5}, {"year": 2025, "n": 5.5}]
    assert leaves(rows, keys=("year",))["keys of output"] == "2024, 2025"
    assert "output[0]['year']" in leaves(rows)


def test_two_columns_may_name_a_group_and_nulls_count() -> None:
    rows = [{"a": "x", "b": "y", "n": 0.5}, {"a": "x", "b": None, "n": 1.5}]
    assert leaves(rows)["keys of output"] == "('x', 'y'), ('x', None)"


def test_a_group_that_comes_twice_stays_visible() -> None:
    assert leaves([("a", 0.5), ("a", 1.5), ("a", 2.5)])["keys of output"] == "'a', ('a', 'again', 1), ('a', 'again', 2)"


def test_keys_that_cannot_be_hashed_are_read_by_what_they_show() -> None:
    assert leaves([{"tags": ["x"], "n": 1.5}], keys=("tags",))["keys of output"] == repr("['x']")


def test_keys_alone_are_an_answer() -> None:
    assert leaves([{"word": "flu"}])["keys of output"] == "'flu'"


@pytest.mark.parametrize("output", [[(1.5, 2), (3.5, 4)], [(1, 2), (3,)], [], {}, {"a": [1, 2], "b": [3]}])
def test_what_names_no_groups_is_read_by_place(output: Any) -> None:
    assert not any("again" in name for name in leaves(output))
    assert "length of output" in leaves(output) or "keys of output" in leaves(output)


def test_answers_of_a_private_table_are_read_by_their_groups() -> None:
    rows = [{"age": age, "city": "ab"[age % 2]} for age in range(10)]
    schema = cl.Schema.from_dict(
        {"columns": {"age": {"kind": "numeric", "bounds": [0, 9]}, "city": {"categories": ["a", "b"]}}}
    )
    private = cl.PrivateTable(cl.open_table(pa.Table.from_pylist(rows), schema=schema), budget=cl.Budget(epsilon=100))
    assert set(leaves(private.count(epsilon=1))) == {"output"}
    assert leaves(private.histogram("city", epsilon=1))["keys of output"] == "'a', 'b'"
    assert leaves(private.histogram("age", bins=[0, 5, 10], epsilon=1))["keys of output"].count("Interval") == 2
    assert leaves(private.top_k("city", 2, epsilon=1))["the whole output"] in {"('a', 'b')", "('b', 'a')"}


def test_a_result_without_a_value_is_read_by_its_fields() -> None:
    found = leaves(SparseVector(sensitivity=1, epsilon=1, threshold=5, positives=1).release([1, 9]))
    assert found["length of output['above']"] in {1, 2}
    assert not any("guarantee" in name or "schema" in name for name in found)


def test_results_of_mechanisms_are_read_by_their_value() -> None:
    assert isinstance(leaves(DiscreteLaplace(sensitivity=1, epsilon=1).release(5))["output"], int)
    choice = Select(candidates=("a", "b"), score_sensitivity=1, epsilon=1).release([1, 5])
    assert leaves(choice)["output"] in {"a", "b"}
