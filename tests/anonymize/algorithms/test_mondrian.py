from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cloister as cl
from cloister.anonymize._partition import Partition, verify
from cloister.anonymize.algorithms import _axes as axes
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.algorithms.mondrian import mondrian
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import all_hold, check_of, classes_of
from cloister.anonymize.regions import Regions, Values
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.errors import ParameterError
from tests.anonymize.tables import cells_of, coded

TREE = Hierarchy.taxonomy({"north": ["n1", "n2", "n3"], "south": ["s1", "s2"]})
COLUMNS = [
    Column(name="age", kind="numeric"),
    Column(name="city", hierarchy=TREE),
    Column(name="color"),
    Column(name="disease", role="sensitive"),
]
QUASI = COLUMNS[:3]
rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(20, 40)),
        st.sampled_from(["n1", "n2", "n3", "s1", "s2", None]),
        st.sampled_from(["red", "green", "blue"]),
        st.sampled_from(["flu", "cold", "cough"]),
    ),
    min_size=1,
    max_size=40,
)
models = st.lists(
    st.one_of(
        st.builds(cl.KAnonymity, k=st.integers(1, 6)),
        st.builds(cl.LDiversity, st.just("disease"), l=st.integers(1, 3)),
        st.builds(cl.TCloseness, st.just("disease"), t=st.sampled_from([0.1, 0.3, 0.6])),
    ),
    min_size=1,
    max_size=2,
)


def run(cells: CodedCells, *wanted: Any, values: Values = Values.SETS, **options: Any) -> AlgorithmOutcome:
    return mondrian(Task(cells=cells, checks=tuple(map(check_of, wanted)), values=values, options=options))


def members(partition: Partition) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each class, as leaves, sorted."""
    attributes = partition.cells.attributes
    found: list[list[tuple[Any, ...]]] = [[] for _ in range(partition.size)]
    for cell, group, count in zip(partition.line_cells, partition.groups, partition.counts, strict=True):
        codes = partition.cells.codes[cell]
        leaves = tuple(item.leaves[code] for item, code in zip(attributes, codes, strict=True))
        found[group] += [leaves] * int(count)
    return [sorted(group, key=str) for group in found]


def queue_of_one(table: Sequence[tuple[int, int]], k: int) -> list[list[tuple[int, int]]]:
    """Return Mondrian's classes, one partition at a time: numbers only, the median as an average of two."""

    def span(part: Sequence[tuple[int, int]], place: int) -> int:
        return max(row[place] for row in part) - min(row[place] for row in part)

    finished, queue = [], [list(table)]
    while queue:
        part = queue.pop(0)
        for place in sorted((0, 1), key=lambda place: -span(part, place) / (span(table, place) or 1)):
            median = np.median([row[place] for row in part])
            halves = [row for row in part if row[place] < median], [row for row in part if row[place] >= median]
            if all(len(half) >= k for half in halves):
                queue.extend(halves)
                break
        else:
            finished.append(sorted(part, key=str))
    return finished


@given(table=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=60), k=st.integers(1, 5))
def test_classes_and_their_order_are_those_of_the_one_at_a_time_algorithm(table: Any, k: int) -> None:
    cells = coded(table, [Column(name="x", kind="numeric"), Column(name="y", kind="numeric")])
    assert members(run(cells, cl.KAnonymity(k=k)).partition) == queue_of_one(table, k)


@settings(max_examples=150)
@given(
    table=rows,
    wanted=models,
    values=st.sampled_from(list(Values)),
    mode=st.sampled_from(["strict", "relaxed"]),
    split=st.sampled_from(["median", "balanced"]),
)
def test_every_class_satisfies_every_model_that_the_table_satisfies(
    table: Any, wanted: Any, values: Values, mode: str, split: str
) -> None:
    cells = coded(table, COLUMNS)
    partition = run(cells, *wanted, values=values, mode=mode, split=split).partition
    verify(partition)
    assert mode == "relaxed" or not partition.is_split
    if partition.size > 1:
        assert all_hold(tuple(map(check_of, wanted)), classes_of(partition)).all()


@given(table=rows, data=st.data(), values=st.sampled_from(list(Values)), mode=st.sampled_from(["strict", "relaxed"]))
def test_the_order_of_rows_does_not_matter(table: Any, data: Any, values: Values, mode: str) -> None:
    shuffled = data.draw(st.permutations(table))
    first, second = (
        members(run(coded(order, COLUMNS), cl.KAnonymity(k=2), values=values, mode=mode).partition)
        for order in (table, shuffled)
    )
    assert first == second


@given(table=rows, k=st.integers(1, 4))
def test_relaxed_cuts_lose_no_more_classes_than_strict_ones(table: Any, k: int) -> None:
    cells = coded([row[:3] for row in table], QUASI)
    strict, relaxed = (run(cells, cl.KAnonymity(k=k), mode=mode).partition for mode in ("strict", "relaxed"))
    assert relaxed.size >= strict.size


def test_models_that_look_inside_cells_cut_like_k_when_they_ask_for_nothing_more() -> None:
    cells = coded([(age, "n1", "red", "flu") for age in (20, 21, 21, 25, 30, 31, 40, 40)], COLUMNS)
    alone = run(cells, cl.KAnonymity(k=2)).partition
    both = run(cells, cl.KAnonymity(k=2), cl.LDiversity("disease", l=1)).partition
    assert members(alone) == members(both)


def test_a_median_that_is_the_smallest_value_is_no_cut_and_the_next_attribute_is_tried() -> None:
    table = [(1, 0), (1, 1), (1, 2), (9, 3)]
    cells = coded(table, [Column(name="x", kind="numeric"), Column(name="y", kind="numeric", weight="0.5")])
    assert members(run(cells, cl.KAnonymity(k=2)).partition) == [[(1, 0), (1, 1)], [(1, 2), (9, 3)]]


def test_balanced_cuts_try_behind_the_median_too() -> None:
    cells = coded([(1,), (1,), (1,), (5,), (9,)], [Column(name="x", kind="numeric")])
    assert members(run(cells, cl.KAnonymity(k=2)).partition) == [[(1,), (1,), (1,), (5,), (9,)]]
    assert members(run(cells, cl.KAnonymity(k=2), split="balanced").partition) == [[(1,), (1,), (1,)], [(5,), (9,)]]


def test_relaxed_cuts_deal_equal_rows_out_to_both_halves_and_say_so() -> None:
    cells = coded([(1,)] * 5 + [(2,)], [Column(name="x", kind="numeric")])
    strict, relaxed = (run(cells, cl.KAnonymity(k=3), mode=mode) for mode in ("strict", "relaxed"))
    assert members(strict.partition) == [[(1,)] * 5 + [(2,)]]
    assert members(relaxed.partition) == [[(1,)] * 3, [(1,), (1,), (2,)]]
    assert relaxed.partition.is_split
    assert "different classes" in relaxed.notes[0]
    assert not strict.notes


def test_rows_without_any_difference_are_never_cut() -> None:
    cells = coded([(1, "red")] * 20, [Column(name="x", kind="numeric"), Column(name="color")])
    assert run(cells, cl.KAnonymity(k=2), mode="relaxed").partition.size == 1


def test_names_with_a_hierarchy_are_cut_between_children_of_their_lowest_common_node() -> None:
    column = Column(name="city", hierarchy=TREE)
    cells = coded([(city,) for city in ("s1", "n1", "n2", "s2", "n3", "n1")], [column])
    for values in (Values.SETS, Values.HIERARCHY):
        partition = run(cells, cl.KAnonymity(k=2), values=values).partition
        assert members(partition)[0] == [("s1",), ("s2",)]
    assert Regions(partition=run(cells, cl.KAnonymity(k=3)).partition).labels(0).tolist() == ["*"]


def test_children_need_not_lie_together_in_the_hierarchy_file() -> None:
    mixed = Hierarchy.from_levels([("n1", "north"), ("s1", "south"), ("n2", "north"), ("s2", "south")])
    cells = coded([(city,) for city in ("n1", "n2", "s1", "s2")] * 2, [Column(name="city", hierarchy=mixed)])
    partition = run(cells, cl.KAnonymity(k=4), values=Values.HIERARCHY).partition
    assert Regions(partition=partition).labels(0).tolist() == ["north", "south"]


def test_names_without_a_hierarchy_are_cut_in_the_middle_of_their_sorted_values() -> None:
    cells = coded([(name,) for name in ("d", "a", "a", "a", "b", "c", "d")], [Column(name="x")])
    assert members(run(cells, cl.KAnonymity(k=3)).partition) == [
        [("a",), ("a",), ("a",), ("b",)],
        [("c",), ("d",), ("d",)],
    ]


def test_numbers_are_cut_at_their_hierarchy_when_it_is_what_is_released() -> None:
    ages = Column(name="age", kind="numeric", hierarchy=Hierarchy.intervals((20, 39), widths=[10]))
    cells = coded([(age,) for age in (20, 21, 22, 23, 24, 35, 36)], [ages])
    shown = [
        Regions(partition=run(cells, cl.KAnonymity(k=2), values=values).partition, values=values).labels(0).tolist()
        for values in (Values.HIERARCHY, Values.SETS)
    ]
    assert shown == [["[30, 40)", "[20, 30)", "[20, 30)"], ["[20, 22]", "[23, 24]", "[35, 36]"]]


def test_weights_decide_which_attribute_is_cut_first() -> None:
    table = [(x, y) for x in (0, 1) for y in (0, 1)] * 2

    def shown(weight: str) -> list[Any]:
        columns = [Column(name="x", kind="numeric"), Column(name="y", kind="numeric", weight=weight)]
        return members(run(coded(table, columns), cl.KAnonymity(k=4)).partition)[0]

    assert {row[0] for row in shown("0.5")} == {0}
    assert {row[1] for row in shown("2")} == {0}


def test_missing_numbers_are_wider_than_any_interval_and_cut_off_when_they_are_many() -> None:
    columns = [Column(name="x", kind="numeric"), Column(name="y", kind="numeric")]
    cells = coded([(1, 1), (2, 1), (None, 5), (None, 5)], columns)
    partition = run(cells, cl.KAnonymity(k=2)).partition
    assert members(partition) == [[(1, 1), (2, 1)], [(None, 5), (None, 5)]]
    nothing = coded([(None, 1), (None, 2)], columns)
    assert run(nothing, cl.KAnonymity(k=1)).partition.size == 2


def test_rare_values_bound_the_number_of_classes_of_two_values_each() -> None:
    table = [(place, "positive" if place % 100 == 7 else "negative") for place in range(10_000)]
    cells = cells_of(
        {"x": [place for place, _ in table], "hiv": [name for _, name in table]},
        [Column(name="x", kind="numeric")],
        quasi=["x"],
        sensitive=["hiv"],
    )
    partition = run(cells, cl.LDiversity("hiv", l=2)).partition
    assert 50 <= partition.size <= 100
    assert classes_of(partition).rows.mean() >= 100


def test_a_book_that_suppresses_age_could_have_kept_intervals() -> None:
    table = [(age, sex) for age in range(17, 91) for sex in ("Male", "Female") for _ in range(1 + (90 - age) // 12)]
    cells = coded(table, [Column(name="age", kind="numeric"), Column(name="sex")])
    regions = Regions(partition=run(cells, cl.KAnonymity(k=5)).partition, values=Values.SETS)
    assert regions.rows.min() >= 5
    assert "*" not in regions.labels(0)
    assert regions.attribute_losses()[0] < 0.05


def test_a_population_is_asked_about_what_is_shown() -> None:
    rows = {"x": [1, 2, 3, 4]}
    many = {"x": [1, 1, 2, 2, 3, 4]}
    cells = cells_of(rows, [Column(name="x", kind="numeric")], quasi=["x"], population=many)
    assert members(run(cells, cl.KMap(k=2)).partition) == [[(3,), (4,)], [(1,)], [(2,)]]
    assert run(cells, cl.KMap(k=3)).partition.size == 1


def test_distinct_values_are_counted_the_same_in_small_and_large_domains() -> None:
    ranks, starts = np.array([0, 5, 5, 3, 3, 3]), np.array([0, 3])
    assert axes._distinct(ranks, starts, 10).tolist() == axes._distinct(ranks, starts, 10**6).tolist() == [2, 1]


def test_progress_reaches_the_end() -> None:
    told: list[float] = []
    cells = coded([(x,) for x in range(16)], [Column(name="x", kind="numeric")])
    checks = (check_of(cl.KAnonymity(k=2)),)
    mondrian(Task(cells=cells, checks=checks, values=Values.SETS, progress=lambda share, what: told.append(share)))
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize(("option", "value"), [("mode", "strictest"), ("split", "mean")])
def test_unknown_options_are_refused(option: str, value: str) -> None:
    cells = coded([(1,)], [Column(name="x", kind="numeric")])
    with pytest.raises(ParameterError, match=option):
        run(cells, cl.KAnonymity(k=1), **{option: value})
