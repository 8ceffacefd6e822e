"""Bars with error bars: counts and other amounts per group."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.errors import ParameterError
from cloister.plotting import inputs, style
from cloister.plotting.figure import Figure
from cloister.plotting.style import Spec


def bars_with_errors(
    labels: Sequence[object],
    values: Sequence[object],
    margins: Sequence[object] | None = None,
    *,
    title: str,
    x: str,
    y: str,
    subtitle: str = "",
) -> Figure:
    """Return one bar per label, in the given order, with its margin of error.

    Bars lie down when there are many labels or long ones.

    Args:
        labels: the groups; None is a group of its own.
        values: a number per group; None or NaN leaves a gap that says "no value".
        margins: a half-width per group; None draws no error bar.
        title: what the chart shows.
        x: the title of the axis with the labels, whichever way the bars run.
        y: the title of the axis with the numbers.
        subtitle: for example "95% of the time within ±12; epsilon = 0.2 per row".
    """
    names = inputs.distinct_labels(labels, name="labels")
    found = inputs.some_numbers(values, name="values")
    inputs.same_length(len(names), len(found), names=("labels", "values"))
    style.not_too_many(len(names), what="bars")
    half = inputs.margins(margins, count=len(found))
    rows = style.interval_rows(found, half, label=names)
    thinned = inputs.are_ordered(labels)
    body = _bars(names, rows, x=x, y=y, bars_per_label=1, thinned=thinned)
    body["layer"][0]["mark"]["color"] = style.PALE
    return style.assemble(body, rows=rows, title=title, subtitle=subtitle)


def grouped_bars_with_errors(
    labels: Sequence[object],
    groups: Sequence[object],
    values: Sequence[object],
    margins: Sequence[object] | None = None,
    *,
    title: str,
    x: str,
    y: str,
    legend: str = "",
    subtitle: str = "",
) -> Figure:
    """Return one bar per pair of label and group: labels along the axis, groups by color.

    Labels and groups keep the order in which they first appear; pairs may be missing.

    Args:
        labels: the first key of each item.
        groups: the second key of each item, of at most eight kinds.
        values: a number per item.
        margins: a half-width per item.
        title: what the chart shows.
        x: the title of the axis with the labels, whichever way the bars run.
        y: the title of the axis with the numbers.
        legend: the title of the colors.
        subtitle: for example "95% of the time within ±12; epsilon = 0.2 per row".
    """
    firsts, seconds = inputs.labels(labels, name="labels"), inputs.labels(groups, name="groups")
    found = inputs.some_numbers(values, name="values")
    _check_pairs(firsts, seconds, found)
    names, kinds = list(dict.fromkeys(firsts)), list(dict.fromkeys(seconds))
    rows = style.interval_rows(found, inputs.margins(margins, count=len(found)), label=firsts, series=seconds)
    thinned = inputs.are_ordered(dict.fromkeys(inputs.items(labels, name="labels")))
    body = _bars(names, rows, x=x, y=y, bars_per_label=len(kinds), thinned=thinned)
    offset = "xOffset" if "x" in body["encoding"] else "yOffset"
    body["encoding"][offset] = {"field": "series", "type": "nominal", "sort": None, "scale": {"domain": kinds}}
    body["layer"][0]["encoding"]["color"] = style.colors(kinds, title=legend)
    body["layer"][0]["encoding"]["tooltip"].insert(1, *style.tooltip(series=legend))
    return style.assemble(body, rows=rows, title=title, subtitle=subtitle)


def _check_pairs(firsts: list[str], seconds: list[str], found: list[float | None]) -> None:
    inputs.same_length(len(firsts), len(seconds), names=("labels", "groups"))
    inputs.same_length(len(firsts), len(found), names=("labels", "values"))
    style.not_too_many(len(found), what="bars")
    if len(set(zip(firsts, seconds, strict=True))) < len(firsts):
        raise ParameterError(
            "The same pair of label and group is there twice.", fix="give every pair once, with one value."
        )


def _bars(names: list[str], rows: list[Spec], *, x: str, y: str, bars_per_label: int, thinned: bool) -> Spec:
    """Return the layers of a bar chart and the size of its plot."""
    is_upright = _is_upright(names, bars_per_label, thinned=thinned)
    along, across = ("y", "x") if is_upright else ("x", "y")
    numbers = style.quantity(style.ends(rows), title=y)
    bar = {
        "mark": {"type": "bar"},
        "encoding": {along: {**numbers, "field": "value"}, "tooltip": style.tooltip(label=x, reads=y)},
    }
    padding = {"paddingInner": 0.25, "paddingOuter": 0.15}
    band = style.WIDTH / len(names) if is_upright else _step(names, bars_per_label)
    labels = style.category(across, names, title=x, step=band if thinned and is_upright else 0, **padding)
    body: Spec = {
        "encoding": {across: labels},
        "layer": [bar, *style.error_bars(along, numbers, room=0.75 * band / bars_per_label), *style.gaps(along, rows)],
    }
    if not is_upright:
        body["height"] = {"step": band, "for": "position"}
    return body


def _is_upright(names: list[str], bars_per_label: int, *, thinned: bool) -> bool:
    """Return whether the bars stand: their labels fit side by side, or may be thinned out."""
    band = style.WIDTH / len(names)
    if thinned:
        return band >= 4 * bars_per_label
    width, height = style.text_size(names)
    return width + 8 <= band and height <= 3 * style.LINE and band >= 12 * bars_per_label


def _step(names: list[str], bars_per_label: int) -> float:
    """Return the room of a lying label in pixels: its lines, and at least a readable bar."""
    _, height = style.text_size(names)
    return max(height + 8, 16 * bars_per_label + 8)
