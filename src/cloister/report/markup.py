"""HTML that cannot be broken by what is put into it: plain text is escaped, and only markup made here is not."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from cloister.report.inline import paragraphs, spans

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
    return Markup(opening if name in _VOID else f"{opening}{joined(children)}</{name}>")


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Return parts one after the other, each escaped unless it is markup."""
    return Markup(between.join(part if isinstance(part, Markup) else html.escape(part) for part in parts))


def inline(text: str) -> Markup:
    """Return a text with its emphasis."""
    return joined(tag(_TAGS[style], part) if style else part for style, part in spans(text))


def prose(text: str) -> Markup:
    """Return the paragraphs of a text."""
    return joined((tag("p", inline(part)) for part in paragraphs(text)), "\n")


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'
