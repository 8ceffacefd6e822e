"""Reports that a person can be handed: one page, Markdown or JSON.

This package only renders. A release builds its own sections (what is promised, what it cost, what is left of the risk)
from a few kinds of blocks, and a `Report` turns them into one self-contained HTML page, Markdown or JSON. What is put
into a report is published with it: nothing here protects anything.
"""

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
    NoticeKind,
    Panels,
    Series,
    TableBlock,
    Text,
)
from cloister.report.document import Report, ReportProvenance, Section, render
from cloister.report.markup import Status, Verdict, escape_text

__all__ = [
    "Bars",
    "Block",
    "Bullets",
    "Cell",
    "Chart",
    "Check",
    "Checklist",
    "Code",
    "Facts",
    "KeyFigure",
    "KeyFigures",
    "Notice",
    "NoticeKind",
    "Panels",
    "Report",
    "ReportProvenance",
    "Section",
    "Series",
    "Status",
    "TableBlock",
    "Text",
    "Verdict",
    "escape_text",
    "render",
]
