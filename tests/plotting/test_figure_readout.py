from __future__ import annotations

import re

import pytest

from cloister.plotting import (
    Figure,
    bars_with_errors,
    grouped_bars_with_errors,
    heatmap,
    histogram_of_samples,
    lines,
    points_with_errors,
)

AWKWARD = 'a\\b "c"\n\'d\\'


def test_bars_with_their_margins() -> None:
    bars = bars_with_errors(["north", None], [120, None], [12, None], title="t", x="Region", y="Visits")
    assert bars.to_table() == (("Region", "Visits"), (("north", "120 ± 12"), ("(missing)", "no value")))


def test_every_chart_reads_as_a_table() -> None:
    grouped = grouped_bars_with_errors(["n"], ["women"], [5], title="t", x="Region", y="Visits", legend="Sex")
    assert grouped.to_table() == (("Region", "Sex", "Visits"), (("n", "women", "5"),))
    assert points_with_errors(["mean"], [47.3], [1.9], title="t", x="Years").to_table()[1] == (("mean", "47.3 ± 1.9"),)
    grid = heatmap(["r"], ["c"], [[3]], title="t", x="Ward", y="Age", legend="Admissions")
    assert grid.to_table() == (("Age", "Ward", "Admissions"), (("r", "c", "3"),))
    curve = lines({"a": [(1, 2)]}, title="t", x="epsilon", y="Margin", legend="Name")
    assert curve.to_table() == (("Name", "epsilon", "Margin"), (("a", 1, 2),))
    columns, rows = histogram_of_samples({"a": [1, 2, 2]}, title="t", x="Count").to_table()
    assert len(columns) == 2
    assert rows


@pytest.mark.parametrize(
    ("specification", "expected"),
    [
        ({}, ((), ())),
        ({"data": {"url": "x.csv"}}, ((), ())),
        ({"data": [1]}, ((), ())),
        ({"data": {"values": "a,b"}}, ((), ())),
        (
            {"data": {"values": [1, {"a": 1, "b": "x\ny"}, {"c": [1]}]}},
            (("a", "b", "c"), ((1, "x y", None), (None, None, "[1]"))),
        ),
        ({"data": {"values": [{"a": 1}]}, "encoding": {"tooltip": {"field": "a"}}}, (("a",), ((1,),))),
        ({"data": {"values": [{"a": 1, "b": 2}]}, "layer": [{"tooltip": [{"field": "b"}]}]}, (("b",), ((2,),))),
    ],
)
def test_specifications_from_elsewhere(specification: dict[str, object], expected: object) -> None:
    assert Figure.from_dict(specification).to_table() == expected


def test_awkward_titles_are_drawn_and_read() -> None:
    bars = bars_with_errors([AWKWARD], [1], title=AWKWARD, x=AWKWARD, y="n\\")
    assert "<svg" in bars.to_svg()
    assert bars.to_table()[0] == ('a\\b "c" \'d\\', "n\\")


def test_the_same_chart_twice_on_a_page_has_ids_of_its_own() -> None:
    grid = heatmap(["a"], ["b"], [[3]], title="t", x="x", y="y")
    first, second = (set(re.findall(r'\bid="([^"]+)"', grid.to_svg(owner=owner))) for owner in ("one", "two"))
    assert first
    assert not first & second
