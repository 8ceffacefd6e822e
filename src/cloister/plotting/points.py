"""Dots with intervals: one or several single numbers."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.plotting import inputs, style
from cloister.plotting.figure import Figure


def points_with_errors(
    labels: Sequence[object],
    values: Sequence[object],
    margins: Sequence[object] | None = None,
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
