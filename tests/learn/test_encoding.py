from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.data.schema import Schema
from cloister.errors import (
    CloisterError,
    MissingBoundsError,
    ParameterError,
    ParameterTypeError,
    UnconfirmedSchemaError,
)
from cloister.learn._encoding import Encoding, encoding_of
from cloister.learn._features import Categorical, Numeric
from tests.learn import data


def test_bounds_are_for_all_columns_or_for_each() -> None:
    same = (Numeric("a", 0.0, 1.0), Numeric("b", 0.0, 1.0))
    assert encoding_of(["a", "b"], bounds=(0, 1)).features == same
    each = encoding_of(["a", "b"], bounds=([0, Fraction(1, 2)], np.array([1, 9])))
    assert each.features == (Numeric("a", 0.0, 1.0), Numeric("b", 0.5, 9.0))
    named = encoding_of(["b", "a"], bounds={"a": (0, 1), "b": (2, 3)}, named=True)
    assert named.features == (Numeric("b", 2.0, 3.0), Numeric("a", 0.0, 1.0))


def test_domains_are_lists_numbers_or_by_name() -> None:
    assert encoding_of(["a"], domain=[["x", "y"]]).features == (Categorical("a", ("x", "y")),)
    assert encoding_of(["a", "b"], domain=2).features == (Categorical("a", (0, 1)), Categorical("b", (0, 1)))
    mixed = encoding_of(["a", "b"], bounds={"a": (0, 1)}, domain={"b": np.array([3, 4])})
    assert mixed.features == (Numeric("a", 0.0, 1.0), Categorical("b", (3, 4)))
    assert not mixed.is_numeric


def test_a_schema_supplies_what_is_not_said() -> None:
    encoding = encoding_of(["age", "sex"], schema=data.schema())
    assert encoding.features == (Numeric("age", 0.0, 110.0), Categorical("sex", ("F", "M")))
    narrower = encoding_of(["age", "sex"], bounds={"age": (18, 65)}, schema=data.schema())
    assert narrower.features[0] == Numeric("age", 18.0, 65.0)


def test_guesses_of_a_schema_are_refused() -> None:
    guessed = Schema.infer(data.patients())
    with pytest.raises(UnconfirmedSchemaError, match="confirm"):
        encoding_of(["age"], schema=guessed, named=True)


def test_dates_of_a_schema_are_refused() -> None:
    dated = data.schema(born={"kind": "datetime", "bounds": [dt.date(1900, 1, 1), dt.date(2026, 1, 1)]})
    with pytest.raises(ParameterError, match="days since a public date"):
        encoding_of(["born"], schema=dated)


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_unknown_columns_are_refused(names: list[str]) -> None:
    with pytest.raises(MissingBoundsError, match=r"confirmed schema") as caught:
        encoding_of(names, bounds={"other": (0, 1)}, named=True)
    assert '"a"' in str(caught.value)
    with pytest.raises(MissingBoundsError):
        encoding_of(names)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": (0, 0)},
        {"bounds": (1, 0)},
        {"bounds": (0, float("nan"))},
        {"bounds": (0, float("inf"))},
        {"bounds": "01"},
        {"bounds": 5},
        {"bounds": (0, 1, 2)},
        {"bounds": ([0, 0, 0], [1, 1, 1])},
        {"bounds": {"a": (0,), "b": (0, 1)}},
        {"bounds": (-1e200, 1e200)},
        {"bounds": (1, 1 + Fraction(1, 10**30))},
        {"domain": [["x"]]},
        {"domain": [[], []]},
        {"domain": [["x", "x"], ["y", "z"]]},
    ],
)
def test_malformed_facts_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(CloisterError):
        encoding_of(["a", "b"], **wrong)


def test_matrix_has_numbers_and_indicators() -> None:
    encoding = encoding_of(["a", "b"], bounds={"a": (0, 10)}, domain={"b": ["x", "y"]})
    columns = [np.array([1.0, np.nan, 99.0]), np.array(["x", None, "z"], dtype=object)]
    assert encoding.names == ("a", "b=x", "b=y")
    assert encoding.matrix(columns).tolist() == [[1, 1, 0], [5, 0, 0], [99, 0, 0]]
    assert [end.tolist() for end in encoding.bounds] == [[0, 0, 0], [10, 1, 1]]


def test_codes_put_the_unknown_behind_the_last_value() -> None:
    encoding = encoding_of(["a"], domain=[["x", "y"]])
    assert encoding.codes([np.array(["y", "q", None, "x"], dtype=object)]).tolist() == [[1], [2], [2], [0]]


def test_texts_in_a_numeric_column_are_refused_without_quoting_them() -> None:
    encoding = encoding_of(["a"], bounds=(0, 1))
    with pytest.raises(ParameterTypeError) as caught:
        encoding.matrix([np.array(["secret-4711"], dtype=object)])
    assert "4711" not in str(caught.value)


def test_mixed_columns_are_refused_without_quoting_them() -> None:
    encoding = encoding_of(["a"], domain=[["x", "y"]])
    with pytest.raises(ParameterTypeError, match="several types") as caught:
        encoding.codes([np.array(["secret-4711", 8128], dtype=object)])
    assert "4711" not in str(caught.value)


def test_encodings_survive_json() -> None:
    encoding = encoding_of(["a", "b"], bounds={"a": (0.1, 1 / 3)}, domain={"b": ["x", "y"]})
    assert Encoding.from_dict(json.loads(json.dumps(encoding.to_dict()))) == encoding


def test_each_row_is_encoded_by_itself() -> None:
    encoding = encoding_of(["a", "b"], bounds={"a": (0, 10)}, domain={"b": ["x", "y"]})
    columns = [np.array([1.0, 2.0, 3.0]), np.array(["x", "q", "y"], dtype=object)]
    whole = encoding.matrix(columns)
    for place in range(3):
        single = encoding.matrix([column[place : place + 1] for column in columns])
        assert single.tolist() == whole[place : place + 1].tolist()
