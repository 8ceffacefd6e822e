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
from cloister.report.document import Provenance, Report, Section
from cloister.report.inline import escaped
from cloister.report.rendering import render
from cloister.report.status import Status, Verdict

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
    "Provenance",
    "Report",
    "Section",
    "Series",
    "Status",
    "TableBlock",
    "Text",
    "Verdict",
    "escaped",
    "render",
]
