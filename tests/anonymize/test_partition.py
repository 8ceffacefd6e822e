from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.anonymize._partition import SUPPRESSED, verify, whole
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import check_of, classes_of
from cloister.anonymize.regions import Regions, Values
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.errors import InternalError
from tests.anonymize.tables import coded, full_domain

CITY = Column(name="city", hierarchy=Hierarchy.taxonomy({"north": ["n1", "n2"], "south": ["s1", "s2"]}))
AGE = Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((20, 29), widths=[5]))
people = st.lists(
    st.tuples(st.sampled_from(["n1", "n2", "s1", "s2", None]), st.integers(20, 29)), min_size=1, max_size=30
)


@given(rows=people)
def test_k_never_falls_along_an_edge_of_the_lattice(rows: Any) -> None:
    cells = coded(rows, [CITY, AGE])
    heights = [attribute.height for attribute in cells.attributes]
    k = np.array(
        [
            [classes_of(full_domain(cells, (i, j))).rows.min() for j in range(heights[1] + 1)]
            for i in range(heights[0] + 1)
        ]
    )
    assert (np.diff(k, axis=0) >= 0).all()
    assert (np.diff(k, axis=1) >= 0).all()
    assert k[-1, -1] == len(rows)


@given(rows=people, levels=st.tuples(st.integers(0, 2), st.integers(0, 3)))
def test_full_domain_classes_are_the_distinct_generalized_rows(rows: Any, levels: tuple[int, int]) -> None:
    cells = coded(rows, [CITY, AGE])
    levels = (min(levels[0], cells.attributes[0].height), min(levels[1], cells.attributes[1].height))
    partition = full_domain(cells, levels)
    verify(partition)
    regions = Regions(partition=partition)
    shown = list(zip(regions.labels(0), regions.labels(1), strict=True))
    assert len(set(shown)) == partition.size
    assert regions.rows.sum() == len(rows)
    assert not partition.is_split
    assert partition.levels == levels


def _cells() -> CodedCells:
    return coded([("n1", 20), ("n1", 20), ("n2", 21), ("s1", 22)], [CITY, AGE])


def test_classes_that_fail_are_suppressed_and_the_others_renumbered() -> None:
    partition = whole(_cells(), np.array([0, 1, 2]))
    less = partition.without(np.array([False, True, False]))
    assert less.groups.tolist() == [0, SUPPRESSED, 1]
    assert (less.size, less.suppressed) == (2, 1)
    assert less.without(np.array([True, False])).groups.tolist() == [SUPPRESSED, SUPPRESSED, 0]
    assert classes_of(less).rows.tolist() == [2, 1]
    verify(less)


def test_everything_may_be_suppressed() -> None:
    gone = whole(_cells(), np.array([0, 0, 0])).without(np.array([True]))
    verify(gone)
    assert (gone.size, gone.suppressed) == (0, 4)
    for values in Values:
        regions = Regions(partition=gone, values=values)
        assert regions.loss() == 1
        assert regions.attribute_losses().tolist() == [1, 1]
        assert regions.labels(0).tolist() == []
    assert regions.population().tolist() == []


def test_lost_invented_or_negative_rows_and_gaps_in_numbers_are_bugs() -> None:
    good = whole(_cells(), np.array([0, 1, 1]))
    verify(good)
    for changed in (
        replace(good, counts=good.counts + 1),
        replace(good, counts=np.array([3, 0, 1])),
        replace(good, records=good.records[:2], groups=good.groups[:2], counts=good.counts[:2]),
        replace(good, groups=np.array([0, 2, 2])),
    ):
        with pytest.raises(InternalError, match="lost or invented"):
            verify(changed)


def test_rows_of_a_record_may_be_in_two_classes() -> None:
    good = whole(_cells(), np.array([0, 1, 1]))
    split = replace(good, records=np.array([0, 0, 1, 2]), groups=np.array([0, 1, 1, 1]), counts=np.array([1, 1, 1, 1]))
    verify(split)
    assert split.is_split
    assert classes_of(split).rows.tolist() == [1, 3]
    assert Regions(partition=split).labels(0).tolist() == ["n1", "*"]


def test_local_recoding_loses_less_than_the_same_for_everybody() -> None:
    """Twelve patients in three classes of four; rows that a thesis does not print are made up to fit its classes."""
    zips = Column(name="zip", hierarchy=Hierarchy.masking(["90210", "90211", "90212", "90213", "07620", "33109"]))
    ages = Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((20, 50), widths=[31]))
    rows = [
        *((age, f"9021{digit}") for age, digit in zip((25, 31, 38, 45), range(4), strict=True)),
        *((age, "07620") for age in (40, 40, 45, 50)),
        *((age, "33109") for age in (24, 30, 41, 49)),
    ]
    cells = coded(rows, [ages, zips])
    everybody = full_domain(cells, (1, 1))
    place = {"9": 0, "0": 1, "3": 2}
    zip_of_cell = [cells.attributes[1].leaves[code] for code in cells.codes[:, 1]]
    local = whole(cells, np.array([place[name[0]] for name in zip_of_cell]))
    for partition in (everybody, local):
        assert check_of(cl.KAnonymity(k=4)).measure(classes_of(partition)).min() == 4
    shown = Regions(partition=local, values=Values.SETS)
    assert shown.labels(0).tolist() == ["[25, 45]", "[40, 50]", "[24, 49]"]
    assert Regions(partition=local).labels(1).tolist() == ["9021*", "07620", "33109"]
    assert shown.loss() < Regions(partition=local).loss() <= Regions(partition=everybody).loss()


def test_five_employees_have_no_pairs_of_zip_codes_below_one_digit() -> None:
    rows = [("33617",), ("33620",), ("33612",), ("33647",), ("32113",)]
    cells = coded(rows, [Column(name="zip", hierarchy=Hierarchy.masking([row[0] for row in rows]))])
    found = [classes_of(full_domain(cells, (level,))).rows.min() for level in range(6)]
    assert found == [1, 1, 1, 1, 5, 5]
    assert Regions(partition=full_domain(cells, (4,))).labels(0).tolist() == ["3****"]
    masked = full_domain(cells, (2,))
    assert sorted(Regions(partition=masked).labels(0)) == ["321**", "336**"]
    assert masked.without(classes_of(masked).rows < 2).suppressed == 1


def test_whether_a_table_is_two_anonymous_depends_on_the_role_of_race() -> None:
    rows = [("21-40", "336**", "A"), ("31-40", "34***", "B"), ("31-40", "34***", "C"), ("21-40", "336**", "A")]
    roles = [Column(name="age"), Column(name="zip"), Column(name="race", role="sensitive")]
    classes = classes_of(full_domain(coded(rows, roles), (0, 0)))
    assert check_of(cl.KAnonymity(k=2)).measure(classes).tolist() == [2, 2]
    assert check_of(cl.LDiversity("race", l=2)).measure(classes).tolist() == [1, 2]
    quasi = coded(rows, [*roles[:2], Column(name="race")])
    assert check_of(cl.KAnonymity(k=2)).measure(classes_of(full_domain(quasi, (0, 0, 0)))).tolist() == [2, 1, 1]


def test_five_records_with_one_suppressed() -> None:
    rows = [("33617", 24), ("23620", 41), ("23622", 43), ("33617", 29), ("19352", 12)]
    columns = [
        Column(name="zip", hierarchy=Hierarchy.masking([row[0] for row in rows])),
        Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((10, 49), widths=[10])),
    ]
    cells = coded(rows, columns)
    zip_of_cell = [cells.attributes[0].leaves[code] for code in cells.codes[:, 0]]
    place = {"3": 0, "2": 1, "1": 2}
    partition = whole(cells, np.array([place[name[0]] for name in zip_of_cell]))
    partition = partition.without(classes_of(partition).rows < 2)
    regions = Regions(partition=partition)
    assert list(zip(regions.labels(0), regions.labels(1), regions.rows, strict=True)) == [
        ("33617", "[20, 30)", 2),
        ("2362*", "[40, 50)", 2),
    ]
    assert partition.suppressed / cells.total == 1 / 5
