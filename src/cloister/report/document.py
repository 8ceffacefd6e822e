"""A report as a value: a cover, sections of blocks, and where it comes from.

A release builds its own sections; further ones, such as the outcome of attacks, are appended to the same report.

Reports turn into plain values, which JSON can hold, and back. The format of a file is chosen by name or by the ending
of the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from cloister._version import __version__
from cloister.core.atomic_files import write_text
from cloister.core.validation import check_choice, check_count
from cloister.core.wordings import format_count
from cloister.errors import ParameterError, ParameterTypeError, did_you_mean
from cloister.plotting import Figure, inputs
from cloister.report import _html as html, _markdown as markdown, markup
from cloister.report.blocks import (
    BLOCKS,
    Block,
    Cell,
    Check,
    KeyFigure,
    Series,
    all_of,
    check_blocks,
    check_named_cells,
)
from cloister.report.markup import Verdict


def values_of(value: Any) -> Any:  # any part of a report
    """Return a part of a report as dictionaries, lists, text and numbers."""
    if isinstance(value, Figure):
        return value.to_dict()
    if is_dataclass(value):
        kind = getattr(value, "block", None)
        named = {item.name: values_of(getattr(value, item.name)) for item in fields(value)}
        return named if kind is None else {"block": kind, **named}
    if isinstance(value, tuple):
        return [values_of(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def block_from(values: Mapping[str, Any]) -> Block:
    """Return the block that was turned into plain values."""
    given = dict(values)
    kind = BLOCKS[given.pop("block")]
    return kind(**{name: _READERS.get((kind.block, name), _same)(value) for name, value in given.items()})


def cells_from(rows: Any) -> list[list[Any]]:
    """Return rows of cells, with verdicts where they were."""
    return [[Verdict(**cell) if isinstance(cell, Mapping) else cell for cell in row] for row in rows]


def strip_marker(values: Mapping[str, Any], *, schema: str) -> dict[str, Any]:
    """Return the values of a document of a known version, without its marker."""
    given = dict(values)
    if given.pop("schema") != schema:
        raise KeyError("schema")
    return given


@contextlib.contextmanager
def explain_damage() -> Iterator[None]:
    """Turn everything that can be wrong with plain values into one clear error."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ParameterError(
            "These values are not a report of this version of cloister.",
            fix="give the values that Report.to_dict() returned, unchanged, or a report that was written as .json.",
        ) from None


def _same(value: Any) -> Any:
    return value


def _each(kind: Callable[..., Any]) -> Callable[[Any], list[Any]]:
    return lambda values: [kind(**value) for value in values]


_READERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("facts", "rows"): cells_from,
    ("table", "rows"): cells_from,
    ("key-figures", "figures"): _each(KeyFigure),
    ("bars", "series"): _each(Series),
    ("checklist", "items"): _each(Check),
    ("chart", "figure"): Figure.from_dict,
    ("panels", "blocks"): lambda blocks: [block_from(block) for block in blocks],
}


DEEPEST = 3
"""How many levels of headings sections may have."""


@dataclass(frozen=True, slots=True)
class ReportProvenance:
    """Where a report comes from: when it was made, with what, and whatever else is needed to make it again.

    Attributes:
        created: a date, or a moment in UTC such as "2026-11-16T08:00:00Z"; by default now.
        software: what made it.
        details: names with values, such as digests of the source and of the recipe.
    """

    created: str = field(default_factory=lambda: inputs.moment(datetime.now(UTC).replace(microsecond=0)))
    software: str = f"cloister {__version__}"
    details: Sequence[tuple[str, Cell]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "created", markup.one_line(self.created, name="created"))
        object.__setattr__(self, "software", markup.one_line(self.software, name="software"))
        object.__setattr__(self, "details", check_named_cells(self.details, name="details"))

    @property
    def moment(self) -> str:
        """Return when the report was made, as people write it."""
        return re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?Z$", r"\1 \2 UTC", self.created)

    def rows(self) -> tuple[tuple[str, Cell], ...]:
        """Return everything as names with values."""
        return (("Created", self.moment), ("Software", self.software), *self.details)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with blocks under it.

    Attributes:
        title: the heading.
        blocks: what stands under it, from top to bottom.
        level: 1 for a section, 2 for a part of the section before it, 3 for a part of that.
        anchor: the name that links lead to; by default made from the title.
    """

    title: str
    blocks: Sequence[Block] = ()
    level: int = 1
    anchor: str = ""

    def __post_init__(self) -> None:
        title = markup.one_line(self.title, name="title")
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "blocks", check_blocks(self.blocks))
        if check_count(self.level, name="level", at_least=1) > DEEPEST:
            raise ParameterError(f"level={self.level} is too deep.", fix=f"use a level from 1 to {DEEPEST}.")
        object.__setattr__(self, "anchor", self.anchor or _slug(title))
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.anchor):
            raise ParameterError(
                "An anchor is not a plain name.", fix='use small letters, digits and hyphens, such as "what-is-left".'
            )


@dataclass(frozen=True, slots=True)
class Report:
    """One report, which `write` turns into a page, Markdown or JSON.

    >>> from cloister.report import Section, Text
    >>> Report("Visits 2026", sections=[Section("Promise", [Text("At least **5** people look alike.")])])
    Report('Visits 2026', 1 section)

    Attributes:
        title: what the report is about.
        subtitle: one line below the title.
        summary: a paragraph or two for somebody who reads nothing else.
        verdict: the outcome in one line, with its status.
        figures: the few numbers that matter most.
        sections: everything else.
        provenance: when and with what it was made.
    """

    schema: ClassVar[str] = "cloister.report_page/1"

    title: str
    subtitle: str = ""
    summary: str = ""
    verdict: Verdict | None = None
    figures: Sequence[KeyFigure] = ()
    sections: Sequence[Section] = ()
    provenance: ReportProvenance = field(default_factory=ReportProvenance)

    def __post_init__(self) -> None:
        for name in ("title", "subtitle"):
            object.__setattr__(self, name, markup.one_line(getattr(self, name), name=name))
        object.__setattr__(self, "summary", markup.clean(self.summary, name="summary"))
        object.__setattr__(self, "figures", all_of(KeyFigure, self.figures, name="figures"))
        object.__setattr__(self, "sections", _check_levels(all_of(Section, self.sections, name="sections")))
        _check_kind(self.verdict, Verdict | None, fix='give Verdict("what came out", status).')
        _check_kind(self.provenance, ReportProvenance, fix="give Provenance(...), or leave it out.")

    def __repr__(self) -> str:
        count = len(self.sections)
        return f"Report({self.title!r}, {format_count(count, 'section')})"

    def with_sections(self, *sections: Section) -> Report:
        """Return the report with further sections at its end."""
        return replace(self, sections=(*self.sections, *sections))

    def to_html(self) -> str:
        """Return one page that needs nothing else: no scripts, no files, no network."""
        return render(self, "html")

    def to_markdown(self) -> str:
        """Return the report as Markdown, with charts as tables."""
        return render(self, "markdown")

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return render(self, "json")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values."""
        return {"schema": self.schema, **values_of(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """Return the report of the values that `to_dict` gave.

        Raises:
            ParameterError: if they are something else.
        """
        with explain_damage():
            given = strip_marker(values, schema=cls.schema)
            verdict, provenance = given.pop("verdict"), given.pop("provenance")
            figures = [KeyFigure(**figure) for figure in given.pop("figures")]
            sections = [
                Section(**section | {"blocks": [block_from(block) for block in section["blocks"]]})
                for section in given.pop("sections")
            ]
            return cls(
                **given,
                verdict=None if verdict is None else Verdict(**verdict),
                figures=tuple(figures),
                sections=tuple(sections),
                provenance=ReportProvenance(**provenance | {"details": cells_from(provenance["details"])}),
            )

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write the report to a file, whole or not at all, and return where it is.

        Args:
            path: where to write; the name ends in .html, .md or .json.
            overwrite: whether a file that is there is replaced.

        Raises:
            ParameterError: if the ending is another one.
            DataError: if the file cannot be written, or is there and may not be replaced.
        """
        return write_report(self, path, overwrite=overwrite)


def _check_levels(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    before = 0
    for section in sections:
        if section.level > before + 1:
            raise ParameterError(
                f'The section "{section.title}" of level {section.level} has no section of level {section.level - 1} '
                "to belong to.",
                fix=f"give it level {before + 1}, or put a section of level {section.level - 1} before it.",
            )
        before = section.level
    return sections


def _check_kind(value: object, kind: Any, *, fix: str) -> None:  # a class, or several
    if not isinstance(value, kind):
        raise ParameterTypeError(f"{type(value).__name__} does not belong on the cover of a report.", fix=fix)


def _slug(title: str) -> str:
    words = re.findall("[a-z0-9]+", title.lower())
    slug = "-".join(words)[:60].strip("-")
    return slug if slug[:1].isalpha() else f"section-{slug}".strip("-")


ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
"""The format of a file by the ending of its name."""


def render(report: Report, format: str) -> str:  # noqa: A002  # what everybody calls it
    """Return a report as text.

    Args:
        report: what to show.
        format: "html", "markdown" or "json".
    """
    return _FORMATS[check_choice(format, name="format", allowed=tuple(_FORMATS))](report)


def write_report(report: Report, path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Write a report to a file, whole or not at all, and return where it is."""
    place = Path(path)
    ending = place.suffix.lower()
    if ending not in ENDINGS:
        raise ParameterError(
            f'A report cannot be written as "{place.name}".{did_you_mean(ending, ENDINGS)}',
            fix='use a name that ends in .html, .md or .json, such as "report.html".',
        )
    write_text(place, render(report, ENDINGS[ending]), overwrite=overwrite)
    return place


def _as_json(report: Report) -> str:
    return json.dumps(report.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


_FORMATS: dict[str, Callable[[Report], str]] = {
    "html": html.page,
    "markdown": markdown.page,
    "json": _as_json,
}
