"""Answers of foreign algorithms for people: each number with its place, its margin, and the column that it is about."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pyarrow as pa

from cloister.hub.domain.algorithms import Output
from cloister.hub.sandbox.planning import Plan
from cloister.hub.sandbox.running import ForeignAnswer

__all__ = ["rows_of", "told", "words_of"]

_MOST_SHOWN = 60


def told(planned: Plan) -> str:
    """Return what a run gives and how exact its noise leaves it, before anything is paid."""
    lines = [f"{planned.manifest.title} ({planned.manifest.id} {planned.manifest.version}), {planned.blocks} blocks"]
    margins = planned.margins()
    for clip in planned.layout.clips:
        shape = " x ".join(map(str, clip.shape)) or "one number"
        margin = margins.get(clip.name)
        exactness = (
            "no margin can be told" if margin is None else f"noise of at most ± {margin.max():.3g}, 19 times of 20"
        )
        lines.append(f"{clip.name} ({shape}): {exactness}")
    return "\n".join(lines)


def rows_of(planned: Plan, answer: ForeignAnswer) -> pa.Table:
    """Return a table with one row for each number: the output, the place in it, the value and the margin."""
    outputs, places, values, margins = [], [], [], []
    for output in planned.manifest.outputs:
        found = answer.values[output.name]
        margin = answer.margins.get(output.name)
        for place, words in zip(itertools.product(*map(range, found.shape)), _places(planned, output), strict=True):
            outputs.append(output.name)
            places.append(words)
            values.append(float(found[place]))
            margins.append(None if margin is None else float(margin[place]))
    return pa.table(
        {
            "output": pa.array(outputs, pa.string()),
            "place": pa.array(places, pa.string()),
            "value": pa.array(values, pa.float64()),
            "margin": pa.array(margins, pa.float64()),
        }
    )


def words_of(rows: pa.Table) -> tuple[tuple[str, str], ...]:
    """Return the first numbers as (name, text) for the page."""
    shown = []
    for row in rows.slice(0, _MOST_SHOWN).to_pylist():
        name = f"{row['output']} {row['place']}".strip()
        shown.append((name, _with_margin(row["value"], row["margin"])))
    if rows.num_rows > _MOST_SHOWN:
        shown.append(("more", f"{rows.num_rows - _MOST_SHOWN:,} more numbers are in answer.csv"))
    return tuple(shown)


def _with_margin(value: float, margin: float | None) -> str:
    """Return a number with as many digits as its margin leaves meaningful."""
    if not margin or not math.isfinite(margin):
        return f"{value:.6g}"
    digits = max(0, 1 - math.floor(math.log10(margin)))
    return f"{value:.{digits}f} ± {margin:.{digits}f}"


def _places(planned: Plan, output: Output) -> Iterator[str]:
    """Return what each number of an output is about: its numbers along the axes, or the column on an input's axis."""
    axes = []
    clip = next(clip for clip in planned.layout.clips if clip.name == output.name)
    for axis, length in zip(output.shape, clip.shape, strict=True):
        columns = planned.columns.get(axis) if isinstance(axis, str) else None
        axes.append([str(place + 1) for place in range(length)] if columns is None else list(columns))
    return (", ".join(parts) for parts in itertools.product(*axes))
