"""How every chart looks: sizes, colors, titles, axes and which of their labels are written, error bars.

Colors are those of Okabe and Ito ("Color universal design", 2008), which people with any common kind of color
blindness can tell apart, the ones with the best contrast on white first. Gray and brown stand in for their black, which
would hide error bars, and their yellow, which is lost on white.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from cloister.errors import ParameterError
from cloister.plotting import inputs
from cloister.plotting.figure import Figure

Spec: TypeAlias = dict[str, Any]
"""A part of a Vega-Lite specification."""

WIDTH = 560
HEIGHT = 320
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C8C8C", "#8F5A00")
MOST_SERIES = len(PALETTE)
MOST_MARKS = 1000
LINE = 15
"""The height of a line of an axis label, in pixels."""
INK = "#222222"
PALE = "#7DB8DA"

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
_LINES = "split(datum.label, '\\n')"


def assemble(body: Spec, *, rows: Sequence[Spec], title: str, subtitle: str) -> Figure:
    """Return the figure of layers with their data, a title and the common look."""
    heading: Spec = {"text": inputs.wrap_lines(title, 74)}
    if subtitle:
        heading["subtitle"] = inputs.wrap_lines(subtitle, 100)
    return Figure.from_dict(
        {
            "$schema": _SCHEMA,
            "description": ". ".join(part for part in (title, subtitle) if part),
            "title": heading,
            "data": {"values": list(rows)},
            "width": WIDTH,
            "height": HEIGHT,
            **body,
            "config": _config(),
        }
    )


def category(channel: str, names: Sequence[str], *, title: str, step: float = 0, **scale: Any) -> Spec:
    """Return the encoding of labels on an axis, in their order.

    Args:
        channel: "x" or "y".
        names: the labels from left to right, or from top to bottom.
        title: the axis title.
        step: the room of a label in pixels, where labels that do not fit may be left out.
        scale: options of the Vega-Lite scale.
    """
    axis: Spec = {"title": title or None, "labelExpr": _LINES, "labelLimit": 600, "ticks": False, "labelPadding": 6}
    axis |= {"labelAngle": 0, "labelOverlap": False}
    if channel == "y":
        axis["labelOffset"] = _center_offset(names)
    if step:
        axis["values"] = _thin_labels(channel, names, step)
    kind = {"field": "label", "type": "nominal", "sort": None}
    return {**kind, "scale": {"domain": list(names), **scale}, "axis": axis}


def quantity(found: Iterable[float | None], *, title: str, zero: bool = True, **scale: Any) -> Spec:
    """Return the encoding of numbers on an axis, with separators between thousands."""
    here = inputs.present(found)
    axis: Spec = {"title": title or None, "format": number_format(here), "grid": True, "tickCount": 6}
    # The format with an exponent writes zero as 0e+0.
    axis["labelExpr"] = "datum.value === 0 ? '0' : datum.label"
    # A chart of zeros alone would have no scale.
    if zero and not any(here):
        scale["domain"] = [0, 1]
    return {"type": "quantitative", "scale": {"zero": zero, "nice": True, **scale}, "axis": axis}


def number_format(found: Iterable[float | None]) -> str:
    """Return how axis numbers are written: plainly, or with an exponent where they are very long."""
    largest = max((abs(value) for value in inputs.present(found)), default=0)
    return "~e" if largest >= 1e10 or 0 < largest < 1e-5 else ",~f"


def colors(names: Sequence[str], *, title: str, field: str = "series", legend: bool = True) -> Spec:
    """Return the encoding of a few named series by color."""
    if len(names) > MOST_SERIES:
        raise ParameterError(
            f"{len(names)} colors in one chart cannot be told apart.",
            fix=f"draw at most {MOST_SERIES} series, draw several charts, or a heatmap.",
        )
    look = {"title": title or None, "labelExpr": _LINES, "labelLimit": 300, "symbolOpacity": 1}
    scale = {"domain": list(names), "range": list(PALETTE[: len(names)])}
    return {"field": field, "type": "nominal", "sort": None, "scale": scale, "legend": look if legend else None}


def error_bars(along: str, axis: Spec, *, room: float = 16) -> list[Spec]:
    """Return the layers of intervals from the fields "low" to "high" along an axis, with caps.

    Args:
        along: "x" or "y", the channel of the numbers.
        axis: the encoding of that channel.
        room: the width of a bar in pixels, which the caps stay within.
    """
    known = [{"filter": "isValid(datum.low)"}]
    rule = {along: {**axis, "field": "low"}, f"{along}2": {"field": "high"}}
    caps = [{along: {**axis, "field": end}} for end in ("low", "high")]
    orient = "vertical" if along == "x" else "horizontal"
    cap = {"type": "tick", "size": min(9, room / 2), "color": INK, "opacity": 1, "orient": orient}
    cap["thickness"] = weight = 1.6 if room >= 12 else 0.8
    return [
        {"transform": known, "mark": {"type": "rule", "strokeWidth": weight, "color": INK}, "encoding": rule},
        *({"transform": known, "mark": cap, "encoding": encoding} for encoding in caps),
    ]


def gaps(along: str, rows: Sequence[Spec], *, at: float = 0) -> list[Spec]:
    """Return the layer that says where a value is missing, if one is."""
    if all(row["value"] is not None for row in rows):
        return []
    align = {"baseline": "bottom", "dy": -4} if along == "y" else {"align": "left", "dx": 4}
    mark = {"type": "text", "text": "no value", "color": "#666666", "fontStyle": "italic", **align}
    missing = [{"filter": "!isValid(datum.value)"}]
    return [{"transform": missing, "mark": mark, "encoding": {along: {"datum": at, "type": "quantitative"}}}]


def interval_rows(
    found: Sequence[float | None], margins: Sequence[float | None], **columns: Sequence[object]
) -> list[Spec]:
    """Return one row per item: its value, the ends of its interval, the text that says both, and further columns."""
    rows = []
    for position, (value, margin) in enumerate(zip(found, margins, strict=True)):
        known = value is not None and margin is not None
        low, high = (value - margin, value + margin) if known else (None, None)  # type: ignore[operator]  # known
        row = {"value": value, "low": low, "high": high, "reads": inputs.number_with_margin(value, margin)}
        rows.append({**{name: column[position] for name, column in columns.items()}, **row})
    return rows


def ends(rows: Sequence[Spec]) -> list[float]:
    """Return every number that the rows of a chart reach."""
    return inputs.present(row[key] for row in rows for key in ("value", "low", "high"))


def tooltip(**titles: str) -> list[Spec]:
    """Return what an interactive viewer shows for a mark: fields with their titles.

    Vega-Lite puts these titles into an expression and escapes quotes alone: a backslash or a new line in a title would
    break the chart.
    """
    shown = {field: " ".join(title.split()).replace("\\", r"\\") for field, title in titles.items()}
    return [{"field": field, "type": "nominal", "title": title or field} for field, title in shown.items()]


def not_too_many(count: int, *, what: str, most: int = MOST_MARKS) -> None:
    """Refuse a chart that nobody could read."""
    if count > most:
        raise ParameterError(
            f"{count:,} {what} in one chart cannot be read.",
            fix=f"draw at most {most:,}: the largest, coarser groups, or several charts.",
        )


def text_size(names: Sequence[str]) -> tuple[float, float]:
    """Return about how wide and high the largest label is, in pixels."""
    lines = [name.split("\n") for name in names]
    return max(_width(line) for parts in lines for line in parts), max(len(parts) for parts in lines) * LINE


def _width(line: str) -> float:
    """Return about how wide a line is: East Asian letters take twice the room, capitals a third more."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in line)
    capital = sum(letter.isupper() or letter in "mwMW%@" for letter in line)
    return 6.4 * len(line) + 6 * wide + 2.4 * capital


def _center_offset(names: Sequence[str]) -> Spec | int:
    """Return how far a label of several lines moves up, so that its middle is where its mark is."""
    counts = sorted({name.count("\n") + 1 for name in names} - {1})
    tests = [{"test": f"length({_LINES}) === {count}", "value": (1 - count) * LINE / 2} for count in counts]
    return {"condition": tests, "value": 0} if tests else 0


def _thin_labels(channel: str, names: Sequence[str], step: float) -> list[str]:
    """Return every second, fifth, tenth ... label, as many as there is room for."""
    width, height = text_size(names)
    needed = (width + 8 if channel == "x" else height) / step
    # Steps of 1, 2 and 5 are those that a reader continues without counting.
    every = next(size * 10**power for power in range(9) for size in (1, 2, 5) if size * 10**power >= needed)
    return list(names[::every])


def _config() -> Spec:
    text = {"labelFont": _FONT, "titleFont": _FONT, "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": "white",
        "font": _FONT,
        "padding": 14,
        "title": {"anchor": "start", "frame": "bounds", "fontSize": 16, "subtitleFontSize": 12, "offset": 14}
        | {"subtitleColor": "#555555", "subtitlePadding": 5, "color": INK, "lineHeight": 20, "subtitleLineHeight": 16},
        "axis": {**text, "titleFontWeight": "normal", "labelColor": INK, "titleColor": INK, "titlePadding": 10}
        | {"gridColor": "#E4E4E4", "domainColor": "#888888", "tickColor": "#888888", "labelLineHeight": LINE}
        | {"labelFlush": False},
        "legend": {**text, "titleFontWeight": "normal", "labelColor": INK, "titleColor": INK},
        "view": {"stroke": None},
    }
