"""Curves: how one number depends on another, such as the error on epsilon, and how often what was claimed happened."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, TypeAlias

from cloister.errors import ParameterError, ParameterTypeError, did_you_mean
from cloister.plotting import _style as style, inputs
from cloister.plotting._style import Spec
from cloister.plotting.figure import Figure
from cloister.plotting.inputs import Items

Tracks: TypeAlias = dict[str, list[tuple[Any, ...]]]
"""Per series its points: a number or a date, and one or two heights."""

_MOST_DOTTED = 30
_MOST_POINTS = 20_000
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_DASHES = ([1, 0], [8, 4], [2, 3], [8, 3, 2, 3], [14, 4], [5, 2], [2, 6], [14, 3, 2, 3])


def lines(
    series: Mapping[str, Sequence[tuple[object, object]]],
    *,
    title: str,
    x: str,
    y: str,
    legend: str = "",
    subtitle: str = "",
    bands: Mapping[str, Sequence[tuple[object, object, object]]] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    from_zero: bool = True,
) -> Figure:
    """Return one line per series, told apart by color and by the shape of its points or its dashes.

    Args:
        series: per name the points (x, y), joined from left to right; x is a number, or a date or time (shown in
            UTC); a missing y leaves a gap.
        title: what the chart shows.
        x: the title of the horizontal axis.
        y: the title of the vertical axis.
        legend: the title of the names.
        subtitle: for example "95% of the time within the band".
        bands: per name of a series the stretches (x, low, high) to shade behind its line.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is logarithmic.
        from_zero: whether the vertical axis starts at zero; without it, small differences fill the chart.
    """
    tracks, shades = _tracks(series, name="series", width=2), _tracks(bands or {}, name="bands", width=3)
    _check_series(tracks, shades)
    points = [point for track in (*tracks.values(), *shades.values()) for point in track]
    places, heights = [point[0] for point in points], [height for point in points for height in point[1:]]
    is_time = all(isinstance(place, date) for place in places)
    across = _time_axis(x) if is_time else _axis(_places(places), name="log_x", title=x, is_log=log_x, zero=False)
    up = _axis(inputs.some_numbers(heights, name="series"), name="log_y", title=y, is_log=log_y, zero=from_zero)
    color = style.colors(list(tracks), title=legend, legend=len(tracks) > 1)
    layers = [*_bands(shades, across, up, color), *_curves(tracks, across, up, color, titles=(legend, x, y))]
    return style.assemble({"layer": layers}, rows=_rows(tracks, "y"), title=title, subtitle=subtitle)


def _tracks(series: Mapping[str, Sequence[Sequence[object]]], *, name: str, width: int) -> Tracks:
    """Return points as plain values under the names as they will be written."""
    if not isinstance(series, Mapping):
        raise ParameterTypeError(
            f"{name} is not a mapping.", fix='give names with their points: {"Laplace": [(0.1, 30), (1, 3)]}.'
        )
    names = inputs.distinct_labels(series, name=name)
    return {label: _points(found, name=name, width=width) for label, found in zip(names, series.values(), strict=True)}


def _points(found: Sequence[Sequence[object]], *, name: str, width: int) -> list[tuple[Any, ...]]:
    points = [inputs.items(point, name=f"a point of {name}") for point in inputs.items(found, name=name)]
    if any(len(point) != width or point[0] is None for point in points):
        parts = "(x, y)" if width == 2 else "(x, low, high)"
        raise ParameterError(f"A point of {name} is incomplete.", fix=f"give every point as {parts}.")
    return [(place, *inputs.numbers(rest, name=name)) for place, *rest in points]


def _check_series(tracks: Tracks, shades: Tracks) -> None:
    if not any(tracks.values()):
        raise ParameterError("There is nothing to draw: series has no points.", fix="give at least one point.")
    style.not_too_many(sum(map(len, (*tracks.values(), *shades.values()))), what="points", most=_MOST_POINTS)
    for name in shades.keys() - tracks.keys():
        raise ParameterError(
            f'The band "{name}" belongs to no series.{did_you_mean(name, tracks)}',
            fix="give bands under the names of series.",
        )


def _places(found: list[Any]) -> list[float | None]:
    if any(isinstance(place, date) for place in found):
        raise ParameterTypeError("x is a number in some points and a date in others.", fix="give one kind of x.")
    return inputs.numbers(found, name="x")


def _axis(found: list[float | None], *, name: str, title: str, is_log: bool, zero: bool = True) -> Spec:
    if not is_log:
        return style.quantity(found, title=title, zero=zero)
    if any(value <= 0 for value in inputs.present(found)):
        raise ParameterError(
            "A logarithmic axis has no room for zero and negative numbers.",
            fix=f"leave those points out, or write {name}=False.",
        )
    axis = style.quantity(found, title=title, zero=False, type="log")
    del axis["scale"]["zero"]
    ticks = _ticks(inputs.present(found))
    axis["axis"] |= {"values": ticks, "tickCount": len(ticks)}
    spelled = style.number_format([ticks[-1]]) if ticks[0] >= 1e-6 else "~e"
    axis["axis"] |= {"labelExpr": f"format(datum.value, '{spelled}')"}
    return axis


def _ticks(found: list[float]) -> list[float]:
    """Return round numbers for a logarithmic axis: powers of ten, and 2 and 5 times those where there are few."""
    low, high = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))
    if high - low > 2:
        return [float(f"1e{power}") for power in range(low, high + 1, math.ceil((high - low) / 8))]
    return [float(f"{digit}e{power}") for power in range(low, high) for digit in (1, 2, 5)] + [float(f"1e{high}")]


def _time_axis(title: str) -> Spec:
    return {"type": "temporal", "scale": {"type": "utc"}, "axis": {"title": title, "grid": True}}


def _rows(tracks: Tracks, *fields: str) -> list[Spec]:
    rows = []
    for name, track in tracks.items():
        for place, *rest in track:
            where = inputs.moment(place) if isinstance(place, date) else float(place)
            rows.append({"series": name, "x": where, **dict(zip(fields, rest, strict=True))})
    return rows


def _bands(shades: Tracks, across: Spec, up: Spec, color: Spec) -> list[Spec]:
    if not shades:
        return []
    encoding = {"x": {**across, "field": "x"}, "y": {**up, "field": "low"}, "y2": {"field": "high"}, "color": color}
    mark = {"type": "area", "opacity": 0.2}
    return [{"data": {"values": _rows(shades, "low", "high")}, "mark": mark, "encoding": encoding}]


def _curves(tracks: Tracks, across: Spec, up: Spec, color: Spec, *, titles: tuple[str, str, str]) -> list[Spec]:
    """Return the lines, with points of different shapes where there are few, and different dashes where not."""
    encoding = {"x": {**across, "field": "x"}, "y": {**up, "field": "y"}, "color": color}
    line = {"type": "line", "strokeWidth": 2.2}
    if max(map(len, tracks.values())) > _MOST_DOTTED:
        return [{"mark": line, "encoding": encoding | {"strokeDash": _also(color, _DASHES)}}]
    tips = style.tooltip(series=titles[0], x=titles[1], y=titles[2])
    dots = {"mark": {"type": "point", "filled": True, "size": 55, "opacity": 1}}
    return [
        {"mark": line, "encoding": encoding},
        {**dots, "encoding": encoding | {"shape": _also(color, _SHAPES), "tooltip": tips}},
    ]


def _also(color: Spec, choices: Sequence[object]) -> Spec:
    """Return the encoding that tells the series of a color apart by something else as well."""
    names = color["scale"]["domain"]
    legend = color["legend"] and color["legend"] | {"symbolSize": 800 if choices is _DASHES else 90}
    return {**color, "scale": {"domain": names, "range": list(choices[: len(names)])}, "legend": legend}


def reliability_diagram(
    claimed: Items,
    observed: Items,
    intervals: Sequence[tuple[object, object]],
    counts: Items,
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
