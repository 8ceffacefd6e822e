"""Answers: numbers with their guarantee, their margin of error, and what they do not say.

Charts of answers are drawn with error bars, from released numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.core.exact import Number
from cloister.core.result import Result
from cloister.core.wordings import format_estimate
from cloister.data.bins import BinInterval
from cloister.errors import MissingExtraError, ParameterError, did_you_mean
from cloister.plotting import Figure, bars_with_errors, grouped_bars_with_errors, heatmap, points_with_errors
from cloister.queries._uncertainty import Exactly, Uncertainty

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Answer", "Estimate", "Frame", "chart_of_answer", "chart_of_frame"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """One column of an answer: a value for each row, with its error. Columns of groups have none."""

    name: str
    values: NDArray[Any]
    error: Uncertainty = field(repr=False)
    is_key: bool = False

    @classmethod
    def key(cls, name: str, values: list[Any]) -> Estimate:
        """Return a column of public (or privately chosen) groups."""
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return cls(name=name, values=column, error=Exactly(len(values)), is_key=True)

    def margins(self, confidence: Number = 0.95) -> NDArray[np.float64]:
        """Return the half-width of each value at a confidence."""
        return self.error.margins(confidence)

    def take(self, rows: NDArray[np.int64]) -> Estimate:
        """Return some of the rows, in an order."""
        return replace(self, values=self.values[rows], error=self.error.take(rows))

    def named(self, name: str) -> Estimate:
        """Return the same column under another name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Result):
    """One private number (or value), with its margin of error.

    Attributes:
        name: what was asked, such as ``mean of age``.
        value: the answer.
        cost: what was taken from the budget; nothing for a repeat.
        event: what ran, for the accountants.
        notes: what the margin does not cover, in words.
        error: the law of the error.
    """

    schema: ClassVar[str] = "cloister.query_answer/1"

    name: str
    value: Any  # a number, or a category
    cost: Budget
    event: Event = field(repr=False)
    notes: tuple[str, ...] = ()
    error: Uncertainty = field(repr=False)

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width that covers the error with a probability; NaN where no half-width applies."""
        return float(self.error.margins(confidence)[0])

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise, to first order; NaN where it is not known."""
        return float(self.error.deviations()[0])

    def interval(self, confidence: Number = 0.95) -> tuple[float, float]:
        """Return (low, high)."""
        margin = self.margin(confidence)
        return self.value - margin, self.value + margin

    def __str__(self) -> str:
        margin = self.margin()
        shown = show_number(self.value, margin)
        words = getattr(self.error, "words", "")
        width = f" ({words}, 95%)" if math.isnan(margin) else f" ± {show_number(margin, margin)} (95%)"
        return f"{shown}{width}, {self.guarantee.brief()}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            (self.name, str(self)),
            ("cost", repr(self.cost)),
            ("promise", self.guarantee.explain()),
            *(("note", note) for note in self.notes),
        )

    def plot(self) -> Figure:
        """Return a chart of the value with its error bar."""
        return chart_of_answer(self)

    def _fields(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": plain(self.value),
            "margin": {"confidence": 0.95, "half_width": plain(self.margin())},
            "cost": self.cost.to_dict(),
            "event": self.event.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame(Result):
    """A private table of answers: columns of groups, and columns of noisy numbers with their margins."""

    schema: ClassVar[str] = "cloister.query_frame/1"

    columns: tuple[Estimate, ...]
    cost: Budget
    event: Event = field(repr=False)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.column(name).values

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Estimate:
        """Return a column by name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise ParameterError(
            f'The answer has no column "{name}".{did_you_mean(str(name), self.names)}',
            fix=f"use one of {', '.join(self.names)}.",
        )

    def margin(self, confidence: Number = 0.95) -> dict[str, NDArray[np.float64]]:
        """Return the half-widths of every noisy column."""
        return {column.name: column.margins(confidence) for column in self.columns if not column.is_key}

    def __str__(self) -> str:
        return f"{self._table()}\n{self.guarantee.brief()}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            ("answer", f"{len(self)} rows: {', '.join(self.names)}"),
            ("cost", repr(self.cost)),
            ("promise", self.guarantee.explain()),
            *(("note", note) for note in self.notes),
        )

    def to_arrow(self, *, margins: bool = False) -> pa.Table:
        """Return an Arrow table; with ``margins``, each noisy column is followed by its 95% half-width."""
        names, arrays = [], []
        for column in self.columns:
            names.append(column.name)
            arrays.append(_array(column))
            if margins and not column.is_key:
                names.append(f"{column.name} ±")
                arrays.append(pa.array(column.margins()))
        return pa.table(arrays, names=names)

    def to_pandas(self, *, margins: bool = False) -> pd.DataFrame:
        """Return a pandas data frame."""
        try:
            import pandas as pd  # noqa: F401  # Arrow needs it
        except ImportError:
            raise MissingExtraError(what="Data frames", package="pandas", extra="pandas") from None
        return self.to_arrow(margins=margins).to_pandas()

    def to_polars(self, *, margins: bool = False) -> pl.DataFrame:
        """Return a polars data frame."""
        try:
            import polars as pl
        except ImportError:
            raise MissingExtraError(what="Polars data frames", package="polars", extra="polars") from None
        return pl.from_arrow(self.to_arrow(margins=margins))

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values."""
        return [{column.name: plain(column.values[row]) for column in self.columns} for row in range(len(self))]

    def plot(self, column: str | None = None) -> Figure:
        """Return a chart of one noisy column (by default the first) over the groups, with error bars."""
        return chart_of_frame(self, column)

    def _fields(self) -> dict[str, Any]:
        return {
            "columns": [_column_fields(column) for column in self.columns],
            "cost": self.cost.to_dict(),
            "event": self.event.to_dict(),
            "notes": list(self.notes),
        }

    def _table(self, *, most: int = 40) -> str:
        cells = [_format_column(column, most) for column in self.columns]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in zip(*cells, strict=True)
        ]
        more = len(self) - most
        return "\n".join([*lines, f"... and {more:,} more rows"] if more > 0 else lines)


def plain(value: Any) -> Any:  # a number, category or interval
    """Return a JSON-ready value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | bool) or value is None else str(value)


def show_number(value: Any, margin: float) -> str:
    """Return a number with as many digits as its margin of error deserves, anything else as text."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return str(value)
    return format_estimate(value, margin if margin > 0 else None)


def _format_column(column: Estimate, most: int) -> list[str]:
    values, margins = column.values[:most], column.margins()[:most]
    if column.is_key:
        return [column.name, *map(str, values)]
    cells = []
    for value, margin in zip(values, margins, strict=True):
        width = "" if math.isnan(margin) else f" ± {show_number(float(margin), float(margin))}"
        cells.append(f"{show_number(value, float(margin))}{width}")
    words = getattr(column.error, "words", "")
    return [f"{column.name} ({words})" if words else column.name, *cells]


def _column_fields(column: Estimate) -> dict[str, Any]:
    values = [plain(value) for value in column.values]
    if column.is_key:
        return {"name": column.name, "values": values}
    margins = [plain(margin) for margin in column.margins()]
    return {"name": column.name, "values": values, "margin": {"confidence": 0.95, "half_widths": margins}}


def _array(column: Estimate) -> pa.Array:
    if any(isinstance(value, BinInterval) for value in column.values):
        return pa.array([str(value) for value in column.values])
    return pa.array(column.values.tolist())


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
    is_grid = all(isinstance(item, BinInterval) for item in (*rows, *columns))
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
