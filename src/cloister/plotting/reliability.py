"""Reliability: how often something happened that was said to happen with some probability."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.errors import ParameterError
from cloister.plotting import inputs, style
from cloister.plotting.figure import Figure
from cloister.plotting.style import Spec


def reliability_diagram(
    claimed: Sequence[object],
    observed: Sequence[object],
    intervals: Sequence[tuple[object, object]],
    counts: Sequence[object],
    *,
    title: str,
    x: str,
    y: str,
    subtitle: str = "",
) -> Figure:
    """Return one dot per bin of claims, with its interval and count, around the diagonal of honest claims.

    Args:
        claimed: the mean probability that was claimed, for each bin.
        observed: how often it came true.
        intervals: (low, high) of that share.
        counts: how many claims each bin has, written beside its dot.
        title: what the chart shows.
        x: the title of the axis with the claims.
        y: the title of the axis with what happened.
        subtitle: for example "95% intervals".
    """
    places, heights = inputs.numbers(claimed, name="claimed"), inputs.numbers(observed, name="observed")
    numbers = inputs.numbers(counts, name="counts")
    ends = [inputs.numbers(pair, name="intervals") for pair in intervals]
    for name, found in (("observed", heights), ("intervals", ends), ("counts", numbers)):
        inputs.same_length(len(places), len(found), names=("claimed", name))
    everything = [*places, *heights, *(end for pair in ends for end in pair)]
    if any(value is None or not 0 <= value <= 1 for value in everything) or any(len(pair) != 2 for pair in ends):
        raise ParameterError("A reliability diagram shows shares.", fix="give numbers from 0 to 1, without gaps.")
    style.not_too_many(len(places), what="bins", most=100)
    rows = [
        {"claimed": place, "value": height, "low": pair[0], "high": pair[1], "count": count, "reads": f"{height:.4g}"}
        for place, height, pair, count in zip(places, heights, ends, numbers, strict=True)
    ]
    across, up = (style.quantity([0, 1], title=name, domain=[0, 1]) for name in (x, y))
    shared = {"x": {**across, "field": "claimed"}}
    return style.assemble(
        {"layer": [_diagonal(across, up), *_intervals(shared, up), *_dots(shared, up, titles=(x, y))]},
        rows=rows,
        title=title,
        subtitle=subtitle,
    )


def _diagonal(across: Spec, up: Spec) -> Spec:
    return {
        "data": {"values": [{"claimed": 0, "value": 0}, {"claimed": 1, "value": 1}]},
        "mark": {"type": "line", "strokeDash": [6, 4], "color": "#8C8C8C", "strokeWidth": 1.5},
        "encoding": {"x": {**across, "field": "claimed"}, "y": {**up, "field": "value"}},
    }


def _intervals(shared: Spec, up: Spec) -> list[Spec]:
    return [{**layer, "encoding": {**shared, **layer["encoding"]}} for layer in style.error_bars("y", up)]


def _dots(shared: Spec, up: Spec, *, titles: tuple[str, str]) -> list[Spec]:
    place = {**shared, "y": {**up, "field": "value"}}
    tips = style.tooltip(claimed=titles[0], value=titles[1], low="from", high="to", count="count")
    words = {"type": "text", "align": "left", "dx": 9, "dy": 4, "fontSize": 11, "color": style.INK}
    return [
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, "color": style.PALETTE[0]},
            "encoding": {**place, "tooltip": tips},
        },
        {"mark": words, "encoding": {**place, "text": {"field": "count", "type": "quantitative", "format": ","}}},
    ]
