from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.data.hierarchy import Hierarchy
from cloister.errors import CloisterError, HierarchyError, ParameterError, ParameterTypeError


def test_intervals_are_half_open_and_both_bounds_are_values() -> None:
    ages = Hierarchy.intervals((17, 90), widths=[5, 10, 20], origin=0)
    assert (ages.leaves[0], ages.leaves[-1], len(ages.leaves)) == ("17", "90", 74)
    assert [ages.generalize(age, level=1) for age in (19, 20, 90)] == ["[15, 20)", "[20, 25)", "[90, 95)"]
    assert [ages.generalize(40, level=level) for level in range(5)] == ["40", "[40, 45)", "[40, 50)", "[40, 60)", "*"]


def test_intervals_begin_at_the_lower_bound_unless_told() -> None:
    assert Hierarchy.intervals((17, 30), widths=[5]).levels[1] == ("[17, 22)", "[22, 27)", "[27, 32)")


def test_steps_and_widths_are_exact() -> None:
    prices = Hierarchy.intervals((0, 1), widths=[0.3, 0.9], step=0.1)
    assert prices.leaves == ("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1")
    assert prices.generalize([0.3, 0.2, 0.9], level=1).tolist() == ["[0.3, 0.6)", "[0, 0.3)", "[0.9, 1.2)"]
    thirds = Hierarchy.intervals((0, 1), widths=["1/3"], step="1/3")
    assert thirds.leaves == ("0", "1/3", "2/3", "1")


def test_any_real_number_finds_its_interval() -> None:
    weights = Hierarchy.intervals((40, 160), widths=[10, 20], step=None)
    assert weights.leaves[0] == "[40, 50)"
    assert weights.generalize(49.999, level=0) == "[40, 50)"
    many = np.array([50.0, 79.5, np.nan, 160])
    assert weights.generalize(many, level=1).tolist() == ["[40, 60)", "[60, 80)", None, "[160, 180)"]
    assert weights.generalize([50.0, Fraction(159, 2), None], level=1).tolist() == ["[40, 60)", "[60, 80)", None]
    assert weights.uncovered([39.9, 50, "50", True, float("inf"), object]) == (39.9, "50", True, float("inf"), object)
    assert weights.uncovered(np.array([39, 50])) == (39,)


def test_real_intervals_survive_their_text() -> None:
    weights = Hierarchy.intervals((0, 1), widths=[0.1, 0.5], step=None, origin=-0.05)
    again = Hierarchy.parse(weights.to_csv_text())
    assert again == weights
    assert again.generalize(0.35, level=0) == "[0.35, 0.45)"


def test_widths_must_nest() -> None:
    with pytest.raises(HierarchyError, match="for example 10 and 20") as caught:
        Hierarchy.intervals((0, 100), widths=[5, 10, 25])
    assert "25 is not a multiple of the width 10" in caught.value.problem


@pytest.mark.parametrize(
    ("build", "fix"),
    [
        (lambda: Hierarchy.intervals((90, 17), widths=[5]), "smaller number first"),
        (lambda: Hierarchy.intervals(17, widths=[5]), "pair|write for example"),  # type: ignore[arg-type]
        (lambda: Hierarchy.intervals((1, 2, 3), widths=[5]), "write for example"),
        (lambda: Hierarchy.intervals((0, 10), widths=[]), r"write widths="),
        (lambda: Hierarchy.intervals((0, 10), widths=5), r"write widths="),  # type: ignore[arg-type]
        (lambda: Hierarchy.intervals((0, 10), widths=[0]), "positive width"),
        (lambda: Hierarchy.intervals((0, 10), widths=[5], step=0), "step=None"),
        (lambda: Hierarchy.intervals((0, 10**9), widths=[5]), "wider steps"),
        (lambda: Hierarchy.intervals((0, float("nan")), widths=[5]), "finite"),
        (lambda: Hierarchy.masking(9), "public list of values"),
        (lambda: Hierarchy.masking(0), "number of digits"),
        (lambda: Hierarchy.masking([]), "at least one value"),
        (lambda: Hierarchy.masking(["1*2"]), "mask character that no value holds"),
        (lambda: Hierarchy.masking(["12"], mask="**"), r'mask="\*"'),
        (lambda: Hierarchy.dates("2024-01-01", "2023-01-01"), "earlier date first"),
        (lambda: Hierarchy.dates("2024-02-30", "2024-03-01"), "2020-12-31"),
        (lambda: Hierarchy.dates("1 May", "2024-03-01"), "2020-12-31"),
        (lambda: Hierarchy.dates(5, "2024-03-01"), "2020-12-31"),  # type: ignore[arg-type]
        (lambda: Hierarchy.ordering([], sizes=[2]), "every value once"),
        (lambda: Hierarchy.ordering(["a", "a"], sizes=[2]), "every value once"),
        (lambda: Hierarchy.ordering(["a", "b"], sizes=[2, 3]), "growing multiples"),
        (lambda: Hierarchy.ordering(["a", "b"], sizes=[1]), "each size=2"),
        (lambda: Hierarchy.cuts((0, 100), cuts=[(40, 18)]), "in order"),
        (lambda: Hierarchy.cuts((0, 100), cuts=[(18, 200)]), "in order"),
        (lambda: Hierarchy.cuts((0, 100), cuts=[(18, 40), (30,)]), "only drop cuts"),
        (lambda: Hierarchy.cuts((0, 100), cuts=[]), "write cuts="),
    ],
)
def test_bad_rules_are_refused_with_a_fix(build: Any, fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        build()


def test_error_classes_also_say_what_is_wrong_to_python() -> None:
    with pytest.raises(TypeError):
        Hierarchy.intervals(17, widths=[5])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reversed"):
        Hierarchy.intervals((90, 17), widths=[5])
    assert issubclass(ParameterTypeError, TypeError)
    assert issubclass(ParameterError, ValueError)


def test_cuts_keep_fewer_and_fewer_points() -> None:
    ages = Hierarchy.cuts((0, 110), cuts=[(18, 40, 65), (40,)])
    assert ages.rows()[1:3] == [("[18, 40)", "[0, 40)", "*"), ("[40, 65)", "[40, 110]", "*")]
    assert ages.generalize([17.5, 110, 40], level=1).tolist() == ["[0, 40)", "[40, 110]", "[40, 110]"]
    assert not ages.covers(110.5)


def test_ordering_groups_neighbors() -> None:
    grades = Hierarchy.ordering(["A", "B", "C", "D", "E"], sizes=[2, 4])
    assert grades.rows()[0] == ("A", "A to B", "A to D", "*")
    assert grades.rows()[4] == ("E", "E", "E", "*")


def test_masking_aligns_shorter_values_to_the_left() -> None:
    codes = Hierarchy.masking(["1234", "12345", 123])
    assert codes.generalize(["1234", "12345"], level=1).tolist() == ["1234*", "1234*"]
    assert codes.generalize("123", level=2) == "123**"
    assert codes.leaves_under("123**") == ("1234", "12345", "123")


def test_masking_by_length_covers_every_number() -> None:
    codes = Hierarchy.masking(2, mask="x")
    assert len(codes.leaves) == 100
    assert codes.generalize("07", level=1) == "0x"
    assert codes.height == 2


def test_dates_before_1970_and_at_year_ends() -> None:
    days = Hierarchy.dates("1969-12-31", "1970-01-01")
    assert days.rows() == [
        ("1969-12-31", "1969-12", "1969-Q4", "1969", "1960s", "*"),
        ("1970-01-01", "1970-01", "1970-Q1", "1970", "1970s", "*"),
    ]
