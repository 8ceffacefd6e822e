from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import cloister as cl
from cloister.anonymize.attributes import CodedAttribute, attribute_of
from cloister.anonymize.labels import ReadLabels, leaf_numbers, read_labels
from cloister.errors import SchemaError

AGES = cl.Hierarchy.intervals((30, 39), widths=[5])
JOBS = cl.Hierarchy.taxonomy({"Art": ["Dancer", "Writer"], "Law": ["Lawyer"]})


def _attribute(
    hierarchy: cl.Hierarchy | None, values: list[Any], *, kind: str = "nominal", **facts: Any
) -> CodedAttribute:
    return attribute_of(cl.Column(name="column", kind=kind, hierarchy=hierarchy, **facts), values)[0]


def _allowed(read: ReadLabels) -> list[list[Any]]:
    return [[read.attribute.leaves[leaf] for leaf in row.nonzero()[0]] for row in read.member]


def test_names_of_the_hierarchy_are_looked_up() -> None:
    read = read_labels(_attribute(JOBS, ["Dancer"]), ["Dancer", "Art", "Law", "*"])
    assert _allowed(read) == [["Dancer"], ["Dancer", "Writer"], ["Lawyer"], ["Dancer", "Writer", "Lawyer"]]
    assert read.losses.tolist() == [0, 0.5, 0, 1]
    assert read.levels.tolist() == [0, 1, 0, 2]
    assert read.shares[1].tolist() == [0.5, 0.5, 0]


def test_sets_are_read() -> None:
    read = read_labels(_attribute(JOBS, ["Dancer"]), ["{Dancer, Lawyer}"])
    assert _allowed(read) == [["Dancer", "Lawyer"]]
    assert read.losses.tolist() == [0.5]
    assert read.levels.tolist() == [2]


def test_a_set_may_hold_missing_values() -> None:
    attribute = _attribute(None, ["a", "b", None])
    read = read_labels(attribute, ["{a, missing}", None])
    assert _allowed(read) == [["a", None], [None]]
    assert read.losses.tolist() == [0.5, 0]


def test_a_missing_cell_of_a_full_column_is_suppressed() -> None:
    read = read_labels(_attribute(None, ["a", "b"]), [None])
    assert read.losses.tolist() == [1]
    assert read.member.all()


@pytest.mark.parametrize(
    ("label", "inside", "loss"),
    [("[30, 35)", 5, 4 / 9), ("30-34", 5, 4 / 9), ("[31, 33]", 3, 2 / 9), ("<35", 5, 4 / 9), (">=38", 2, 1 / 9)],
)
def test_intervals_are_read_by_the_leaves_inside(label: str, inside: int, loss: float) -> None:
    read = read_labels(_attribute(AGES, [30], kind="numeric"), [label])
    assert read.member.sum() == inside
    assert read.losses[0] == pytest.approx(loss)


def test_intervals_without_a_hierarchy_lose_their_length() -> None:
    attribute = _attribute(None, [0, 10, 25, 100], kind="numeric", bounds=(0, 100))
    read = read_labels(attribute, ["[0, 25]", "[10, 60)", ">=25", "25"])
    assert read.losses.tolist() == [0.25, 0.5, 0.75, 0]
    assert read.numbers.tolist()[-1] == 25


def test_a_mean_is_a_point() -> None:
    read = read_labels(_attribute(None, [10, 20], kind="numeric"), [13.5])
    assert read.numbers.tolist() == [13.5]
    assert read.losses.tolist() == [0]
    assert _allowed(read) == [[10]]


def test_masked_texts_allow_what_begins_alike() -> None:
    attribute = _attribute(None, ["13053", "13068", "14853"])
    read = read_labels(attribute, ["130**", "1485*"])
    assert _allowed(read) == [["13053", "13068"], ["14853"]]
    assert read.losses.tolist() == [0.5, 0]


@pytest.mark.parametrize("label", ["Plumber", "{Dancer, Plumber}", "[1, 2]", "zz**"])
def test_a_label_that_says_nothing_is_refused_without_being_shown(label: str) -> None:
    with pytest.raises(SchemaError, match="give the hierarchy that was used") as refused:
        read_labels(_attribute(JOBS, ["Dancer"]), [label])
    assert label not in str(refused.value)


def test_a_label_may_stand_for_nobody() -> None:
    read = read_labels(_attribute(None, [10, 20], kind="numeric"), [15], unknown="nobody")
    assert not read.member.any()


def test_numbers_of_leaves() -> None:
    attribute = _attribute(cl.Hierarchy.intervals((0, 20), widths=[10], step=None), [3], kind="numeric")
    assert leaf_numbers(attribute)[0] == 5
    assert leaf_numbers(_attribute(None, [True, False])).tolist() != [1, 0]


def test_ranges_of_dates_are_read() -> None:
    days = [dt.date(2024, 1, day) for day in (1, 3, 5, 11)]
    read = read_labels(_attribute(None, days, kind="datetime"), ["[2024-01-01, 2024-01-05]", "2024-01-11"])
    assert read.member.sum(axis=1).tolist() == [3, 1]
    assert read.losses.tolist() == [0.4, 0]


def test_ranges_of_named_steps_are_read() -> None:
    steps = _attribute(None, ["low", "high"], kind="ordinal", categories=("low", "medium", "high"))
    read = read_labels(steps, ["[low, medium]"])
    assert _allowed(read) == [["low", "medium"]]
    assert read.losses.tolist() == [0.5]


def test_ranges_with_a_hierarchy_lose_by_their_leaves() -> None:
    read = read_labels(
        _attribute(cl.Hierarchy.dates("2024-01-01", "2024-01-05"), [], kind="datetime"), ["[2024-01-01, 2024-01-03]"]
    )
    assert read.losses.tolist() == [0.5]


@pytest.mark.parametrize("label", ["[high, low]", "[low, medium, high]", "[low, other]"])
def test_what_is_no_range_is_refused(label: str) -> None:
    steps = _attribute(None, ["low", "high"], kind="ordinal", categories=("low", "medium", "high"))
    with pytest.raises(SchemaError, match="is no set, interval or masked text"):
        read_labels(steps, [label])


def test_names_with_commas_are_found_in_sets() -> None:
    read = read_labels(_attribute(None, ["a", "b, c", "b", "Doe, J., Dr."]), ["{a, b, c}", "{b, Doe, J., Dr.}"])
    assert _allowed(read) == [["a", "b, c"], ["b", "Doe, J., Dr."]]
