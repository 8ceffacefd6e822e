from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.anonymize.attributes import CodedAttribute, attribute_of
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.errors import HierarchyError, SchemaError

TREE = Hierarchy.taxonomy({"north": ["n1", "n2"], "south": ["s1"]})


def check_tree(attribute: CodedAttribute) -> None:
    """Raise unless levels are nested, from leaves to one root, and every node has a name."""
    size = len(attribute.leaves)
    assert attribute.ancestors[0].tolist() == list(range(size))
    assert set(attribute.ancestors[-1].tolist()) == {0}
    for below, above in zip(attribute.ancestors, attribute.ancestors[1:], strict=False):
        assert len(set(zip(below.tolist(), above.tolist(), strict=True))) == len(set(below.tolist()))
    for codes, names in zip(attribute.ancestors, attribute.labels, strict=True):
        assert set(codes.tolist()) == set(range(len(names)))
    assert [int(counts.sum()) for counts in attribute.leaf_counts] == [size] * len(attribute.labels)


def test_a_hierarchy_gives_the_levels() -> None:
    attribute, codes = attribute_of(Column(name="city", hierarchy=TREE), ["n1", "s1"])
    check_tree(attribute)
    assert attribute.has_hierarchy
    assert attribute.leaves == ("n1", "n2", "s1")
    assert attribute.labels == (("n1", "n2", "s1"), ("north", "south"), ("*",))
    assert codes.tolist() == [0, 2]
    assert (attribute.height, attribute.size(1)) == (2, 2)
    assert not attribute.is_ordered
    assert not attribute.is_numeric
    assert [losses.tolist() for losses in attribute.node_losses] == [[0, 0, 0], [0.5, 0], [1]]
    assert attribute.leaf_losses.tolist() == [[0, 0, 0], [0.5, 0.5, 0], [1, 1, 1]]
    assert attribute.meeting_levels.tolist() == [[0, 1, 2], [1, 0, 2], [2, 2, 0]]


def test_a_missing_value_is_a_leaf_of_its_own_that_meets_others_at_the_root() -> None:
    attribute, codes = attribute_of(Column(name="city", hierarchy=TREE), ["n1", None])
    check_tree(attribute)
    assert attribute.has_missing
    assert attribute.leaves[-1] is None
    assert codes.tolist() == [0, 3]
    assert attribute.labels == (("n1", "n2", "s1", None), ("north", "south", None), ("*",))
    assert attribute.meeting_levels[3].tolist() == [2, 2, 2, 0]


def test_worked_losses_of_workclass_and_age() -> None:
    tree = {
        "Government": ["State-gov", "Local-gov", "Federal-gov"],
        "Private": [],
        "Self-employed": ["inc", "not-inc"],
        "Unemployed": ["without-pay", "never-worked"],
    }
    workclass, _ = attribute_of(Column(name="workclass", hierarchy=Hierarchy.taxonomy(tree)), ["inc"])
    losses = dict(zip(workclass.labels[1], workclass.node_losses[1], strict=True))
    assert losses == pytest.approx({"Government": 2 / 7, "Private": 0, "Self-employed": 1 / 7, "Unemployed": 1 / 7})
    age, _ = attribute_of(Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((30, 39), widths=[5])), [30])
    assert age.node_losses[1].tolist() == pytest.approx([4 / 9, 4 / 9])


def test_numbers_with_a_hierarchy_are_in_the_order_of_the_scale() -> None:
    shuffled = Hierarchy.from_levels([("10", "high"), ("9", "low"), ("8", "low")])
    attribute, codes = attribute_of(Column(name="x", kind="numeric", hierarchy=shuffled), [8, 10])
    check_tree(attribute)
    assert attribute.leaves == ("8", "9", "10")
    assert codes.tolist() == [0, 2]
    assert attribute.is_numeric
    assert attribute.positions is not None
    assert attribute.positions.tolist() == [0, 1, 2]
    assert attribute.span == 2


def test_intervals_as_leaves_are_in_the_order_of_their_lower_ends_and_have_no_mean() -> None:
    bands = Hierarchy.from_levels([("[10, 20)", "*"), ("[0, 10)", "*"), ("<0", "*")])
    attribute, _ = attribute_of(Column(name="x", kind="numeric", hierarchy=bands), [5])
    assert attribute.leaves == ("<0", "[0, 10)", "[10, 20)")
    assert not attribute.is_numeric


def test_leaves_that_are_no_numbers_stay_as_the_hierarchy_lists_them() -> None:
    odd = Hierarchy.from_levels([("many", "*"), ("few", "*")])
    attribute, _ = attribute_of(Column(name="x", kind="numeric", hierarchy=odd), ["few"])
    assert attribute.leaves == ("many", "few")


def test_ordinal_leaves_follow_the_declared_categories() -> None:
    column = Column(
        name="size",
        kind="ordinal",
        categories=("s", "m", "l"),
        hierarchy=Hierarchy.from_levels([("l", "big"), ("m", "big"), ("s", "small")]),
    )
    attribute, codes = attribute_of(column, ["l"])
    assert attribute.leaves == ("s", "m", "l")
    assert codes.tolist() == [2]


def test_dates_with_a_hierarchy_are_in_their_order() -> None:
    column = Column(name="day", kind="datetime", hierarchy=Hierarchy.dates("2024-01-30", "2024-02-02"))
    attribute, codes = attribute_of(column, [dt.date(2024, 2, 1)])
    check_tree(attribute)
    assert attribute.leaves[0] == "2024-01-30"
    assert codes.tolist() == [2]


def test_values_outside_a_hierarchy_are_refused_without_being_named() -> None:
    with pytest.raises(HierarchyError, match="uncovered") as caught:
        attribute_of(Column(name="city", hierarchy=TREE), ["n1", "west"])
    assert "west" not in str(caught.value)


def test_a_patient_of_24_does_not_fit_25_to_49() -> None:
    ages = Hierarchy.from_levels([(str(age), "25-49") for age in range(25, 50)])
    with pytest.raises(HierarchyError, match='"age"'):
        attribute_of(Column(name="age", kind="numeric", hierarchy=ages), [24, 25, 49])


def test_names_without_a_hierarchy_have_the_root_above_them() -> None:
    attribute, codes = attribute_of(Column(name="color"), ["blue", "red", None])
    check_tree(attribute)
    assert attribute.labels == (("blue", "red", None), ("*",))
    assert codes.tolist() == [0, 1, 2]
    assert attribute.positions is None
    assert attribute.span == 0


def test_declared_categories_count_even_if_they_do_not_occur() -> None:
    attribute, codes = attribute_of(Column(name="color", categories=("red", "green", "blue")), ["blue"])
    assert attribute.leaves == ("red", "green", "blue")
    assert codes.tolist() == [2]


def test_guessed_categories_do_not_count() -> None:
    column = Column(name="color", categories=("red", "green"), guessed=frozenset({"categories"}))
    assert attribute_of(column, ["blue"])[0].leaves == ("blue",)


def test_values_outside_declared_categories_are_refused_without_being_named() -> None:
    with pytest.raises(SchemaError, match="with_categories") as caught:
        attribute_of(Column(name="color", categories=("red",)), ["blue"])
    assert "blue" not in str(caught.value)


def test_declared_numbers_are_sorted() -> None:
    attribute, _ = attribute_of(Column(name="x", kind="numeric", categories=(10, 9)), [9])
    assert attribute.leaves == (9, 10)


@given(numbers=st.lists(st.integers(-50, 50), min_size=1, max_size=60, unique=True), missing=st.booleans())
def test_a_scale_without_a_hierarchy_has_nested_intervals(numbers: list[int], missing: bool) -> None:
    values: list[Any] = sorted(numbers) + ([None] if missing else [])
    attribute, codes = attribute_of(Column(name="x", kind="numeric"), values)
    check_tree(attribute)
    assert codes.tolist() == list(range(len(values)))
    for codes_of_level in attribute.ancestors[1:-1]:
        known = codes_of_level[: len(numbers)]
        assert (np.diff(known) >= 0).all()
    sizes = [attribute.size(level) for level in range(attribute.height + 1)]
    assert all(above < below for below, above in pairwise(sizes)) or len(values) == 1


def test_intervals_of_a_scale_name_their_ends() -> None:
    attribute, _ = attribute_of(Column(name="x", kind="numeric"), [0, 1, 2, 10])
    assert attribute.labels[-2] == ("[0, 2]", "10")


def test_the_span_is_that_of_the_data_or_of_wider_public_bounds() -> None:
    def span(**facts: Any) -> float:
        return attribute_of(Column(name="x", kind="numeric", **facts), [10, 20])[0].span

    assert span() == 10
    assert span(bounds=(0, 100)) == 100
    assert span(bounds=(15, 16)) == 10
    assert span(bounds=(0, 100), guessed=frozenset({"bounds"})) == 10
    assert attribute_of(Column(name="x", kind="numeric"), [None])[0].span == 0


def test_dates_and_times_have_places_on_a_scale_of_days() -> None:
    days, _ = attribute_of(Column(name="x", kind="datetime"), [dt.date(2024, 1, 1), dt.date(2024, 1, 31)])
    times, _ = attribute_of(
        Column(name="x", kind="datetime"),
        [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 12)],
    )
    assert days.span == 30
    assert times.span == pytest.approx(0.5)


def test_ordinal_text_and_truths_have_ranks() -> None:
    text, _ = attribute_of(Column(name="x", kind="ordinal", categories=("low", "mid", "high")), ["low"])
    assert text.positions is not None
    assert text.positions.tolist() == [0, 1, 2]
    truths, _ = attribute_of(Column(name="x", kind="ordinal"), [False, True])
    assert truths.span == 1


def test_weights_are_those_of_the_column_until_changed() -> None:
    attribute, _ = attribute_of(Column(name="x", weight="0.25"), ["a"])
    assert attribute.weight == 0.25
    assert attribute.with_weight(2.0).weight == 2


def test_passing_looks_show_no_values() -> None:
    attribute, _ = attribute_of(Column(name="x"), ["secret"])
    assert repr(attribute) == "Attribute('x', levels=2)"
