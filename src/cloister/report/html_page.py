"""The page: a cover, contents, sections and provenance in one HTML file that loads nothing.

The page holds no scripts and allows none: its Content-Security-Policy admits exactly the style sheet that is in it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
from typing import TYPE_CHECKING

from cloister.report.blocks import Facts
from cloister.report.html_blocks import Drawing, figures_html, verdict_html
from cloister.report.markup import Markup, joined, prose, tag
from cloister.report.outline import Entry, outline

if TYPE_CHECKING:
    from cloister.report.document import Provenance, Report


def page(report: Report) -> str:
    """Return a report as one HTML page."""
    entries = outline(report.sections)
    parts = (_cover(report), _contents(entries), _main(entries), _footer(report.provenance))
    layout = tag("div", "\n", joined(parts, "\n"), "\n", class_="layout")
    body = joined((tag("a", "Skip to the sections", class_="skip", href="#top"), layout), "\n")
    html = tag("html", "\n", _head(report), "\n", tag("body", "\n", body, "\n"), "\n", lang="en")
    return f"<!DOCTYPE html>\n{html}\n"


@functools.cache
def style_sheet() -> str:
    """Return the style sheet of the page."""
    return importlib.resources.files("cloister.report").joinpath("page.css").read_text("utf-8")


def _head(report: Report) -> Markup:
    style = style_sheet()
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
    return tag("head", "\n", joined(parts, "\n"), "\n")


def _main(entries: list[Entry]) -> Markup:
    drawing = Drawing()
    sections = (_section(entry, drawing) for entry in entries)
    return tag("main", "\n", joined(sections, "\n"), "\n", id="top", tabindex="-1")


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
    return tag("header", joined([*parts, tag("p", made, class_="made")], "\n"), class_="cover")


def _contents(entries: list[Entry]) -> Markup:
    links = [
        tag("li", tag("a", _number(entry), " ", entry.section.title, href=f"#{entry.anchor}"), class_=_depth(entry))
        for entry in entries
    ]
    last = tag("li", tag("a", tag("span", class_="number"), " Provenance", href="#provenance"), class_="level-1")
    title = tag("p", "Contents", class_="contents-title", id="contents")
    listing = tag("ol", "\n", joined([*links, last], "\n"), "\n")
    return tag("nav", title, listing, class_="contents", aria_labelledby="contents")


def _section(entry: Entry, drawing: Drawing) -> Markup:
    heading = tag(f"h{entry.section.level + 1}", _number(entry), " ", entry.section.title)
    blocks = (drawing.block(block) for block in entry.section.blocks)
    content = joined([heading, *blocks], "\n")
    return tag("section", content, id=entry.anchor, class_=_depth(entry))


def _number(entry: Entry) -> Markup:
    return tag("span", entry.number, class_="number")


def _depth(entry: Entry) -> str:
    return f"level-{entry.section.level}"


def _footer(provenance: Provenance) -> Markup:
    facts = Drawing().block(Facts(provenance.rows()))
    return tag("footer", tag("h2", "Provenance"), facts, id="provenance")
