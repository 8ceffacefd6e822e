from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.errors import ParameterError, ParameterTypeError
from cloister.plotting import (
    Figure,
    bars_with_errors,
    grouped_bars_with_errors,
    heatmap,
    histogram_of_samples,
    lines,
    points_with_errors,
    reliability_diagram,
    small_shares,
)

NAMES = {"title": "A title", "x": "Across", "y": "Up", "subtitle": "95% of the time within ±12"}
LONG = "Diseases of the circulatory system, including hypertension"
DAYS = [date(2024, 1, day) for day in (1, 8, 15)]

GALLERY: dict[str, Callable[[], Figure]] = {
    "bars": lambda: bars_with_errors(["a", "b", None], [1200, Fraction(7, 2), None], [12, None, 3], **NAMES),
    "lying bars": lambda: bars_with_errors([LONG, "b"], [1, -2], **NAMES),
    "zero bars": lambda: bars_with_errors(["a"], [0], **NAMES),
    "ages": lambda: bars_with_errors(range(101), range(101), [3] * 101, **NAMES),
    "huge bars": lambda: bars_with_errors(["a"], [3e12], [1e12], **NAMES),
    "grouped bars": lambda: grouped_bars_with_errors(["a", "a", "b"], [1, 2, 1], [5, 6, 7], [1, 1, 1], **NAMES),
    "lying grouped bars": lambda: grouped_bars_with_errors([LONG, LONG], ["x", "y"], [5, None], **NAMES),
    "points": lambda: points_with_errors(["mean", LONG, "no"], [47.31, 45, np.nan], [1.92, None, 3], **NAMES),
    "one point": lambda: points_with_errors(["n"], [1234567], title="Count", x="People"),
    "small grid": lambda: heatmap(["a", "b"], ["c", "d"], [[1, -2], [None, 4000]], legend="People", **NAMES),
    "turned columns": lambda: heatmap(["a"], [LONG, LONG + "!"], [[1, 2]], **NAMES),
    "large grid": lambda: heatmap(range(25), range(25), np.arange(625.0).reshape(25, 25), **NAMES),
    "flat grid": lambda: heatmap(["a"], ["b"], [[0]], **NAMES),
    "lines": lambda: lines(
        {"a": [(1, 2), (2, None), (3, 4)], "b": [(1, 3)]}, bands={"a": [(1, 1, 3), (3, 2, 6)]}, **NAMES
    ),
    "logarithmic lines": lambda: lines({"a": [(0.01, 300), (10, 0.3)]}, log_x=True, log_y=True, **NAMES),
    "dense lines": lambda: lines({"a": [(i, i) for i in range(99)], "b": [(i, -i) for i in range(99)]}, **NAMES),
    "days": lambda: lines({"a": list(zip(DAYS, (1, 2, 3), strict=True))}, **NAMES),
    "small squares": lambda: heatmap(["a", "b"], ["c", "d"], [[1, 2], [3, 4]], side=100, darkest=9, **NAMES),
    "small lying shares": lambda: small_shares([LONG, "b"], [0.25, 0.75], [0.5, 0.5], title="Jobs", subtitle="0.25"),
    "small standing shares": lambda: small_shares(range(32), [1 / 32] * 32, [0.0] * 32, title="Ages", ordered=True),
    "small shares alone": lambda: small_shares(["a", "b"], [0.25, 0.75], title="Jobs"),
    "reliability": lambda: reliability_diagram([0.1, 0.95], [0, 1], [(0, 0.2), (0.8, 1)], [1200, 9], **NAMES),
    "samples": lambda: histogram_of_samples({"a": np.linspace(-1, 1, 99), "b": [0.5, None]}, title="t", x="x"),
}


@pytest.mark.no_cover  # Altair's check alone would be traced
@pytest.mark.parametrize("name", GALLERY)
def test_every_chart_is_valid(name: str) -> None:
    GALLERY[name]().to_altair()  # checks the specification against the schema of Vega-Lite


@pytest.mark.parametrize("name", GALLERY)
def test_every_chart_can_be_drawn(name: str) -> None:
    figure = GALLERY[name]()
    svg = figure.to_svg()
    assert all(word not in svg for word in ("NaN", "undefined", "Infinity", ">null<"))
    assert figure.title.replace(" ", "") in re.sub(r"<[^>]*>|\s", "", svg)


@pytest.mark.parametrize(
    "name", [name for name in GALLERY if name not in ("one point", "samples") and "shares" not in name]
)
def test_every_chart_shows_its_titles_and_subtitle(name: str) -> None:
    svg = GALLERY[name]().to_svg()
    for text in NAMES.values():
        assert f">{text}</text>" in svg


def _rows(figure: Figure) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = figure.to_dict()["data"]["values"]
    return rows


def _texts(figure: Figure) -> list[str]:
    return re.findall(r">([^<>]+)</t", figure.to_svg())


def test_bars_keep_the_order_of_their_labels() -> None:
    labels = ["zebra", "apple", "mango", "10", "9"]
    shown = _texts(bars_with_errors(labels, range(5), **NAMES))
    assert [text for text in shown if text in labels] == labels


def test_an_interval_is_the_value_plus_and_minus_its_margin() -> None:
    first, second, third = _rows(bars_with_errors(["a", "b", "c"], [10, 5, None], [2, None, 1], **NAMES))
    assert (first["low"], first["high"], first["reads"]) == (8, 12, "10 ± 2")
    assert (second["low"], second["high"], second["reads"]) == (None, None, "5")
    assert (third["low"], third["value"], third["reads"]) == (None, None, "no value")


def test_long_or_many_labels_make_bars_lie_down() -> None:
    def stands(labels: list[Any]) -> bool:
        return "x" in bars_with_errors(labels, [1] * len(labels), **NAMES).to_dict()["encoding"]

    assert stands(["north", "south", "east", "west"])
    assert not stands([LONG, "b", "c"])
    assert not stands([f"group {i}" for i in range(20)])
    assert not stands(["漢字漢字漢字漢字"] + [f"{i}" * 8 for i in range(6)])
    assert stands(list(range(120)))  # a reader can fill numbers in
    assert not stands(list(range(150)))


def test_no_label_of_lying_bars_is_left_out_or_cut() -> None:
    labels = [f"{LONG} number {i}" for i in range(40)]
    shown = " ".join(_texts(bars_with_errors(labels, range(40), **NAMES)))
    assert all(label in shown for label in labels)


def test_numbers_have_separators_between_thousands() -> None:
    assert "1,000,000" in _texts(bars_with_errors(["a"], [1_000_000], **NAMES))
    assert "0.001" in _texts(lines({"a": [(0.001, 1), (1000, 2)]}, log_x=True, **NAMES))
    assert "1,000" in _texts(lines({"a": [(0.001, 1), (1000, 2)]}, log_x=True, **NAMES))
    assert "5e+12" in _texts(bars_with_errors(["a"], [5e12], **NAMES))


def test_a_logarithmic_axis_over_little_room_has_more_labels() -> None:
    figure = lines({"a": [(2, 1), (50, 2)]}, log_x=True, title="t", x="x", y="y")
    shown = _texts(figure)
    assert shown[: shown.index("x")] == ["1", "2", "5", "10", "20", "50", "100"]


def test_a_logarithmic_axis_of_tiny_numbers_has_exponents() -> None:
    shown = _texts(lines({"a": [(1e-12, 1), (1, 2)]}, log_x=True, title="t", x="x", y="y"))
    assert shown[: shown.index("x")] == ["1e-12", "1e-10", "1e-8", "1e-6", "1e-4", "1e-2", "1e+0"]


def test_grouped_bars_leave_out_pairs_that_are_not_there() -> None:
    figure = grouped_bars_with_errors(["a", "b", "a"], ["x", "x", "y"], [1, 2, 3], legend="Kind", **NAMES)
    assert [(row["label"], row["series"]) for row in _rows(figure)] == [("a", "x"), ("b", "x"), ("a", "y")]
    assert {"Kind", "x", "y"} <= set(_texts(figure))


def test_grouped_bars_refuse_a_pair_twice_and_too_many_colors() -> None:
    with pytest.raises(ParameterError, match="Fix: give every pair once"):
        grouped_bars_with_errors(["a", "a"], ["x", "x"], [1, 2], **NAMES)
    with pytest.raises(ParameterError, match="Fix: draw at most 8 series.*or a heatmap"):
        grouped_bars_with_errors(["a"] * 9, range(9), range(9), **NAMES)


def test_points_write_their_numbers() -> None:
    shown = _texts(points_with_errors(["mean", "mode"], [47.31, None], [1.92, None], **NAMES))
    assert "47.3 ± 1.9" in shown
    assert "no value" in shown


def test_a_grid_is_given_row_by_row() -> None:
    rows = _rows(heatmap(["a", "b"], ["c", "d", "e"], [[1, 2, 3], [4, 5, 6]], **NAMES))
    assert [(row["row"], row["label"], row["value"]) for row in rows][3:5] == [("b", "c", 4.0), ("b", "d", 5.0)]


def test_small_grids_have_numbers_in_their_cells_and_large_ones_have_not() -> None:
    assert "1,235" in _texts(heatmap(["a"], ["b"], [[1234.6]], **NAMES))
    assert len(GALLERY["large grid"]().to_dict()["layer"]) == 1


def test_an_empty_cell_is_gray_and_says_so() -> None:
    figure = heatmap(["a"], ["b", "c"], [[None, 3]], **NAMES)
    assert "no value" in _texts(figure)
    assert "#D9D9D9" in figure.to_svg()


def test_grids_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(ParameterError, match="rows has 2 items, values has 1"):
        heatmap(["a", "b"], ["c"], [[1]], **NAMES)
    with pytest.raises(ParameterError, match="columns has 2 items, a row of values has 1"):
        heatmap(["a"], ["b", "c"], [[1]], **NAMES)
    with pytest.raises(ParameterError, match="Fix: draw at most 40,000"):
        heatmap(range(300), range(300), np.zeros((300, 300)), **NAMES)


def test_a_missing_point_leaves_a_gap_in_its_line() -> None:
    whole = lines({"a": [(i, i) for i in range(5)]}, **NAMES).to_svg()
    broken = lines({"a": [(i, None if i == 2 else i) for i in range(5)]}, **NAMES).to_svg()

    def pieces(svg: str) -> int:
        found = re.search(r'mark-line.*?<path[^>]* d="([^"]+)"', svg)
        assert found is not None
        return found[1].count("M")

    assert (pieces(whole), pieces(broken)) == (1, 2)


def test_a_single_line_needs_no_legend() -> None:
    assert "only" not in _texts(lines({"only": [(1, 2)]}, **NAMES))
    assert {"one", "two"} <= set(_texts(lines({"one": [(1, 2)], "two": [(1, 3)]}, **NAMES)))


def test_days_are_shown_as_days() -> None:
    figure = lines({"a": [(day, 1) for day in DAYS]}, bands={"a": [(datetime(2024, 1, 3, 12), 0, 2)]}, **NAMES)
    assert _rows(figure)[0]["x"] == "2024-01-01"
    assert any("Jan" in text for text in _texts(figure))


@pytest.mark.parametrize(
    ("series", "more", "fix"),
    [
        ({}, {}, "Fix: give at least one point"),
        ({"a": []}, {}, "Fix: give at least one point"),
        ({"a": [(1, None)]}, {}, "Fix: give at least one number"),
        ({"a": [(1, 2, 3)]}, {}, r"Fix: give every point as \(x, y\)"),
        ({"a": [(None, 2)]}, {}, r"Fix: give every point as \(x, y\)"),
        ({"a": [(1, 2)]}, {"bands": {"a": [(1, 2)]}}, r"Fix: give every point as \(x, low, high\)"),
        ({"abc": [(1, 2)]}, {"bands": {"abd": [(1, 2, 3)]}}, 'Did you mean "abc"'),
        ({"a": [(0, 2)]}, {"log_x": True}, "Fix: leave those points out, or write log_x=False"),
        ({"a": [(1, -2)]}, {"log_y": True}, "Fix: leave those points out, or write log_y=False"),
        ({"a": [(i, i) for i in range(20_001)]}, {}, "Fix: draw at most 20,000"),
        ({str(i): [(1, 2)] for i in range(9)}, {}, "Fix: draw at most 8 series"),
    ],
)
def test_lines_refuse_what_cannot_be_drawn(series: Any, more: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        lines(series, **more, **NAMES)


@pytest.mark.parametrize("series", [[(1, 2)], {"a": [1, 2]}, {"a": [(1, "2")]}, {"a": [(1, 2), (DAYS[0], 2)]}])
def test_lines_refuse_other_shapes(series: Any) -> None:
    with pytest.raises(ParameterTypeError, match="Fix: "):
        lines(series, **NAMES)


@pytest.mark.parametrize("draw", [bars_with_errors, points_with_errors])
def test_bars_and_points_refuse_what_does_not_fit(draw: Callable[..., Figure]) -> None:
    with pytest.raises(ParameterError, match="Fix: give at least one number"):
        draw([], [], **NAMES)
    with pytest.raises(ParameterError, match="labels has 2 items, values has 1"):
        draw(["a", "b"], [1], **NAMES)
    with pytest.raises(ParameterError, match="Fix: give every item a label of its own"):
        draw(["a", "a"], [1, 2], **NAMES)
    with pytest.raises(ParameterError, match="Fix: draw at most 1,000"):
        draw(range(1001), range(1001), **NAMES)


def _shares(figure: Figure, name: str) -> list[tuple[float, float]]:
    return [(row["x"], row["share"]) for row in _rows(figure) if row["series"] == name]


def test_shares_of_a_sample_add_up_to_one() -> None:
    figure = histogram_of_samples({"a": np.linspace(0, 1, 1000), "b": [0.25, 0.5]}, bins=10, title="t", x="x")
    for name in ("a", "b"):
        shares = [share for _, share in _shares(figure, name)]
        assert len(shares) == 11
        assert sum(shares[:-1]) == pytest.approx(1)
        assert shares[-1] == shares[-2]


def test_whole_numbers_get_bins_of_whole_width() -> None:
    figure = histogram_of_samples({"a": np.arange(100), "b": [3, 4]}, bins=30, title="t", x="x")
    shares = _shares(figure, "a")
    assert {second[0] - first[0] for first, second in itertools.pairwise(shares)} == {4}
    assert {share for _, share in shares} == {0.04}
    assert shares[0][0] == -0.5


def test_draws_outside_of_the_bounds_count_in_the_shares() -> None:
    figure = histogram_of_samples({"a": [0.5, 0.5, 0.5, 99.5]}, bins=1, bounds=(0, 1), title="t", x="x")
    assert _shares(figure, "a")[0] == (0.0, 0.75)


def test_a_sample_of_one_value_has_a_width() -> None:
    edges = [edge for edge, _ in _shares(histogram_of_samples({"a": [2.5] * 3}, title="t", x="x"), "a")]
    assert edges[0] < 2.5 < edges[-1]


@pytest.mark.parametrize(
    ("samples", "error", "fix"),
    [
        ({}, ParameterError, "Fix: give at least one named sample"),
        ({"a": []}, ParameterError, "Fix: give at least one draw per name"),
        ({"a": np.array([np.nan])}, ParameterError, "Fix: give at least one draw per name"),
        ({"a": np.array([np.inf])}, ParameterError, "Fix: leave infinite draws out"),
        ({"a": ["x"]}, ParameterTypeError, "Fix: give samples as numbers"),
        ([1, 2], ParameterTypeError, "Fix: give names with their draws"),
    ],
)
def test_samples_that_cannot_be_drawn_are_refused(samples: Any, error: type[Exception], fix: str) -> None:
    with pytest.raises(error, match=fix):
        histogram_of_samples(samples, title="t", x="x")


def test_the_vertical_axis_of_lines_starts_at_zero_unless_told_otherwise() -> None:
    points = {"a": [(5, 0.81), (6, 0.89)]}
    assert "0" in _texts(lines(points, **NAMES))
    assert "0" not in _texts(lines(points, from_zero=False, **NAMES))


def test_small_charts_tell_both_shares() -> None:
    figure = small_shares(["a", "b"], [0.25, 0.75], [0.5, 0.5], title="Jobs", names=("before", "after"))
    assert figure.to_table() == (("Jobs", "before", "after"), (("a", "25%", "50%"), ("b", "75%", "50%")))
    assert len(small_shares(["a"], [1], title="Jobs").to_dict()["layer"]) == 1
    tiny = small_shares(["a", "b", "c"], [1, 3e-82, 0], title="Jobs", names=("in the model", ""))
    assert tiny.to_table() == (("Jobs", "in the model"), (("a", "100%"), ("b", "below 0.01%"), ("c", "0%")))
    with pytest.raises(ParameterError, match="same length"):
        small_shares(["a", "b"], [1], title="Jobs")


def test_grids_can_share_their_colors() -> None:
    grids = [heatmap(["a"], ["b"], [[value]], darkest=1.0, **NAMES).to_dict() for value in (0.2, 0.9)]
    scales = [grid["layer"][0]["encoding"]["color"]["scale"] for grid in grids]
    assert scales[0] == scales[1] == {"scheme": "yellowgreenblue", "domain": [0.0, 1.0]}


def test_small_grids_have_no_room_for_numbers() -> None:
    assert len(heatmap(["a"], ["b"], [[1]], side=100, **NAMES).to_dict()["layer"]) == 1


def test_reliability_writes_counts_and_refuses_what_is_no_share() -> None:
    figure = reliability_diagram([0.1, 0.9], [0.2, 1], [(0.1, 0.3), (0.9, 1)], [1200, 9], **NAMES)
    assert ">1,200<" in figure.to_svg()
    assert figure.to_table()[1][0] == (0.1, 0.2, 0.1, 0.3, 1200)
    for claimed, intervals in (([0.1, 1.5], [(0, 1)] * 2), ([0.1, None], [(0, 1)] * 2), ([0.1, 0.9], [(0, 1, 1)] * 2)):
        with pytest.raises(ParameterError, match="from 0 to 1"):
            reliability_diagram(claimed, [0.2, 1], intervals, [1, 2], **NAMES)
    with pytest.raises(ParameterError, match="same length"):
        reliability_diagram([0.1], [0.2, 1], [(0, 1)], [1], **NAMES)
