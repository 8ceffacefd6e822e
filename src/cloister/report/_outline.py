"""Sections in order, with the numbers and anchors that they have on a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cloister.report.document import Section

RESERVED = ("top", "contents", "provenance")
"""Anchors of the page itself."""


class OutlineEntry(NamedTuple):
    """A section with its place: a number such as "2.1", and an anchor that no other section has."""

    section: Section
    number: str
    anchor: str


def outline(sections: Iterable[Section]) -> list[OutlineEntry]:
    """Return sections with their numbers and anchors."""
    counts: list[int] = []
    taken = set(RESERVED)
    entries = []
    for section in sections:
        counts = [*counts, 0][: section.level]
        counts[-1] += 1
        entries.append(OutlineEntry(section, ".".join(map(str, counts)), _free(section.anchor, taken)))
    return entries


def _free(anchor: str, taken: set[str]) -> str:
    candidate, copy = anchor, 1
    while candidate in taken:
        copy += 1
        candidate = f"{anchor}-{copy}"
    taken.add(candidate)
    return candidate
