"""What a section is made of: a few kinds of blocks, each a frozen value that knows nothing of HTML or Markdown.

Texts, notes and captions may carry the emphasis of `cloister.report.markup`; titles, labels and cells are shown as
they are. Cells take text, numbers, dates, None and `Verdict`.

`chart_table` gives the numbers of a chart as a table, for a reader who does not see the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

from cloister.core.construction import construct, set_fields
from cloister.core.validation import check_choice
from cloister.core.wordings import percent
from cloister.errors import ParameterError, ParameterTypeError
from cloister.plotting import Figure, inputs
from cloister.report import markup
from cloister.report.markup import Status, Verdict, check_status

Cell: TypeAlias = str | int | float | Fraction | Decimal | date | Verdict | None
"""What a table may hold; once it is built, dates are text and numbers are whole or floating."""

Align = Literal["left", "right", "center"]
ALIGNMENTS: tuple[Align, ...] = ("left", "right", "center")


class NoticeKind(StrEnum):
    """What a notice is for."""

    PROMISE = "promise"
    WARNING = "warning"
    DANGER = "danger"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Text:
    """Running text; an empty line begins a new paragraph."""

    block: ClassVar[str] = "text"

    text: str

    def __post_init__(self) -> None:
        set_fields(self, text=markup.clean(self.text))


@dataclass(frozen=True, slots=True)
class Bullets:
    """A plain list of short texts."""

    block: ClassVar[str] = "bullets"

    items: Sequence[str]

    def __post_init__(self) -> None:
        set_fields(self, items=markup.lines(self.items, name="items"))


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, such as parameters."""

    block: ClassVar[str] = "facts"

    rows: Sequence[tuple[str, Cell]]

    def __post_init__(self) -> None:
        set_fields(self, rows=check_named_cells(self.rows, name="rows"))


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One number that matters, with what it means for the reader.

    Attributes:
        label: what is measured.
        value: the number, or a short text with it.
        meaning: one sentence that says what follows from it.
        status: how it stands.
    """

    label: str
    value: Cell
    meaning: str = ""
    status: Status = Status.NEUTRAL

    def __post_init__(self) -> None:
        set_fields(self, label=markup.one_line(self.label, name="label"), value=markup.to_cell(self.value))
        set_fields(self, meaning=markup.clean(self.meaning, name="meaning"), status=check_status(self.status))


@dataclass(frozen=True, slots=True)
class KeyFigures:
    """A few big numbers side by side."""

    block: ClassVar[str] = "key-figures"

    figures: Sequence[KeyFigure]

    def __post_init__(self) -> None:
        set_fields(self, figures=all_of(KeyFigure, self.figures, name="figures"))


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table.

    Attributes:
        columns: the headings.
        rows: one sequence of cells per row.
        align: "left", "right" or "center" per column; columns of numbers stand on the right unless told otherwise.
        caption: what the table shows.
    """

    block: ClassVar[str] = "table"

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    align: Sequence[Align] = ()
    caption: str = ""

    def __post_init__(self) -> None:
        columns = markup.lines(self.columns, name="columns")
        rows = tuple(_cells(row) for row in markup.several(self.rows, name="rows"))
        if not columns or any(len(row) != len(columns) for row in rows):
            raise ParameterError(
                "A row of the table has another length than its columns.", fix="give every row one cell per column."
            )
        align = _alignments(self.align, rows, count=len(columns))
        set_fields(self, columns=columns, rows=rows, align=align, caption=markup.clean(self.caption, name="caption"))


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of `cloister.plotting`: a picture where the extra ``plot`` is installed, and its numbers in any case."""

    block: ClassVar[str] = "chart"

    figure: Figure
    caption: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.figure, Figure):
            raise ParameterTypeError(
                "The chart is not a figure.", fix="make it with a function of cloister.plotting, or Figure.from_dict."
            )
        set_fields(self, caption=markup.clean(self.caption, name="caption"))


@dataclass(frozen=True, slots=True)
class Series:
    """One number per label, with a name; ``reads`` says the numbers in other words."""

    name: str
    values: Sequence[float | None]
    reads: Sequence[str] = ()

    def __post_init__(self) -> None:
        values = inputs.numbers(self.values, name="values")
        if any(value is not None and value < 0 for value in values):
            raise ParameterError("A bar cannot be negative.", fix="use a Chart for numbers below zero.")
        reads = markup.lines(self.reads, name="reads")
        if reads:
            inputs.same_length(len(values), len(reads), names=("values", "reads"))
        set_fields(self, name=markup.one_line(self.name, name="name"), values=tuple(values), reads=reads)


@dataclass(frozen=True, slots=True)
class Bars:
    """Small bars, one per label and series, that need no chart package.

    Attributes:
        labels: what the bars stand for.
        series: one or a few named sequences of numbers, such as "before" and "after".
        caption: what the bars show.
        percent: whether the numbers are shares, shown as percentages of a whole.
        maximum: the number of a full bar; by default 1 for shares, otherwise the largest number.
    """

    block: ClassVar[str] = "bars"

    labels: Sequence[str]
    series: Sequence[Series]
    caption: str = ""
    percent: bool = False
    maximum: float | None = None

    def __post_init__(self) -> None:
        labels = tuple(markup.one_line(label, name="a label") for label in markup.several(self.labels, name="labels"))
        series = all_of(Series, self.series, name="series")
        if not series:
            raise ParameterError("Bars without a series show nothing.", fix='give at least one Series("name", values).')
        for one in series:
            inputs.same_length(len(labels), len(one.values), names=("labels", "values"))
        set_fields(self, labels=labels, series=series, caption=markup.clean(self.caption, name="caption"))
        set_fields(self, maximum=self._full())

    def _full(self) -> float:
        largest = max((value for one in self.series for value in one.values if value is not None), default=0.0)
        given = self.maximum if self.maximum is not None else float(self.percent)
        return max(largest, given) or 1.0

    def read(self, series: Series, position: int) -> str:
        """Return the number of a bar in words."""
        if series.reads:
            return series.reads[position]
        value = series.values[position]
        return percent(value) if self.percent and value is not None else markup.format_value(value)


@dataclass(frozen=True, slots=True)
class Panels:
    """Small blocks side by side where there is room, such as one chart per column of a table."""

    block: ClassVar[str] = "panels"

    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        set_fields(self, blocks=check_blocks(self.blocks))


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that must not be overlooked: a promise, a warning, a danger, or a piece of information."""

    block: ClassVar[str] = "notice"

    kind: NoticeKind
    text: str
    title: str = ""

    def __init__(self, kind: NoticeKind | str, text: str, title: str = "") -> None:
        construct(self, kind=kind, text=text, title=title)

    def __post_init__(self) -> None:
        kind = NoticeKind(check_choice(self.kind, name="kind", allowed=tuple(NoticeKind)))
        title = markup.one_line(self.title, name="title") or _TITLES[kind]
        set_fields(self, kind=kind, text=markup.clean(self.text), title=title)


@dataclass(frozen=True, slots=True)
class Code:
    """Text for machines, shown letter by letter: a recipe, a command."""

    block: ClassVar[str] = "code"

    text: str
    language: str = ""
    caption: str = ""

    def __post_init__(self) -> None:
        text = markup.clean(self.text).strip("\n")
        language = markup.one_line(self.language, name="language")
        set_fields(self, text=text, language=language, caption=markup.clean(self.caption, name="caption"))


@dataclass(frozen=True, slots=True)
class Check:
    """One line of a checklist; a neutral one is still open."""

    text: str
    status: Status = Status.NEUTRAL
    note: str = ""

    def __post_init__(self) -> None:
        set_fields(self, text=markup.clean(self.text), status=check_status(self.status))
        set_fields(self, note=markup.clean(self.note, name="note"))


@dataclass(frozen=True, slots=True)
class Checklist:
    """What was looked at, and how it stands."""

    block: ClassVar[str] = "checklist"

    items: Sequence[Check]

    def __post_init__(self) -> None:
        set_fields(self, items=all_of(Check, self.items, name="items"))


Block: TypeAlias = Text | Bullets | Facts | KeyFigures | TableBlock | Chart | Bars | Panels | Notice | Code | Checklist
"""Anything that a section may hold."""

BLOCKS: dict[str, type[Block]] = {
    kind.block: kind
    for kind in (Text, Bullets, Facts, KeyFigures, TableBlock, Chart, Bars, Panels, Notice, Code, Checklist)
}
"""The kinds of blocks by the name that JSON has for them."""

_TITLES = {
    NoticeKind.PROMISE: "Promise",
    NoticeKind.WARNING: "Warning",
    NoticeKind.DANGER: "Danger",
    NoticeKind.INFO: "Note",
}


def check_blocks(blocks: object) -> tuple[Block, ...]:
    """Return blocks, and refuse anything else."""
    found = markup.several(blocks, name="blocks")
    if not all(isinstance(block, tuple(BLOCKS.values())) for block in found):
        raise ParameterTypeError(
            "Something among the blocks is not a block.",
            fix=f"use {', '.join(kind.__name__ for kind in BLOCKS.values())}; Text(...) for plain words.",
        )
    return found  # type: ignore[return-value]  # checked above


def check_named_cells(rows: object, *, name: str) -> tuple[tuple[str, Cell], ...]:
    """Return pairs of a name and a cell."""
    found = [markup.several(pair, name=f"a row of {name}") for pair in markup.several(rows, name=name)]
    if any(len(pair) != 2 for pair in found):
        raise ParameterError(f"A row of {name} is not a pair.", fix="give a name and a value per row.")
    return tuple((markup.one_line(first, name="a name"), _cell(second)) for first, second in found)


def all_of(kind: type[Any], values: object, *, name: str) -> tuple[Any, ...]:  # values of that kind
    """Return values of one kind, and refuse anything else."""
    found = markup.several(values, name=name)
    if not all(isinstance(value, kind) for value in found):
        raise ParameterTypeError(
            f"{name} holds something else than {kind.__name__}.", fix=f"give {name} as a list of {kind.__name__}(...)."
        )
    return found


def _cell(value: object) -> Cell:
    return value if isinstance(value, Verdict) else markup.to_cell(value)


def _cells(row: object) -> tuple[Cell, ...]:
    return tuple(_cell(value) for value in markup.several(row, name="a row"))


def _alignments(asked: object, rows: tuple[tuple[Cell, ...], ...], *, count: int) -> tuple[Align, ...]:
    given = markup.several(asked, name="align")
    if not given:
        return tuple("right" if _is_numeric([row[column] for row in rows]) else "left" for column in range(count))
    if len(given) != count or not all(one in ALIGNMENTS for one in given):
        raise ParameterError(
            "align does not fit the columns.", fix='give "left", "right" or "center" per column, or nothing.'
        )
    return given  # type: ignore[return-value]  # checked above


def _is_numeric(cells: list[Cell]) -> bool:
    return any(isinstance(cell, int | float) for cell in cells) and all(
        cell is None or isinstance(cell, int | float) for cell in cells
    )


def chart_table(figure: Figure, *, most: int) -> TableBlock | None:
    """Return at most so many rows of a chart's numbers, or nothing if it has none."""
    columns, rows = figure.to_table()
    if not rows:
        return None
    left_out = len(rows) - most
    note = f"The first {most:,} of {len(rows):,} rows." if left_out > 0 else ""
    return TableBlock(columns, [[markup.to_cell(value) for value in row] for row in rows[:most]], caption=note)
