"""The report as Markdown (CommonMark with tables), for a repository or a text editor.

Every text is escaped: it shows as it is, makes no markup and no table cell of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING

from cloister.errors import InternalError
from cloister.report import markup
from cloister.report._outline import outline
from cloister.report.blocks import (
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
    Panels,
    TableBlock,
    Text,
    chart_table,
)
from cloister.report.markup import Status, Verdict, paragraphs, spans

if TYPE_CHECKING:
    from cloister.report.document import Report

MOST_ROWS = 100
"""How many rows of a chart's numbers are listed."""

_RULES = {"left": ":--", "right": "--:", "center": ":-:"}
_WRAPS = {"": "{}", "strong": "**{}**", "emphasis": "*{}*"}


def page(report: Report) -> str:
    """Return a report as Markdown."""
    parts = [f"# {escape_markdown(report.title)}", _line(escape_markdown(report.subtitle))]
    if report.verdict is not None:
        parts.append(f"**{_verdict(report.verdict)}**")
    parts.append(_prose(report.summary))
    if report.figures:
        parts.append(_figures(report.figures))
    for section, number, _ in outline(report.sections):
        parts.append(f"{'#' * (section.level + 1)} {number}. {escape_markdown(section.title)}")
        parts += map(block_markdown, section.blocks)
    parts += ("## Provenance", _facts(report.provenance.rows()))
    return "\n\n".join(filter(None, parts)) + "\n"


def escape_markdown(text: str) -> str:
    r"""Return a text in one line that Markdown shows as it is, also in a table.

    >>> print(escape_markdown("a|b <script> *c*"))
    a\|b &lt;script&gt; \*c\*
    """
    line = " ".join(text.split())
    # The ampersand goes first, or the other replacements would be escaped again.
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", line)


@singledispatch
def block_markdown(block: Block) -> str:
    raise InternalError(f"a report cannot show a block of type {type(block).__name__}.")


@block_markdown.register
def _(block: Text) -> str:
    return _prose(block.text)


@block_markdown.register
def _(block: Bullets) -> str:
    return "\n".join(f"- {_line(_inline(item))}" for item in block.items)


@block_markdown.register
def _(block: Facts) -> str:
    return _facts(block.rows)


@block_markdown.register
def _(block: KeyFigures) -> str:
    return _figures(block.figures)


@block_markdown.register
def _(block: TableBlock) -> str:
    body = [[_cell(cell) for cell in row] for row in block.rows]
    return _add_caption(_table([escape_markdown(name) for name in block.columns], body, block.align), block.caption)


@block_markdown.register
def _(block: Chart) -> str:
    table = chart_table(block.figure, most=MOST_ROWS)
    numbers = block_markdown(table) if table is not None else "The chart holds no numbers of its own."
    parts = (f"**{escape_markdown(block.figure.title)}**" if block.figure.title else "", numbers, _prose(block.caption))
    return "\n\n".join(part for part in parts if part)


@block_markdown.register
def _(block: Bars) -> str:
    rows = [
        [escape_markdown(label), *(escape_markdown(block.read(series, position)) for series in block.series)]
        for position, label in enumerate(block.labels)
    ]
    names = ["", *(escape_markdown(series.name) for series in block.series)]
    sides = ("left", *("right" for _ in block.series))
    return _add_caption(_table(names, rows, sides), block.caption)


@block_markdown.register
def _(block: Panels) -> str:
    return "\n\n".join(map(block_markdown, block.blocks))


@block_markdown.register
def _(block: Notice) -> str:
    parts = [f"**{escape_markdown(block.title)}**", _prose(block.text)]
    return "\n".join(f"> {line}".rstrip() for line in "\n\n".join(parts).split("\n"))


@block_markdown.register
def _(block: Code) -> str:
    # A fence has to be longer than every run of backticks inside.
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
    language = re.sub(r"[^\w+.-]", "", block.language)
    return _add_caption(f"{fence}{language}\n{block.text}\n{fence}", block.caption)


@block_markdown.register
def _(block: Checklist) -> str:
    return "\n".join(map(_check, block.items))


def _prose(text: str) -> str:
    return "\n\n".join(_line(_inline(part)) for part in paragraphs(text))


def _line(text: str) -> str:
    """Return a line whose beginning is no list, rule or underline."""
    return re.sub(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+](?:\s|$|-)|=))(.)", r"\1\\\2", text.lstrip())


def _inline(text: str) -> str:
    return "".join(_code(part) if style == "code" else _WRAPS[style].format(_part(part)) for style, part in spans(text))


def _part(text: str) -> str:
    """Return a stretch of a line, with the spaces at its ends."""
    lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return (lead and " ") + escape_markdown(text) + (tail and " " if text.strip() else "")


def _code(text: str) -> str:
    """Return text in typewriter letters; a bar is escaped because the line may be in a table."""
    line = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    room = " " if line.startswith("`") or line.endswith("`") else ""
    # A bar ends a cell of a table also inside of code.
    return f"{fence}{room}{line}{room}{fence}".replace("|", "\\|") if line else ""


def _cell(value: Cell) -> str:
    return _verdict(value) if isinstance(value, Verdict) else escape_markdown(markup.format_value(value))


def _verdict(verdict: Verdict) -> str:
    return " ".join(filter(None, (_standing(verdict.status), escape_markdown(verdict.text))))


def _standing(status: Status) -> str:
    return f"{status.sign} {status.word}:" if status.word else ""


def _figures(figures: Sequence[KeyFigure]) -> str:
    rows = [
        [
            escape_markdown(one.label),
            f"**{_cell(one.value)}**",
            f"{one.status.sign} {one.status.word}" if one.status.word else "",
            _inline(one.meaning),
        ]
        for one in figures
    ]
    return _table(["Figure", "Value", "Standing", "Meaning"], rows, ["left", "right", "left", "left"])


def _facts(rows: Iterable[tuple[str, Cell]]) -> str:
    return _table(["Fact", "Value"], [[escape_markdown(name), _cell(value)] for name, value in rows], ["left", "left"])


def _check(item: Check) -> str:
    standing = _standing(item.status) or f"{item.status.sign} Open:"
    return f"- {standing} {_inline(item.text)}" + (f" ({_inline(item.note)})" if item.note else "")


def _add_caption(content: str, caption: str) -> str:
    return f"{_prose(caption)}\n\n{content}" if caption else content


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], align: Sequence[str]) -> str:
    lines = [columns, [_RULES[side] for side in align], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
