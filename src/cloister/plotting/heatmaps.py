"""Heatmaps: a grid of cells, each colored and written by its number, such as noisy counts by two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloister.plotting import _style as style, inputs
from cloister.plotting._style import Spec
from cloister.plotting.figure import Figure
from cloister.plotting.inputs import Items

_SIDE = 520
_MOST_CELLS = 40_000
_MOST_WRITTEN = 144
_TIGHT = {"paddingInner": 0, "paddingOuter": 0}
_EMPTY = "#D9D9D9"


def heatmap(
    rows: Items,
    columns: Items,
    values: Sequence[Sequence[object]] | Any,  # or an array
    *,
    title: str,
    x: str,
    y: str,
    legend: str = "",
    subtitle: str = "",
    side: int = _SIDE,
    darkest: float | None = None,
) -> Figure:
    """Return a grid of colored cells; small grids also have the numbers written in them.

    Args:
        rows: the labels of the rows, from top to bottom; for a map, from north to south.
        columns: the labels of the columns, from left to right.
        values: one sequence per row with one number per column; None or NaN leaves the cell gray.
        title: what the chart shows.
        x: the title of the columns.
        y: the title of the rows.
        legend: what the colors stand for.
        subtitle: for example "95% of the time within ±12 per cell; epsilon = 0.2 per row".
        side: about how many pixels the longer side has; small grids stay readable.
        darkest: the number of the darkest color, so that several grids can be compared; by default the largest number.
    """
    down, across = inputs.distinct_labels(rows, name="rows"), inputs.distinct_labels(columns, name="columns")
    found = inputs.flatten(values, shape=(len(down), len(across)))
    style.not_too_many(len(found), what="cells", most=_MOST_CELLS)
    pairs = [(row, column) for row in down for column in across]
    data = [
        {"row": row, "label": column, "value": value, "reads": inputs.number_with_margin(value)}
        for (row, column), value in zip(pairs, found, strict=True)
    ]
    is_written = len(found) <= _MOST_WRITTEN and side >= _SIDE
    width, height = _cell(down, across, data if is_written else [], side=side)
    shades = _shades(found, darkest)
    body = {
        "width": {"step": width},
        "height": {"step": height},
        "encoding": {
            "x": _columns(columns, across, title=x, step=width),
            "y": _rows(down, title=y, step=height),
        },
        "layer": [
            _cells(shades, found, legend=legend, titles=(y, x), length=height * len(down)),
            *(_numbers(shades) if is_written else []),
        ],
    }
    return style.assemble(body, rows=data, title=title, subtitle=subtitle)


def _cell(down: list[str], across: list[str], written: list[Spec], *, side: int) -> tuple[float, float]:
    """Return the width and height of a cell: square, unless numbers are written in it."""
    side = max(3, min(44, side // max(len(down), len(across))))
    if not written:
        return side, side
    room, height = style.text_size([item["reads"] for item in written])
    return max(side, room + 12), max(side, height + 9)


def _columns(original: Items, names: list[str], *, title: str, step: float) -> Spec:
    """Return the encoding of the columns: labels side by side, thinned out, or turned."""
    width, _ = style.text_size(names)
    fits = width + 8 <= step
    thinned = not fits and inputs.are_ordered(original)
    if fits or thinned:
        return style.category("x", names, title=title, step=step if thinned else 0, **_TIGHT)
    encoding = style.category("x", names, title=title, **_TIGHT)
    encoding["axis"] |= {"labelAngle": -90, "labelAlign": "right", "labelBaseline": "middle"}
    return encoding


def _rows(names: list[str], *, title: str, step: float) -> Spec:
    _, height = style.text_size(names)
    encoding = style.category("y", names, title=title, step=step if height > step else 0, **_TIGHT)
    return encoding | {"field": "row"}


def _cells(shades: Spec, found: list[float | None], *, legend: str, titles: tuple[str, str], length: float) -> Spec:
    length = max(60, min(200, length - 20))
    look: Spec = {"title": legend or None, "format": style.number_format(found)}
    look |= {"gradientLength": length, "tickCount": length // 40}
    shade = {"field": "value", "type": "quantitative", "scale": shades, "legend": look}
    empty = {"test": "!isValid(datum.value)", "value": _EMPTY}
    tips = style.tooltip(row=titles[0], label=titles[1], reads=legend)
    return {
        "mark": {"type": "rect", "invalid": None},
        "encoding": {"color": {"condition": empty, **shade}, "tooltip": tips},
    }


def _shades(found: list[float | None], darkest: float | None) -> Spec:
    """Return the scale of colors, from pale to dark; it begins at zero unless noise made a cell negative."""
    here = inputs.present(found)
    low, high = min(0.0, *here), max(here) if darkest is None else darkest
    return {"scheme": "yellowgreenblue", "domain": [low, high if high > low else low + 1]}


def _numbers(shades: Spec) -> list[Spec]:
    """Return the layer of numbers in the cells, light on dark cells and dark on pale ones."""
    low, high = shades["domain"]
    dark = {"test": f"isValid(datum.value) && datum.value > {low + 0.62 * (high - low)!r}", "value": "white"}
    mark = {"type": "text", "fontSize": 12}
    return [{"mark": mark, "encoding": {"text": {"field": "reads"}, "color": {"condition": dark, "value": style.INK}}}]
