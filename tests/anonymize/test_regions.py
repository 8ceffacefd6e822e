from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.anonymize._partition import whole
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Regions, Values
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from tests.anonymize.tables import coded, full_domain

TREE = Hierarchy.taxonomy({"north": ["n1", "n2", "n3"], "south": ["s1"]})
CITY = Column(name="city", hierarchy=TREE)
NUMBER = Column(name="x", kind="numeric")
RANK = Column(name="rank", kind="ordinal", categories=("low", "mid", "high", "top"))
NAME = Column(name="name")


def grouped(cells: CodedCells, groups: list[int], values: Values) -> Regions:
    return Regions(partition=whole(cells, np.array(groups)), values=values)


def shown(rows: list[Any], column: Column, values: Values) -> Any:
    """Return what one class of these values shows."""
    cells = coded([(row,) for row in rows], [column])
    return grouped(cells, [0] * len(cells), values).labels(0)[0]


@pytest.mark.parametrize(
    ("rows", "column", "hierarchy", "sets", "centers"),
    [
        (["n1"], CITY, "n1", "n1", "n1"),
        (["n1", "n2"], CITY, "north", "{n1, n2}", "n1"),
        (["n1", "s1", "s1"], CITY, "*", "{n1, s1}", "s1"),
        (["n1", "n2", "n3", "s1"], CITY, "*", "*", "n1"),
        ([None], CITY, None, None, None),
        (["n2", None, "n2"], CITY, "*", "{n2, missing}", "n2"),
        ([1, 2, 6], NUMBER, "*", "*", 3.0),
        ([None, None], NUMBER, None, None, None),
        ([None, 4, 8], NUMBER, "*", "*", 6.0),
        (["low", "high", "high", "mid"], RANK, "*", "[low, high]", "mid"),
        (["b", "a", "a"], NAME, "*", "*", "a"),
    ],
)
def test_a_class_is_a_node_a_set_or_a_center(
    rows: Any, column: Column, hierarchy: Any, sets: Any, centers: Any
) -> None:
    assert shown(rows, column, Values.HIERARCHY) == hierarchy
    assert shown(rows, column, Values.SETS) == sets
    assert shown(rows, column, Values.CENTERS) == centers


def test_two_classes_of_one_column() -> None:
    cells = coded([(number,) for number in (1, 2, 5, 9)], [NUMBER])
    assert grouped(cells, [0, 0, 1, 1], Values.SETS).labels(0).tolist() == ["[1, 2]", "[5, 9]"]
    assert grouped(cells, [0, 0, 1, 1], Values.CENTERS).labels(0).tolist() == [1.5, 7.0]


def test_losses_of_nodes_sets_and_intervals() -> None:
    rows = [("n1", 0, "a"), ("n2", 5, "b"), ("s1", 10, "c")]
    cells = coded(rows, [CITY, NUMBER, NAME])
    hierarchy, sets = (grouped(cells, [0, 0, 1], values) for values in (Values.HIERARCHY, Values.SETS))
    assert hierarchy.losses[0, 0] == pytest.approx(2 / 3)
    assert hierarchy.losses[0, 2] == 1
    assert sets.losses.tolist() == [[pytest.approx(1 / 3), 0.5, 0.5], [0, 0, 0]]
    assert sets.loss() == pytest.approx(2 * (1 / 3 + 0.5 + 0.5) / 3 / 3)
    assert sets.attribute_losses().tolist() == pytest.approx([2 / 9, 1 / 3, 1 / 3])
    assert sets.rows.tolist() == [2, 1]


def test_intervals_with_missing_values_lose_everything_and_missing_alone_nothing() -> None:
    cells = coded([(1,), (2,), (3,), (None,)], [NUMBER])
    assert grouped(cells, [0, 0, 1, 1], Values.SETS).losses.tolist() == [[0.5], [1]]
    assert grouped(cells, [0, 0, 0, 1], Values.SETS).losses.tolist() == [[1], [0]]


def test_losses_follow_weights() -> None:
    cells = coded([("n1", 0), ("n1", 10)], [CITY, NUMBER]).with_weights({"x": 3})
    assert grouped(cells, [0, 0], Values.SETS).loss() == pytest.approx(0.75)


def test_suppressed_rows_lose_everything() -> None:
    cells = coded([(0,), (0,), (10,), (10,)], [NUMBER])
    partition = whole(cells, np.array([0, 1])).without(np.array([False, True]))
    regions = Regions(partition=partition, values=Values.SETS)
    assert regions.loss() == 0.5
    assert regions.attribute_losses().tolist() == [0.5]


def test_a_worked_table_of_two_records_with_weights() -> None:
    work = Hierarchy.taxonomy(
        {
            "Government": ["State-gov", "Local-gov", "Federal-gov"],
            "Private": [],
            "Self-employed": ["inc", "not-inc"],
            "Unemployed": ["without-pay", "never-worked"],
        }
    )
    ages = Hierarchy.intervals((30, 39), widths=[5])
    columns = [
        Column(name="workclass", hierarchy=work, weight="0.6"),
        Column(name="age", kind="numeric", hierarchy=ages, weight="0.4"),
    ]
    cells = coded([("State-gov", 30), ("Local-gov", 34), ("Private", 30), ("Private", 39)], columns)
    private = [cells.attributes[0].leaves[code] == "Private" for code in cells.codes[:, 0]]
    regions = Regions(partition=whole(cells, np.array(private, dtype=int)))
    assert list(zip(regions.labels(0), regions.labels(1), strict=True)) == [
        ("Government", "[30, 35)"),
        ("Private", "*"),
    ]
    by_record = regions.losses @ cells.weights_of_attributes
    assert by_record.tolist() == pytest.approx([0.6 * 2 / 7 + 0.4 * 4 / 9, 0.4])
    assert by_record.sum() == pytest.approx(0.749206, abs=5e-7)


rows = st.lists(
    st.tuples(
        st.sampled_from(["n1", "n2", "n3", "s1", None]),
        st.one_of(st.none(), st.integers(0, 9)),
        st.sampled_from(["low", "mid", "high", "top"]),
    ),
    min_size=1,
    max_size=20,
)


@given(table=rows, data=st.data(), values=st.sampled_from(list(Values)))
def test_labels_tell_the_truth_and_losses_lie_between_0_and_1(table: Any, data: Any, values: Values) -> None:
    cells = coded(table, [CITY, NUMBER, RANK])
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(cells), max_size=len(cells)))
    groups = np.unique(groups, return_inverse=True)[1]
    regions = Regions(partition=whole(cells, groups), values=values)
    assert ((regions.losses >= 0) & (regions.losses <= 1)).all()
    for place in range(3):
        member = regions.membership(place)
        assert member[groups, cells.codes[:, place]].all()
        only = member.sum(axis=1) == 1
        assert (regions.losses[only, place] == 0).all()
        names = cells.attributes[place].labels[0]
        if values is not Values.CENTERS:
            shows_one = [regions.labels(place)[group] in names for group in range(regions.partition.size)]
            assert (np.array(shows_one) >= only).all()


@given(table=rows)
def test_full_domain_levels_are_those_of_every_class(table: Any) -> None:
    cells = coded(table, [CITY, NUMBER, RANK])
    levels = tuple(attribute.height for attribute in cells.attributes)
    regions = Regions(partition=full_domain(cells, levels))
    assert regions.levels.tolist() == [list(levels)]
    assert regions.labels(0).tolist() == ["*"]
    assert regions.loss() == pytest.approx(np.mean([attribute.leaf_losses[-1, 0] for attribute in cells.attributes]))


@given(table=rows, data=st.data())
def test_centers_are_means_lower_medians_and_modes(table: Any, data: Any) -> None:
    cells = coded(table, [CITY, NUMBER, RANK])
    groups = np.unique(
        data.draw(st.lists(st.integers(0, 2), min_size=len(cells), max_size=len(cells))), return_inverse=True
    )[1]
    regions = Regions(partition=whole(cells, groups), values=Values.CENTERS)
    place_of = {tuple(codes): group for codes, group in zip(cells.codes.tolist(), groups, strict=True)}
    attributes = cells.attributes
    members: list[list[Any]] = [[] for _ in range(regions.partition.size)]
    for row in table:
        codes = tuple(
            [*item.leaves].index(str(value) if place == 0 and value is not None else value)
            for place, (item, value) in enumerate(zip(attributes, row, strict=True))
        )
        members[place_of[codes]].append((codes, row))
    for group, lines in enumerate(members):
        cities = [codes[0] for codes, _ in lines]
        most = max(cities.count(code) for code in cities)
        mode = min(code for code in cities if cities.count(code) == most)
        numbers = [row[1] for _, row in lines if row[1] is not None]
        ranks = sorted(codes[2] for codes, _ in lines)
        assert regions.labels(0)[group] == attributes[0].labels[0][mode]
        assert regions.labels(1)[group] == (pytest.approx(sum(numbers) / len(numbers)) if numbers else None)
        assert regions.labels(2)[group] == attributes[2].labels[0][ranks[(len(ranks) - 1) // 2]]
