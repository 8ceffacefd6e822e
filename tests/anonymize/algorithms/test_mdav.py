from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

import cloister as cl
from cloister.anonymize._partition import deal, verify
from cloister.anonymize.algorithms import mdav as module
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.algorithms.mdav import mdav, points_of
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import all_hold, check_of, classes_of
from cloister.anonymize.regions import Regions, Values
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.errors import ParameterError
from tests.anonymize.algorithms.test_mondrian import COLUMNS, TREE, members, models, rows
from tests.anonymize.tables import coded

NUMBER = Column(name="x", kind="numeric")


def run(cells: CodedCells, *wanted: Any, **options: Any) -> AlgorithmOutcome:
    return mdav(Task(cells=cells, checks=tuple(map(check_of, wanted)), values=Values.CENTERS, options=options))


NOBODY_LEFT_ALONE = [(None, "n1", color, "flu") for color in ("red", "green", "blue", "blue", "blue")]


@settings(max_examples=100)
@given(table=rows, k=st.integers(1, 6))
@example(table=[*NOBODY_LEFT_ALONE, (20, "n1", "red", "flu")], k=2)
@example(table=[(20, "n1", "red", "flu"), *[(None, "n1", "blue", "flu")] * 5], k=2)
def test_groups_have_from_k_to_2k_less_1_rows_unless_rows_are_alike(table: Any, k: int) -> None:
    cells = coded([row[:3] for row in table], COLUMNS[:3])
    partition = run(cells, cl.KAnonymity(k=k)).partition
    verify(partition)
    if len(table) >= k:
        for group in members(partition):
            assert len(group) >= k
            assert len(group) < 2 * k or len(set(group)) == 1


@settings(max_examples=50)
@given(table=rows, wanted=models)
def test_other_models_hold_after_merging(table: Any, wanted: Any) -> None:
    cells = coded(table, COLUMNS)
    partition = run(cells, *wanted).partition
    verify(partition)
    if partition.size > 1:
        assert all_hold(tuple(map(check_of, wanted)), classes_of(partition, values=Values.CENTERS)).all()


@given(table=rows, data=st.data())
def test_the_order_of_rows_does_not_matter(table: Any, data: Any) -> None:
    first, second = (
        members(run(coded(order, COLUMNS), cl.KAnonymity(k=3)).partition)
        for order in (table, data.draw(st.permutations(table)))
    )
    assert first == second


@given(numbers=st.lists(st.integers(0, 10**6), min_size=1, max_size=40, unique=True), k=st.integers(1, 5))
def test_different_numbers_are_grouped_as_by_the_plain_algorithm(numbers: list[int], k: int) -> None:
    partition = run(coded([(number,) for number in numbers], [NUMBER]), cl.KAnonymity(k=k)).partition
    expected = [sorted(group, key=str) for group in plain(numbers, k)]
    assert [[row[0] for row in group] for group in members(partition)] == expected


def plain(numbers: list[int], k: int) -> list[list[int]]:
    """Return the groups of MDAV on different numbers, one step at a time; ties are not what is tested."""
    groups, left = [], sorted(numbers)

    def ranked(point: Fraction) -> list[int]:
        distances = [abs(number - point) for number in left]
        assume(len(set(distances)) == len(distances))
        return sorted(left, key=lambda number: abs(number - point))

    def group(point: int) -> None:
        nearest = ranked(Fraction(point))[:k]
        groups.append(nearest)
        for number in nearest:
            left.remove(number)

    def center() -> Fraction:
        return Fraction(sum(left), len(left))

    while len(left) >= 3 * k:
        start = ranked(center())[-1]
        group(start)
        group(ranked(Fraction(start))[-1])
    if len(left) >= 2 * k:
        group(ranked(center())[-1])
    return [*groups, left] if left else groups


def test_rows_that_are_alike_are_a_group_of_their_own() -> None:
    cells = coded([(0,)] * 7 + [(9,), (10,), (11,), (30,), (31,), (32,)], [NUMBER])
    sizes = Counter(len(group) for group in members(run(cells, cl.KAnonymity(k=3)).partition))
    assert sizes == {7: 1, 3: 2}


def test_rows_of_one_kind_may_be_in_two_groups() -> None:
    cells = coded([(1,), (2,), (2,), (2,), (2,), (2,), (9,), (9,)], [NUMBER])
    partition = run(cells, cl.KAnonymity(k=4)).partition
    assert members(partition) == [[(2,), (2,), (9,), (9,)], [(1,), (2,), (2,), (2,)]]
    assert partition.is_split


def test_blocks_keep_groups_apart_and_are_told() -> None:
    cells = coded([(number,) for number in range(100)], [NUMBER])
    outcome = run(cells, cl.KAnonymity(k=3), block_size=20)
    assert outcome.facts["blocks"] == 4
    assert "4 blocks" in outcome.notes[0]
    assert {min(len(group) for group in members(outcome.partition))} == {3}
    assert not run(cells, cl.KAnonymity(k=3)).notes


def test_large_tables_are_cut_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 50)
    monkeypatch.setattr(module, "_BLOCK", 25)
    cells = coded([(number,) for number in range(100)], [NUMBER])
    assert run(cells, cl.KAnonymity(k=3)).facts["blocks"] == 4


@pytest.mark.parametrize("size", [0, -1, "many"])
def test_odd_block_sizes_are_refused(size: Any) -> None:
    with pytest.raises((ParameterError, TypeError), match="block_size"):
        run(coded([(1,)], [NUMBER]), cl.KAnonymity(k=1), block_size=size)


def test_a_table_smaller_than_k_is_one_group() -> None:
    assert run(coded([(1,), (2,)], [NUMBER]), cl.KAnonymity(k=5)).partition.size == 1


def test_distances_are_standardized_hierarchical_or_all_or_nothing_and_weighted() -> None:
    table = [(0, "n1", "red"), (2, "n2", "red"), (4, "s1", "blue"), (None, None, "red")]
    columns = [NUMBER, Column(name="city", hierarchy=TREE, weight=2), Column(name="color", weight="0.5")]
    points = points_of(coded(table, columns))
    deviation = np.sqrt(8 / 3)
    assert points.distances(points.at(0)).tolist() == pytest.approx(
        [
            0,
            (2 / deviation) ** 2 + 2 * (2 / 5) ** 2,
            (4 / deviation) ** 2 + 2 + 0.5,
            (2 / deviation) ** 2 + 1 + 2,
        ]
    )


def test_centers_are_means_and_most_frequent_values() -> None:
    table = [(0, "a"), (0, "b"), (6, "b")]
    points = points_of(coded(table, [Column(name="x", kind="numeric"), Column(name="name")]))
    means, modes = points.center(np.array([1, 1, 1]))
    assert means.tolist() == pytest.approx([0])
    assert modes.tolist() == [1]


def test_columns_without_any_known_number_have_no_distance() -> None:
    points = points_of(coded([(None, "a"), (None, "b")], [NUMBER, Column(name="name")]))
    assert points.distances(points.at(0)).tolist() == [0, 1]


def test_failing_groups_join_the_nearest_ones() -> None:
    sensitive = Column(name="s", role="sensitive")
    table = [(0, "x"), (1, "x"), (2, "y"), (3, "x"), (100, "x"), (101, "y"), (102, "x"), (103, "y")]
    partition = run(coded(table, [NUMBER, sensitive]), cl.KAnonymity(k=2), cl.LDiversity("s", l=2)).partition
    assert members(partition) == [[(0,), (1,), (2,), (3,)], [(102,), (103,)], [(100,), (101,)]]


def test_what_no_merge_can_satisfy_ends_as_one_class() -> None:
    sensitive = Column(name="s", role="sensitive")
    table = [(number, "x") for number in range(9)]
    assert run(coded(table, [NUMBER, sensitive]), cl.LDiversity("s", l=2)).partition.size == 1


@given(data=st.data(), table=rows)
def test_dealing_keeps_every_row_and_every_count(data: Any, table: Any) -> None:
    cells = coded(table, COLUMNS)
    owners, groups, counts = [], [], []
    for cell, weight in enumerate(cells.weights):
        left, group = int(weight), 0
        while left:
            taken = data.draw(st.integers(1, left))
            owners.append(cell)
            groups.append(group)
            counts.append(taken)
            left, group = left - taken, group + 1
    partition = deal(cells, owners=np.array(owners), groups=np.array(groups), counts=np.array(counts))
    verify(partition)
    found: Counter[tuple[int, int]] = Counter()
    for cell, group, count in zip(partition.line_cells, partition.groups, partition.counts, strict=True):
        found[int(cell), int(group)] += int(count)
    assert found == dict(zip(zip(owners, groups, strict=True), counts, strict=True))


def test_numbers_with_a_hierarchy_are_numbers_still() -> None:
    column = Column(name="x", kind="numeric", hierarchy=Hierarchy.intervals((0, 9), widths=[5]))
    cells = coded([(number,) for number in range(10)], [column])
    partition = run(cells, cl.KAnonymity(k=5)).partition
    assert sorted(Regions(partition=partition, values=Values.CENTERS).labels(0)) == [2.0, 7.0]
