from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.assessment import assess
from cloister.anonymize.attributes import attribute_of
from cloister.anonymize.labels import read_labels
from cloister.anonymize.utility._learning import Learning, _area, _auc, _f1, encode, measure_learning
from cloister.errors import DataError, MissingExtraError, ParameterError

AGES = cl.Hierarchy.intervals((0, 99), widths=[10, 50])
SCHEMA = cl.Schema(
    [
        cl.Column(name="age", kind="numeric", hierarchy=AGES),
        cl.Column(name="town", hierarchy=cl.Hierarchy.taxonomy({"north": ["a", "b"], "south": ["c", "d"]})),
        cl.Column(name="rich", role="sensitive"),
    ]
)


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measure_learning.__kwdefaults__, "rounds", 20)


def _rows(count: int) -> dict[str, list[object]]:
    """Who is above fifty or lives in town d is rich."""
    age = [(7 * number) % 100 for number in range(count)]
    town = ["abcd"[(number // 3) % 4] for number in range(count)]
    rich = ["yes" if old > 50 or place == "d" else "no" for old, place in zip(age, town, strict=True)]
    return {"age": age, "town": town, "rich": rich}


def _learned(shown: dict[str, list[object]], *, count: int = 400) -> Learning:
    original = cl.open_table(pa.table(_rows(count)), schema=SCHEMA)
    found = assess(cl.open_table(pa.table(shown)), original=original, target="rich").utility
    assert found is not None
    assert found.learning is not None
    return found.learning


@pytest.mark.slow
def test_an_untouched_table_teaches_as_much_as_its_original() -> None:
    found = _learned(_rows(400))
    assert found.accuracy.released == found.accuracy.original > 0.95
    assert found.accuracy.difference == 0
    assert found.accuracy.interval == (0, 0)
    assert found.rows == 400
    assert "predicted in" in str(found)
    assert found.to_dict()["auc"]["released"] > 0.95


@pytest.mark.slow
def test_labels_teach_less_and_the_test_is_on_raw_rows() -> None:
    rows = _rows(400)
    shown = {**rows, "age": ["*"] * 400, "town": ["north" if town in "ab" else "south" for town in rows["town"]]}
    found = _learned(shown)
    assert found.accuracy.released < found.accuracy.original
    assert found.accuracy.interval[1] < 0
    assert found.f1.difference < 0
    assert found.auc.difference < 0
    assert found.majority < found.accuracy.original


@pytest.mark.slow
def test_suppressed_rows_are_not_trained_on_but_tested() -> None:
    rows = _rows(400)
    age = [old if number % 5 else "*" for number, old in enumerate(rows["age"])]
    town = [place if number % 5 else "*" for number, place in enumerate(rows["town"])]
    assert _learned({"age": list(map(str, age)), "town": town, "rich": rows["rich"]}).rows == 400


def test_rows_that_cannot_be_matched_are_refused() -> None:
    rows = _rows(400)
    with pytest.raises(ParameterError, match="in the order of the original"):
        _learned({name: values[:-1] for name, values in rows.items()})
    with pytest.raises(ParameterError, match="in the order of the original"):
        _learned({name: values[::-1] for name, values in rows.items()})


def test_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="choose another target"):
        _learned(_rows(20), count=20)


def test_a_quasi_identifier_is_no_target() -> None:
    original = cl.open_table(pa.table(_rows(60)), schema=SCHEMA)
    with pytest.raises(ParameterError, match="choose a column that is not a quasi-identifier"):
        assess(original, original=original, target="age")
    with pytest.raises(ParameterError, match="give original"):
        assess(original, target="rich")


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"cloister\[learn\]"):
        _learned(_rows(400))


def test_raw_values_and_labels_share_a_scale() -> None:
    """The nodes are north and south, then a, b, c and d: no label is wholly inside a, b or d."""
    attribute, _ = attribute_of(SCHEMA["town"], ["a"])
    labels, leaves = encode(read_labels(attribute, ["north", "c", "*"]))
    assert labels.tolist() == [[1, 0, 0], [0, 1, 1], [0.5, 0.5, 0.25]]
    assert leaves.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0]]


def test_a_column_that_says_nothing_has_one_feature() -> None:
    attribute, _ = attribute_of(SCHEMA["town"], ["a"])
    assert encode(read_labels(attribute, ["*"]))[0].tolist() == [[0.5]]


def test_ordered_columns_have_a_middle_and_two_ends() -> None:
    attribute, _ = attribute_of(SCHEMA["age"], [0])
    labels, leaves = encode(read_labels(attribute, ["[10, 20)", "33"]))
    assert labels == pytest.approx(np.array([[14.5, 10, 19], [33, 33, 33]]))
    assert leaves[7].tolist() == [7, 7, 7]


def test_means_are_their_own_middle() -> None:
    attribute, _ = attribute_of(cl.Column(name="x", kind="numeric"), [0, 10])
    assert encode(read_labels(attribute, [4.5]))[0].tolist() == [[4.5, 0, 0]]


def test_many_values_are_encoded_by_their_groups() -> None:
    names = {f"value {number}": [f"group {number % 3}"] for number in range(100)}
    column = cl.Column(name="x", hierarchy=cl.Hierarchy.from_levels(names))
    attribute, _ = attribute_of(column, ["value 1"])
    labels, leaves = encode(read_labels(attribute, ["value 3", "group 2", "group 1"]))
    assert labels == pytest.approx(np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0]]))
    assert leaves[5].tolist() == [0, 0, 1]


def test_scores_by_hand() -> None:
    values = np.array([0, 0, 1, 1])
    chances = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]])
    assert _f1(values, chances) == pytest.approx((2 * 1 / (2 + 1) + 2 * 2 / (2 + 3)) / 2)
    assert _auc(values, chances) == 1
    assert _area(values == 1, np.array([0.5, 0.5, 0.5, 0.5])) == 0.5
    assert _area(np.array([True]), np.array([1.0])) == 0.5
