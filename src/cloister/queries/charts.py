"""Charts of answers, with error bars: released numbers only."""

from __future__ import annotations

import math

import numpy as np

from cloister.data.bins import Interval
from cloister.errors import ParameterError
from cloister.plotting import Figure, bars_with_errors, grouped_bars_with_errors, heatmap, points_with_errors
from cloister.queries.answers import Answer, Estimate, Frame

__all__ = ["chart_of_answer", "chart_of_frame"]

_FEW = 6


def chart_of_answer(answer: Answer) -> Figure:
    """Return one number with its interval."""
    return points_with_errors(
        [answer.name],
        [answer.value],
        _finite([answer.margin()]),
        title=answer.name,
        x="",
        subtitle=_promise(answer, _finite([answer.margin()])),
    )


def chart_of_frame(frame: Frame, name: str | None = None) -> Figure:
    """Return one noisy column over the groups: bars for one key, grouped bars or a heat map for two.

    Of two keys in bins, the first one grows upward, as latitudes do on a map.
    """
    keys = [column for column in frame.columns if column.is_key]
    column = _noisy(frame, name)
    if not keys:
        return _single(frame, column)
    if len(keys) == 1:
        first = keys[0]
        return bars_with_errors(
            list(first.values),
            list(column.values),
            _widths(column),
            title=f"{column.name} by {first.name}",
            x=first.name,
            y=column.name,
            subtitle=_promise(frame, _widths(column)),
        )
    if len(keys) == 2:
        return _of_two(frame, keys, column)
    raise ParameterError(
        f"A chart shows one or two keys, and the answer has {len(keys)}.",
        fix="ask with fewer keys, or use to_pandas().",
    )


def _single(frame: Frame, column: Estimate) -> Figure:
    return points_with_errors(
        [column.name],
        list(column.values),
        _widths(column),
        title=column.name,
        x="",
        subtitle=_promise(frame, _widths(column)),
    )


def _of_two(frame: Frame, keys: list[Estimate], column: Estimate) -> Figure:
    first, second = keys
    rows, columns = _distinct(first), _distinct(second)
    title = f"{column.name} by {first.name} and {second.name}"
    is_grid = all(isinstance(item, Interval) for item in (*rows, *columns))
    if len(columns) <= _FEW and not is_grid:
        return grouped_bars_with_errors(
            list(first.values),
            list(second.values),
            list(column.values),
            _widths(column),
            title=title,
            x=first.name,
            y=column.name,
            legend=second.name,
            subtitle=_promise(frame, _widths(column)),
        )
    places = {(str(a), str(b)): value for a, b, value in zip(first.values, second.values, column.values, strict=True)}
    rows = rows[::-1] if is_grid else rows
    cells = [[places.get((str(a), str(b)), np.nan) for b in columns] for a in rows]
    return heatmap(
        rows,
        columns,
        cells,
        title=title,
        x=second.name,
        y=first.name,
        legend=column.name,
        subtitle=_margin(frame, column),
    )


def _noisy(frame: Frame, name: str | None) -> Estimate:
    if name is not None:
        return frame.column(name)
    found = [column for column in frame.columns if not column.is_key]
    if not found:
        raise ParameterError("The answer has no numbers to draw.", fix="ask for at least one aggregate.")
    return found[0]


def _distinct(column: Estimate) -> list[object]:
    return list(dict.fromkeys(column.values))


def _widths(column: Estimate) -> list[float | None]:
    return _finite(column.margins().tolist())


def _finite(margins: list[float]) -> list[float | None]:
    return [margin if math.isfinite(margin) else None for margin in margins]


def _promise(result: Answer | Frame, widths: list[float | None]) -> str:
    drawn = any(width is not None for width in widths)
    lines = "thin lines: the noise is within, 95% of the time" if drawn else "the error has no half-width to draw"
    return f"{lines}; {result.guarantee.brief()}"


def _margin(frame: Frame, column: Estimate) -> str:
    widest = float(np.nanmax(column.margins()))
    return f"each within ±{widest:,.3g} 95% of the time; {frame.guarantee.brief()}"
