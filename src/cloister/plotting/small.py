"""Small charts of shares, to be put side by side: one distribution, or one beside another, per column of a table."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.plotting import inputs, style
from cloister.plotting.figure import Figure
from cloister.plotting.style import Spec

_WIDTH, _HEIGHT = 250, 130
_STEP = 19
_LABEL = 22
"""How many letters of a label are shown."""
_LEAST = 1e-6
"""Smaller shares are not told apart: estimates that should be 0 are 1e-40 instead."""


def small_shares(
    labels: Sequence[object],
    shares: Sequence[object],
    others: Sequence[object] | None = None,
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
        {"label": label, "first": one, "second": two, "reads": _percent(one), "others": _percent(two)}
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


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return "under 0.0001%" if 0 < share < _LEAST else f"{100 * share:.3g}%"


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
