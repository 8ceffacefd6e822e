from __future__ import annotations

import csv
import time
import tomllib
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.data.hierarchy import Hierarchy, Node
from cloister.errors import DataWarning, HierarchyError, ParameterError, ParameterTypeError

GOLDEN: dict[str, Any] = tomllib.loads(
    (Path(__file__).parents[1] / "golden" / "data" / "hierarchies.toml").read_text("utf-8")
)
ADULT = (
    "age",
    "education",
    "marital-status",
    "native-country",
    "occupation",
    "race",
    "salary-class",
    "sex",
    "workclass",
)


@pytest.fixture
def jobs() -> Hierarchy:
    return Hierarchy.taxonomy({"Public": {"State": ["teacher", "judge"], "City": ["clerk"]}, "Private": ["cook"]})


def sizes(hierarchy: Hierarchy) -> list[int]:
    return [len(labels) for labels in hierarchy.levels]


def test_golden_workclass_has_8_leaves() -> None:
    golden = GOLDEN["workclass"]
    hierarchy = Hierarchy.taxonomy(golden["tree"])
    assert len(hierarchy.leaves) == golden["leaves"]
    assert sizes(hierarchy) == golden["level_sizes"]
    assert {name: hierarchy.parent(name) for name in golden["parents"]} == golden["parents"]


def test_golden_age_has_10_leaves() -> None:
    golden = GOLDEN["age"]
    hierarchy = Hierarchy.intervals(golden["bounds"], widths=golden["widths"])
    assert len(hierarchy.leaves) == golden["leaves"]
    assert sizes(hierarchy) == golden["level_sizes"]
    assert {age: hierarchy.generalize(int(age), level=1) for age in golden["groups"]} == golden["groups"]
    assert hierarchy.levels[2] == ("[30, 40)",)


def test_golden_masking_hides_the_last_digit_first() -> None:
    golden = GOLDEN["zip"]
    hierarchy = Hierarchy.masking([golden["value"], "99999"])
    assert [hierarchy.generalize(golden["value"], level=level) for level in range(6)] == golden["path"]


def test_golden_dates() -> None:
    golden = GOLDEN["dates"]
    hierarchy = Hierarchy.dates("2023-01-01", date(2025, 1, 1))
    assert [hierarchy.generalize(golden["day"], level=level) for level in range(6)] == golden["path"]
    assert hierarchy.height == 5


def test_golden_a_value_outside_its_interval_is_refused() -> None:
    golden = GOLDEN["patients"]
    with pytest.raises(HierarchyError, match=r"under an interval that contains it") as caught:
        Hierarchy.from_levels([[age, golden["interval"], "*"] for age in golden["ages"]])
    assert f'"{golden["outside"]}" lies outside' in caught.value.problem
    with pytest.raises(HierarchyError, match=r"hierarchy\.uncovered\(values\)"):
        Hierarchy.intervals((25, 49), widths=[25]).generalize(golden["ages"], level=1)


@pytest.mark.parametrize("rows", GOLDEN["overlap"]["rows"])
def test_golden_overlapping_intervals_are_refused(rows: list[list[str]]) -> None:
    with pytest.raises(HierarchyError, match=r"\[20, 30\) and \[30, 40\)"):
        Hierarchy.from_levels(rows)


@pytest.mark.parametrize("name", ADULT)
def test_the_adult_hierarchies_cover_the_adult_data(name: str, shared_data: Path) -> None:
    path = shared_data / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv"
    if name == "age":
        with pytest.warns(DataWarning, match="renamed after them"):
            hierarchy = Hierarchy.read_csv(path)
    else:
        hierarchy = Hierarchy.read_csv(path)
    with (shared_data / "adult" / "adult_complete_9.csv").open(newline="") as source:
        values = [row[name] for row in csv.DictReader(source)]
    hierarchy.validate(values)
    assert hierarchy.covers(values)
    assert set(hierarchy.generalize(values, level=hierarchy.height)) == {"*"}
    assert hierarchy.levels[-1] == ("*",)


def test_the_published_age_file_keeps_its_tree_and_gets_true_names(shared_data: Path) -> None:
    path = shared_data / "adult" / "hierarchies" / "adult_hierarchy_age.csv"
    with pytest.warns(DataWarning):
        hierarchy = Hierarchy.read_csv(path)
    assert sizes(hierarchy) == [100, 20, 10, 5, 1]
    assert hierarchy.generalize(25, level=1) == "21-25"
    assert hierarchy.generalize(100, level=3) == "81-100"
    with pytest.raises(HierarchyError, match='"5" lies outside "0-4"'):
        Hierarchy.read_csv(path, strict=True)


def test_levels_and_codes_agree(jobs: Hierarchy) -> None:
    assert jobs.height == 3
    assert jobs.levels == (
        ("teacher", "judge", "clerk", "cook"),
        ("State", "City", "Private"),
        ("Public", "Private"),
        ("*",),
    )
    for level in range(4):
        names = [jobs.levels[level][code] for code in jobs.codes_at(level)]
        assert names == [row[level] for row in jobs.rows()]


def test_short_branches_are_padded_by_repeating_the_name_above() -> None:
    hierarchy = Hierarchy.from_levels([["a", "b", "c", "*"], ["d", "e", "*"], ["f", "*"], ["g"]])
    assert hierarchy.rows() == [
        ("a", "b", "c", "*"),
        ("d", "e", "e", "*"),
        ("f", "f", "f", "*"),
        ("g", "g", "g", "*"),
    ]


def test_the_root_is_added_where_it_is_missing() -> None:
    assert Hierarchy.from_levels([["a", "x"], ["b", "y"], ["c"]]).rows()[2] == ("c", "c", "*")
    assert Hierarchy.from_levels([["a"], ["b"]]).levels == (("a", "b"), ("*",))
    assert Hierarchy.from_levels([["*"]]).levels == (("*",), ("*",))
    assert Hierarchy.from_levels({"a": ["x"], "b": ["x"]}).rows() == [("a", "x", "*"), ("b", "x", "*")]


def test_early_suppression_in_a_file_is_kept() -> None:
    hierarchy = Hierarchy.from_levels([["a", "*", "*"], ["b", "x", "*"]])
    assert hierarchy.generalize("a", level=1) == "*"
    assert hierarchy.leaves_under("*") == ("a", "b")


@pytest.mark.parametrize(
    ("rows", "problem", "fix"),
    [
        ([["a", "x", "*"], ["b", "x", "y"]], "more than one root", r"end every row in \*"),
        ([["a", "x", "p", "*"], ["b", "x", "q", "*"]], "under two parents", 'give "x" the same parent'),
        ([["a", "x", "*"], ["a", "y", "*"]], "under two parents", 'keep one row for "a"'),
        ([["a", "b", "a", "*"]], "cycle", "be different"),
        ([["a", "b", "*"], ["b", "c", "*"]], "stands for different values", "use different names"),
        ([], "is empty", "one row per value"),
        (["a;b"], "not a list of names", "write each row"),
        ([[]], "not a list of names", "write each row"),
        ([["a", None]], "missing name", "leave missing values out"),
        ([["a", ""]], "empty name", "name the group"),
    ],
)
def test_what_is_no_tree_is_refused(rows: list[Any], problem: str, fix: str) -> None:
    with pytest.raises(HierarchyError, match=fix) as caught:
        Hierarchy.from_levels(rows)
    assert problem in caught.value.problem


def test_identical_rows_count_once() -> None:
    assert Hierarchy.from_levels([["a", "x"], ["a", "x"]]).leaves == ("a",)


def test_a_taxonomy_that_contains_itself_is_refused() -> None:
    tree: dict[str, Any] = {"a": {}}
    tree["a"] = {"b": tree}
    with pytest.raises(HierarchyError, match="write a tree"):
        Hierarchy.taxonomy(tree)


@pytest.mark.parametrize("tree", [{"a": 3}, "abc", 7])
def test_a_taxonomy_of_something_else_is_refused(tree: Any) -> None:
    with pytest.raises(HierarchyError, match="Government"):
        Hierarchy.taxonomy(tree)


def test_a_taxonomy_may_mix_values_and_groups_in_a_list() -> None:
    hierarchy = Hierarchy.taxonomy(["cook", {"Public": ["judge", {"Town": ["clerk"]}]}])
    assert hierarchy.parent("clerk") == "Town"
    assert hierarchy.parent("judge") == "Public"
    assert hierarchy.parent("cook") == "*"


def test_generalizing_one_and_many(jobs: Hierarchy) -> None:
    assert jobs.generalize("judge", level=0) == "judge"
    assert jobs.generalize("judge", level=2) == "Public"
    assert list(jobs.generalize(["judge", None, "cook"], level=2)) == ["Public", None, "Private"]
    assert list(jobs.generalize(["judge", None], level=3)) == ["*", "*"]
    assert jobs.generalize(None, level=1) is None
    assert list(jobs.generalize(np.array(["clerk", "clerk"]), level=1)) == ["City", "City"]
    assert jobs.generalize([], level=1).size == 0


@pytest.mark.parametrize("level", [4, 99])
def test_a_level_above_the_root_is_refused(jobs: Hierarchy, level: int) -> None:
    with pytest.raises(ParameterError, match="from 0 to 3"):
        jobs.generalize("judge", level=level)
    with pytest.raises(ParameterError, match="from 0 to 3"):
        jobs.codes_at(level)


def test_a_level_must_be_a_whole_number(jobs: Hierarchy) -> None:
    with pytest.raises(ParameterError):
        jobs.codes_at(-1)
    with pytest.raises(ParameterTypeError):
        jobs.codes_at(1.5)  # type: ignore[arg-type]


def test_values_match_whatever_engine_they_come_from() -> None:
    ages = Hierarchy.intervals((0, 50), widths=[10])
    same: list[Any] = [39, 39.0, "39", np.int32(39), np.float64(39), Decimal("39.0"), Fraction(39)]
    assert set(ages.generalize(same, level=1)) == {"[30, 40)"}
    flags = Hierarchy.from_levels([["true", "known"], ["false", "known"]])
    assert list(flags.encode([True, False, np.True_])) == [0, 1, 0]
    days = Hierarchy.dates("2024-01-01", "2024-12-31")
    moments: list[Any] = [date(2024, 2, 29), datetime(2024, 2, 29, 12), np.datetime64("2024-02-29T08:00"), "2024-02-29"]
    assert set(days.generalize(moments, level=1)) == {"2024-02"}
    assert list(days.generalize(np.array(["2024-02-29", "NaT"], dtype="datetime64[D]"), level=2)) == ["2024-Q1", None]


def test_an_error_does_not_show_the_value_that_is_not_covered(jobs: Hierarchy) -> None:
    with pytest.raises(HierarchyError) as caught:
        jobs.encode(["judge", "secret-profession"])
    assert "secret" not in str(caught.value)
    assert jobs.uncovered(["judge", "secret-profession", None]) == ("secret-profession",)
    assert not jobs.covers("secret-profession")
    assert jobs.covers(["judge", None])
    with pytest.raises(HierarchyError):
        jobs.validate(["secret-profession"])


def test_parents_and_leaves(jobs: Hierarchy) -> None:
    assert jobs.parent("judge") == "State"
    assert jobs.parent("State") == "Public"
    assert jobs.parent("Public") == "*"
    assert jobs.parent("*") is None
    assert jobs.leaves_under("Public") == ("teacher", "judge", "clerk")
    assert jobs.leaves_under("judge") == ("judge",)
    with pytest.raises(HierarchyError, match='Did you mean "Public"'):
        jobs.leaves_under("Publik")


def test_the_lowest_common_ancestor_is_never_higher_than_needed(jobs: Hierarchy) -> None:
    assert jobs.lowest_common_ancestor("judge") == Node(0, "judge")
    assert jobs.lowest_common_ancestor(["judge", "teacher"]) == Node(1, "State")
    assert jobs.lowest_common_ancestor(["judge", "clerk", "judge"]) == Node(2, "Public")
    assert jobs.lowest_common_ancestor(["judge", "cook"]) == Node(3, "*")
    assert jobs.lowest_common_ancestor(["judge", None]) == Node(3, "*")
    with pytest.raises(ParameterError, match="at least one value"):
        jobs.lowest_common_ancestor([])


def test_a_hierarchy_is_a_value(jobs: Hierarchy) -> None:
    again = Hierarchy.from_levels(jobs.rows())
    assert again == jobs
    assert hash(again) == hash(jobs)
    assert jobs != Hierarchy.masking(2)
    assert jobs != "jobs"
    assert repr(jobs) == "Hierarchy(4 leaves, 4 levels)"
    with pytest.raises(ValueError, match="read-only"):
        jobs.codes_at(1)[0] = 5


def test_a_missing_name_above_two_equal_trees_is_seen() -> None:
    assert Hierarchy.from_levels([["a", "x"], ["b", "y"]]) != Hierarchy.from_levels([["a", "x"], ["b", "x"]])
    swapped = Hierarchy.from_levels([["a", "x"], ["b", "y"], ["c", "x"]])
    assert swapped != Hierarchy.from_levels([["a", "x"], ["b", "y"], ["c", "y"]])


@pytest.mark.slow
def test_a_hundred_thousand_leaves_are_no_trouble() -> None:
    started = time.process_time()
    masked = Hierarchy.masking(5)
    ages = Hierarchy.intervals((0, 99_999), widths=[5, 10, 20])
    assert (masked.encode(masked.leaves) == np.arange(100_000)).all()
    assert list(ages.generalize(np.arange(0, 99_999, 20_000), level=3)[:2]) == ["[0, 20)", "[20000, 20020)"]
    assert time.process_time() - started < 30
