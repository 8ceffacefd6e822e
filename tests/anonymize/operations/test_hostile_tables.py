from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.operations import (
    AddNoise,
    Generalize,
    Pseudonymize,
    Recipe,
    Round,
    SuppressCells,
    SuppressRecords,
    Swap,
    TopCode,
)
from cloister.errors import DataError

KEY = bytes(range(32))


@pytest.mark.parametrize("name", ["with space", 'quo"te', "sel'ect", "ä€", "SELECT", "c0", "row", "a.b", "*", "c1"])
def test_odd_names_of_columns(name: str) -> None:
    table = pa.table({name: [1, 2, 3], "other": ["a", "b", "c"]})
    quoted = '"' + name.replace('"', '""') + '"'
    recipe = Recipe(
        (
            SuppressRecords(where=f"{quoted} = 1"),
            SuppressCells(name, where=f"{quoted} = 3"),
            Round(name, base=2),
        )
    )
    assert recipe.apply(table).to_arrow()[name].to_pylist() == [2, None]


def test_pandas_frames_with_nan_and_categories() -> None:
    frame = pd.DataFrame({"x": [1.5, np.nan, 4.0], "c": pd.Categorical(["a", None, "b"]), "t": ["é", "e\u0301", None]})
    rounded = Round("x", base=1).apply(frame)
    assert rounded.to_arrow()["x"].to_pylist() == [2.0, None, 4.0]
    tokens = Pseudonymize("c", key=KEY, domain="d").apply(frame).to_arrow()["c"].to_pylist()
    assert tokens[1] is None
    same = Pseudonymize("t", key=KEY, domain="d").apply(frame).to_arrow()["t"].to_pylist()
    assert same[0] == same[1]


def test_dictionaries_decimals_and_small_integers() -> None:
    table = pa.table(
        {
            "d": pa.array(["a", "b"]).dictionary_encode(),
            "m": pa.array([decimal.Decimal("1.25"), None]),
            "i": pa.array([1, 250], pa.uint8()),
        }
    )
    assert TopCode("i", limit=100).apply(table).to_arrow()["i"].to_pylist() == [1, 100]
    assert Round("m", base=1).apply(table).to_arrow()["m"].to_pylist() == [1.0, None]
    labels = cl.Hierarchy.taxonomy({"x": ["a", "b"]})
    assert Generalize("d", level=1, hierarchy=labels).apply(table).to_arrow()["d"].to_pylist() == ["x", "x"]


def test_chunked_columns_are_taken_whole() -> None:
    chunked = pa.chunked_array([[3, 1], [], [2]], pa.int64())
    table = pa.table({"v": chunked})
    assert sorted(Swap("v", percent=100).apply(table).to_arrow()["v"].to_pylist()) == [1, 2, 3]


def test_huge_numbers() -> None:
    table = pa.table({"v": [2**63 - 1, -(2**63)], "w": [1e308, -1e308]})
    assert TopCode("v", limit=0).apply(table).to_arrow()["v"].to_pylist() == [0, -(2**63)]
    with pytest.raises(DataError, match="smaller base"):
        Round("v", base=10).apply(table)
    with np.errstate(over="ignore"), pytest.raises(DataError, match="no spread"):
        AddNoise("w", variance_ratio=1).apply(table)


def test_columns_of_lists_are_refused_with_a_fix() -> None:
    with pytest.raises(DataError, match="convert it"):
        Round("v", base=1).apply(pa.table({"v": [1], "l": [[1, 2]]}))


def test_text_that_looks_like_sql_is_text() -> None:
    table = pa.table({"t": ["x'; DROP TABLE rows; --", "y"]})
    kept = SuppressRecords(where="t = 'y'").apply(table).to_arrow()["t"].to_pylist()
    assert kept == ["x'; DROP TABLE rows; --"]
