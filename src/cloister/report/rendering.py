"""The formats of a report, chosen by name or by the ending of a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cloister.core.files import write_text
from cloister.core.validation import check_choice
from cloister.errors import ParameterError, did_you_mean
from cloister.report import html_page, markdown

if TYPE_CHECKING:
    from cloister.report.document import Report

ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
"""The format of a file by the ending of its name."""


def render(report: Report, format: str) -> str:  # noqa: A002  # what everybody calls it
    """Return a report as text.

    Args:
        report: what to show.
        format: "html", "markdown" or "json".
    """
    return _FORMATS[check_choice(format, name="format", allowed=tuple(_FORMATS))](report)


def write(report: Report, path: str | os.PathLike[str], *, overwrite: bool) -> Path:
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
    "html": html_page.page,
    "markdown": markdown.page,
    "json": _as_json,
}
