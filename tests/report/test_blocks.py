from __future__ import annotations

from typing import Any

import pytest

from cloister.errors import ParameterError, ParameterTypeError
from cloister.report import (
    Bars,
    Bullets,
    Chart,
    Checklist,
    Facts,
    KeyFigure,
    KeyFigures,
    Notice,
    Panels,
    Report,
    Section,
    Series,
    Status,
    TableBlock,
    Text,
    Verdict,
)

wrong: Any = 3


def test_blocks_are_values() -> None:
    table = TableBlock(["a"], [[1], [None]])
    assert table == TableBlock(("a",), ((1,), (float("nan"),)))
    assert hash(table) == hash(TableBlock(("a",), ((1,), (None,))))
    assert table.align == ("right",)
    assert hash(Bars(["a"], [Series("n", [1])])) == hash(Bars(("a",), (Series("n", (1.0,)),)))


def test_a_status_may_be_given_by_name() -> None:
    named: Any = "good"
    assert Verdict("x", named).status is Status.GOOD
    assert KeyFigure("x", 1, status=named).status is Status.GOOD
    unknown: Any = "god"
    with pytest.raises(ParameterError, match='Did you mean "good"'):
        Verdict("x", unknown)


@pytest.mark.parametrize(
    ("attempt", "fix"),
    [
        (lambda: TableBlock(["a", "b"], [[1]]), "one cell per column"),
        (lambda: TableBlock([], []), "one cell per column"),
        (lambda: TableBlock(["a"], [[1]], ["left", "left"]), '"left", "right" or "center"'),
        (lambda: TableBlock(["a"], [[1]], [wrong]), '"left", "right" or "center"'),
        (lambda: Facts([("a",)]), "a name and a value per row"),  # type: ignore[list-item]  # the mistake itself
        (lambda: Series("n", [-1]), "use a Chart"),
        (lambda: Series("n", [1, 2], ["one"]), "same length"),
        (lambda: Bars(["a", "b"], [Series("n", [1])]), "same length"),
        (lambda: Bars(["a"], []), "at least one Series"),
        (lambda: Notice(wrong, "text"), "use one of promise, warning, danger, info"),
        (lambda: Section("a", level=4), "from 1 to 3"),
        (lambda: Section("a", anchor="A b"), "small letters"),
        (lambda: Report("t", sections=[Section("a", level=2)]), "give it level 1"),
        (lambda: Report("t", sections=[Section("a"), Section("b", level=3)]), "give it level 2"),
    ],
)
def test_malformed_blocks_are_refused(attempt: Any, fix: str) -> None:
    with pytest.raises(ParameterError) as caught:
        attempt()
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("attempt", "fix"),
    [
        (lambda: Section("a", [wrong]), "Text(...) for plain words"),
        (lambda: Panels([wrong]), "Text(...) for plain words"),
        (lambda: KeyFigures([wrong]), "list of KeyFigure(...)"),
        (lambda: Checklist([wrong]), "list of Check(...)"),
        (lambda: Bars(["a"], [wrong]), "list of Series(...)"),
        (lambda: Chart(wrong), "cloister.plotting"),
        (lambda: Bullets("abc"), "as a list"),
        (lambda: Text(wrong), "as text"),
        (lambda: Report("t", verdict=wrong), "Verdict("),
        (lambda: Report("t", provenance=wrong), "Provenance("),
        (lambda: Report("t", sections=[wrong]), "list of Section(...)"),
    ],
)
def test_wrong_kinds_are_refused(attempt: Any, fix: str) -> None:
    with pytest.raises(ParameterTypeError) as caught:
        attempt()
    assert fix in caught.value.fix


def test_the_longest_bar_is_full_unless_the_numbers_are_shares() -> None:
    assert Bars(["a", "b"], [Series("n", [3, None])]).maximum == 3
    assert Bars(["a"], [Series("n", [0.25])], percent=True).maximum == 1
    assert Bars(["a"], [Series("n", [3])], maximum=2).maximum == 3
    assert Bars(["a"], [Series("n", [0])]).maximum == 1
