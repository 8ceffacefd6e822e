"""The numbers of a chart as a table: what a reader who does not see the picture gets."""

from __future__ import annotations

from cloister.plotting import Figure
from cloister.report import wording
from cloister.report.blocks import TableBlock


def chart_table(figure: Figure, *, most: int) -> TableBlock | None:
    """Return at most so many rows of a chart's numbers, or nothing if it has none."""
    columns, rows = figure.to_table()
    if not rows:
        return None
    left_out = len(rows) - most
    note = f"The first {most:,} of {len(rows):,} rows." if left_out > 0 else ""
    return TableBlock(columns, [[wording.plain(value) for value in row] for row in rows[:most]], caption=note)
