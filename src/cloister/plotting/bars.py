"""One number per label: bars and dots with error bars, and small bars of shares.

Bars show counts and other amounts per group, dots one or several single numbers with their intervals. The small charts
of shares are put side by side: one distribution, or one beside another, per column of a table.
"""

from __future__ import annotations

from cloister.core.wordings import percent
from cloister.errors import ParameterError
from cloister.plotting import _style as style, inputs
from cloister.plotting._style import Spec
from cloister.plotting.figure import Figure
from cloister.plotting.inputs import Items


def bars_with_errors(
    labels: Items,
    values: Items,
    margins: Items | None = None,
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
    labels: Items,
    groups: Items,
    values: Items,
    margins: Items | None = None,
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


def points_with_errors(
    labels: Items,
    values: Items,
    margins: Items | None = None,
    *,
    title: str,
    x: str,
    y: str = "",
    subtitle: str = "",
) -> Figure:
    """Return one dot per number with its interval, and the number written above it.

    The axis need not begin at zero, so that close numbers can be told apart.

    Args:
        labels: what each number is, from top to bottom.
        values: the numbers; None or NaN leaves its line empty but for "no value".
        margins: a half-width per number; None draws no interval.
        title: what the chart shows.
        x: the title of the axis with the numbers.
        y: the title of the axis with the labels.
        subtitle: for example "95% of the time within ±12; epsilon = 0.2 per row".
    """
    names = inputs.distinct_labels(labels, name="labels")
    found = inputs.some_numbers(values, name="values")
    inputs.same_length(len(names), len(found), names=("labels", "values"))
    style.not_too_many(len(names), what="numbers")
    rows = style.interval_rows(found, inputs.margins(margins, count=len(found)), label=names)
    reach = style.ends(rows)
    numbers = style.quantity(reach, title=x, zero=False, padding=40)
    dot = {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, "color": style.PALETTE[0]},
        "encoding": {"x": {**numbers, "field": "value"}, "tooltip": style.tooltip(label=y, reads=x)},
    }
    words = {
        "transform": [{"filter": "isValid(datum.value)"}],
        "mark": {"type": "text", "dy": -15, "fontSize": 12, "color": style.INK},
        "encoding": {"x": {**numbers, "field": "value"}, "text": {"field": "reads"}},
    }
    _, height = style.text_size(names)
    body = {
        "height": {"step": max(46, height + 10)},
        "encoding": {"y": style.category("y", names, title=y)},
        "layer": [*style.error_bars("x", numbers), dot, words, *style.gaps("x", rows, at=min(reach))],
    }
    return style.assemble(body, rows=rows, title=title, subtitle=subtitle)


_WIDTH, _HEIGHT = 250, 130
_STEP = 19
_LABEL = 22
"""How many letters of a label are shown."""


def small_shares(
    labels: Items,
    shares: Items,
    others: Items | None = None,
    *,
    title: str,
    names: tuple[str, str] = ("real", "synthetic"),
    subtitle: str = "",
    ordered: bool = False,
) -> Figure:
    """Return a small chart of shares as bars, with other shares marked on them.

    Args:
        labels: the cells.
        shares: a share per cell, drawn as a bar.
        others: another share per cell, drawn as a line for ordered cells and as a stroke for others.
        title: what the chart shows, such as the name of a column.
        names: of the shares and the others.
        subtitle: for example how far apart they are.
        ordered: whether the cells follow each other, like bins of numbers: such bars stand, others lie.
    """
    cells = inputs.distinct_labels(labels, name="labels")
    first = inputs.some_numbers(shares, name="shares")
    second = [None] * len(first) if others is None else inputs.some_numbers(others, name="others")
    for count in (len(first), len(second)):
        inputs.same_length(len(cells), count, names=("labels", "shares"))
    style.not_too_many(len(cells), what="cells")
    rows = [
        {"label": label, "first": one, "second": two, "reads": _share(one), "others": _share(two)}
        for label, one, two in zip(cells, first, second, strict=True)
    ]
    tips = {"label": title, "reads": names[0]} | ({} if others is None else {"others": names[1]})
    numbers = _axis([*first, *second])
    body = _standing(cells, numbers, tips) if ordered else _lying(cells, numbers, tips)
    if others is None:
        body["layer"] = body["layer"][:1]
    figure = style.assemble(body, rows=rows, title=title, subtitle=subtitle).to_dict()
    figure["title"] |= {"fontSize": 13, "subtitleFontSize": 11, "offset": 8}
    figure["config"]["padding"] = 8
    return Figure.from_dict(figure)


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)


def _axis(found: list[float | None]) -> Spec:
    axis = style.quantity(found, title="")
    axis["axis"] |= {"format": "~%", "tickCount": 4}
    return axis


def _standing(cells: list[str], numbers: Spec, tips: dict[str, str]) -> Spec:
    step = _WIDTH / len(cells)
    across = style.category("x", cells, title="", step=step, paddingInner=0.1, paddingOuter=0)
    line = {"type": "line", "interpolate": "step", "color": style.PALETTE[1], "strokeWidth": 1.8}
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "encoding": {"x": across},
        "layer": [
            {
                "mark": {"type": "bar", "color": style.PALE},
                "encoding": {"y": {**numbers, "field": "first"}, "tooltip": style.tooltip(**tips)},
            },
            {"mark": line, "encoding": {"y": {**numbers, "field": "second"}}},
        ],
    }


def _lying(cells: list[str], numbers: Spec, tips: dict[str, str]) -> Spec:
    up = style.category("y", cells, title="", paddingInner=0.25, paddingOuter=0.1)
    up["axis"] |= {"labelExpr": f"truncate(replace(datum.label, '\\n', ' '), {_LABEL})", "labelOffset": 0}
    stroke = {"type": "tick", "color": style.PALETTE[1], "thickness": 3, "size": _STEP - 2, "orient": "vertical"}
    return {
        "width": _WIDTH - 60,
        "height": {"step": _STEP},
        "encoding": {"y": up},
        "layer": [
            {
                "mark": {"type": "bar", "color": style.PALE},
                "encoding": {"x": {**numbers, "field": "first"}, "tooltip": style.tooltip(**tips)},
            },
            {"mark": stroke, "encoding": {"x": {**numbers, "field": "second"}}},
        ],
    }
