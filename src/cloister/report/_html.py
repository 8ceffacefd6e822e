"""A report as one HTML page that loads nothing: a cover, contents, sections of blocks, and provenance.

The page holds no scripts and allows none: its Content-Security-Policy admits exactly the style sheet that is in it.

Markup cannot be broken by what is put into it: plain text is escaped, and only markup made here is not.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import importlib.resources
import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatchmethod
from typing import TYPE_CHECKING, TypeAlias

from cloister.errors import InternalError, MissingExtraError
from cloister.report import markup
from cloister.report._outline import OutlineEntry, outline
from cloister.report.blocks import (
    Align,
    Bars,
    Block,
    Bullets,
    Cell,
    Chart,
    Check,
    Checklist,
    Code,
    Facts,
    KeyFigure,
    KeyFigures,
    Notice,
    NoticeKind,
    Panels,
    Series,
    TableBlock,
    Text,
    chart_table,
)
from cloister.report.markup import Status, Verdict, paragraphs, spans

if TYPE_CHECKING:
    from cloister.report.document import Report, ReportProvenance


Attribute: TypeAlias = str | int | bool | None

_VOID = {"meta"}
_TAGS = {"": "", "strong": "strong", "emphasis": "em", "code": "code"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: Attribute) -> Markup:
    """Return an element; underscores in attribute names are hyphens, and one at the end is left out.

    >>> print(tag("p", "1 < 2", class_="note", hidden=True, title=None))
    <p class="note" hidden>1 &lt; 2</p>
    """
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(opening if name in _VOID else f"{opening}{join_markup(children)}</{name}>")


def join_markup(parts: Iterable[str], between: str = "") -> Markup:
    """Return parts one after the other, each escaped unless it is markup."""
    # Only what was made by `tag` is trusted; every other text is escaped here, in one place.
    return Markup(between.join(part if isinstance(part, Markup) else html.escape(part) for part in parts))


def inline(text: str) -> Markup:
    """Return a text with its emphasis."""
    return join_markup(tag(_TAGS[style], part) if style else part for style, part in spans(text))


def prose(text: str) -> Markup:
    """Return the paragraphs of a text."""
    return join_markup((tag("p", inline(part)) for part in paragraphs(text)), "\n")


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


MOST_ROWS = 500
"""How many rows of a chart's numbers the page lists."""

_NOTICE_SIGNS = {NoticeKind.PROMISE: "✓", NoticeKind.WARNING: "!", NoticeKind.DANGER: "✕", NoticeKind.INFO: "i"}


class Drawing:
    """The blocks of one page; it counts the charts, so that each has ids of its own."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    @singledispatchmethod
    def block(self, block: Block) -> Markup:
        """Return a block as HTML."""
        raise InternalError(f"a report cannot show a block of type {type(block).__name__}.")

    @block.register
    def _(self, block: Text) -> Markup:
        return prose(block.text)

    @block.register
    def _(self, block: Bullets) -> Markup:
        return tag("ul", join_markup((tag("li", inline(item)) for item in block.items), "\n"))

    @block.register
    def _(self, block: Facts) -> Markup:
        rows = (tag("div", tag("dt", name), tag("dd", cell_html(value))) for name, value in block.rows)
        return tag("dl", "\n", join_markup(rows, "\n"), "\n", class_="facts")

    @block.register
    def _(self, block: KeyFigures) -> Markup:
        return figures_html(block.figures)

    @block.register
    def _(self, block: TableBlock) -> Markup:
        return table_html(block)

    @block.register
    def _(self, block: Chart) -> Markup:
        return self._chart(block)

    @block.register
    def _(self, block: Bars) -> Markup:
        return _bars(block)

    @block.register
    def _(self, block: Panels) -> Markup:
        panels = (tag("div", self.block(part), class_="panel") for part in block.blocks)
        return tag("div", "\n", join_markup(panels, "\n"), "\n", class_="panels")

    @block.register
    def _(self, block: Notice) -> Markup:
        sign = tag("span", _NOTICE_SIGNS[block.kind], class_="sign", aria_hidden="true")
        title = tag("p", sign, " ", block.title, class_="notice-title")
        return tag("div", title, prose(block.text), class_=f"notice {block.kind}", role="note")

    @block.register
    def _(self, block: Code) -> Markup:
        language = f"language-{'-'.join(block.language.split())}" if block.language else None
        content = tag("pre", tag("code", block.text, class_=language), tabindex="0")
        return tag("figure", _caption(block.caption), content, class_="code")

    @block.register
    def _(self, block: Checklist) -> Markup:
        return tag("ul", "\n", join_markup((_check(item) for item in block.items), "\n"), "\n", class_="checklist")

    def _chart(self, block: Chart) -> Markup:
        caption = _caption(block.caption)
        table = chart_table(block.figure, most=MOST_ROWS)
        numbers = table_html(table) if table is not None else tag("p", "The chart holds no numbers of its own.")
        try:
            picture = Markup(block.figure.to_svg(owner=f"chart_{next(self._numbers)}"))
        except MissingExtraError as error:
            title = tag("p", block.figure.title, class_="chart-title")
            hint = tag("p", "The picture needs the extra ", tag("code", "plot"), ": ", tag("code", error.fix))
            return tag("figure", title, hint, numbers, caption, class_="chart")
        label = block.figure.title or "Chart"
        shown = tag("div", picture, class_="picture", role="img", aria_label=label, tabindex="0")
        details = tag("details", tag("summary", "The numbers of this chart"), numbers)
        return tag("figure", shown, caption, details, class_="chart")


def verdict_html(verdict: Verdict) -> Markup:
    """Return the outcome of a report."""
    word = f"{verdict.status.word}: " if verdict.status.word else ""
    return tag("p", _sign(verdict.status), " ", tag("span", word, verdict.text), class_=f"verdict {verdict.status}")


def figures_html(figures: Sequence[KeyFigure]) -> Markup:
    """Return big numbers side by side."""
    return tag("div", "\n", join_markup(map(_figure, figures), "\n"), "\n", class_="figures")


def table_html(table: TableBlock) -> Markup:
    """Return a table that scrolls by itself where it is too wide, under a caption that stays."""
    headings = zip(table.columns, table.align, strict=True)
    head = tag("tr", *(tag("th", name, scope="col", class_=side) for name, side in headings))
    rows = [_row(row, table.align) for row in table.rows]
    nothing = tag("tr", tag("td", "No rows.", colspan=len(table.columns)))
    content = tag("table", tag("thead", head), "\n", tag("tbody", "\n", join_markup(rows or [nothing], "\n"), "\n"))
    label = "".join(part for _, part in spans(table.caption)) or "Table"
    scroll = tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)
    return tag("figure", _caption(table.caption), scroll, class_="table")


def cell_html(value: Cell) -> Markup:
    """Return a cell: a text, a number, or a text with its status."""
    if isinstance(value, Verdict):
        word = tag("span", value.status.word, ": ", class_="unseen") if value.status.word else Markup()
        return tag("span", _sign(value.status), " ", word, value.text, class_=f"mark {value.status}")
    return join_markup([markup.format_value(value)])


def _row(row: Sequence[Cell], align: Sequence[Align]) -> Markup:
    cells = [(cell_html(value), side) for value, side in zip(row, align, strict=True)]
    (first, side), *others = cells
    return tag("tr", tag("th", first, scope="row", class_=side), *(tag("td", cell, class_=a) for cell, a in others))


def _figure(figure: KeyFigure) -> Markup:
    status = figure.status
    words = (_sign(status), " ", status.word) if status.word else ()
    parts = [
        tag("p", figure.label, class_="label"),
        tag("p", cell_html(figure.value), class_="value"),
        tag("p", *words, class_="standing") if words else Markup(),
        tag("p", inline(figure.meaning), class_="meaning") if figure.meaning else Markup(),
    ]
    return tag("div", *parts, class_=f"figure {status}")


def _check(item: Check) -> Markup:
    word = item.status.word or "Open"
    note = tag("p", inline(item.note), class_="note") if item.note else Markup()
    content = tag("div", tag("p", inline(item.text)), note)
    return tag("li", tag("span", _sign(item.status), " ", word, class_="standing"), content, class_=str(item.status))


def _bars(block: Bars) -> Markup:
    caption = tag("caption", inline(block.caption)) if block.caption else Markup()
    several = len(block.series) > 1
    names = ("Label", "Series", "Bar", "Value") if several else ("Label", "Bar", *(one.name for one in block.series))
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    groups = (
        tag("tbody", "\n", join_markup(_bar_rows(block, position), "\n"), "\n") for position in range(len(block.labels))
    )
    return tag("table", caption, tag("thead", head, class_="unseen"), "\n", join_markup(groups, "\n"), class_="bars")


def _bar_rows(block: Bars, position: int) -> Iterator[Markup]:
    count = len(block.series)
    label = tag("th", block.labels[position], scope="row" if count == 1 else "rowgroup", rowspan=count)
    for rank, series in enumerate(block.series):
        yield tag(
            "tr",
            label if rank == 0 else Markup(),
            tag("td", series.name, class_="series") if count > 1 else Markup(),
            tag("td", _bar(block, series, position, rank), class_="bar"),
            tag("td", block.read(series, position), class_="right"),
        )


def _bar(block: Bars, series: Series, position: int, rank: int) -> Markup:
    value, full = series.values[position] or 0.0, block.maximum or 1.0
    track = tag("rect", class_="track", width="100%", height="100%", rx="2")
    filled = tag("rect", class_=f"filled-{rank % 4 + 1}", width=f"{100 * value / full:.2f}%", height="100%", rx="2")
    return tag("svg", track, filled, width="100%", height="10", aria_hidden="true", focusable="false")


def _caption(text: str) -> Markup:
    return tag("figcaption", inline(text)) if text else Markup()


def _sign(status: Status) -> Markup:
    return tag("span", status.sign, class_="sign", aria_hidden="true")


def page(report: Report) -> str:
    """Return a report as one HTML page."""
    entries = outline(report.sections)
    parts = (_cover(report), _contents(entries), _main(entries), _footer(report.provenance))
    layout = tag("div", "\n", join_markup(parts, "\n"), "\n", class_="layout")
    body = join_markup((tag("a", "Skip to the sections", class_="skip", href="#top"), layout), "\n")
    html = tag("html", "\n", _head(report), "\n", tag("body", "\n", body, "\n"), "\n", lang="en")
    return f"<!DOCTYPE html>\n{html}\n"


@functools.cache
def style_sheet() -> str:
    """Return the style sheet of the page."""
    return importlib.resources.files("cloister.report").joinpath("page.css").read_text("utf-8")


def _head(report: Report) -> Markup:
    style = style_sheet()
    # The policy admits this one style sheet by its digest, so that no other style or script on the page counts.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    parts = (
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=report.provenance.software),
        tag("title", report.title),
        tag("style", Markup(style)),
    )
    return tag("head", "\n", join_markup(parts, "\n"), "\n")


def _main(entries: list[OutlineEntry]) -> Markup:
    drawing = Drawing()
    sections = (_section(entry, drawing) for entry in entries)
    return tag("main", "\n", join_markup(sections, "\n"), "\n", id="top", tabindex="-1")


def _cover(report: Report) -> Markup:
    parts = [tag("h1", report.title)]
    if report.subtitle:
        parts.append(tag("p", report.subtitle, class_="subtitle"))
    if report.verdict is not None:
        parts.append(verdict_html(report.verdict))
    if report.summary:
        parts.append(tag("div", prose(report.summary), class_="summary"))
    if report.figures:
        parts.append(figures_html(report.figures))
    made = f"{report.provenance.software} · {report.provenance.moment}"
    return tag("header", join_markup([*parts, tag("p", made, class_="made")], "\n"), class_="cover")


def _contents(entries: list[OutlineEntry]) -> Markup:
    links = [
        tag("li", tag("a", _number(entry), " ", entry.section.title, href=f"#{entry.anchor}"), class_=_depth(entry))
        for entry in entries
    ]
    last = tag("li", tag("a", tag("span", class_="number"), " Provenance", href="#provenance"), class_="level-1")
    title = tag("p", "Contents", class_="contents-title", id="contents")
    listing = tag("ol", "\n", join_markup([*links, last], "\n"), "\n")
    return tag("nav", title, listing, class_="contents", aria_labelledby="contents")


def _section(entry: OutlineEntry, drawing: Drawing) -> Markup:
    heading = tag(f"h{entry.section.level + 1}", _number(entry), " ", entry.section.title)
    blocks = (drawing.block(block) for block in entry.section.blocks)
    content = join_markup([heading, *blocks], "\n")
    return tag("section", content, id=entry.anchor, class_=_depth(entry))


def _number(entry: OutlineEntry) -> Markup:
    return tag("span", entry.number, class_="number")


def _depth(entry: OutlineEntry) -> str:
    return f"level-{entry.section.level}"


def _footer(provenance: ReportProvenance) -> Markup:
    facts = Drawing().block(Facts(provenance.rows()))
    return tag("footer", tag("h2", "Provenance"), facts, id="provenance")
