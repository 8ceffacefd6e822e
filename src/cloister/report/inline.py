"""The little emphasis that texts of a report may carry: ``**strong**``, ``*emphasis*`` and ```code```.

A backslash before a star, a backtick or a backslash takes its meaning away; `escaped` does that to names from
elsewhere, so that a column called ``*secret*`` keeps its stars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Style = Literal["", "strong", "emphasis", "code"]

_STARRED = r"(?=\S)(?:\\.|[^*\\])+(?<=\S)"
_MARKED = re.compile(
    rf"\\(?P<escaped>[\\*`])|\*\*(?P<strong>{_STARRED})\*\*|\*(?P<emphasis>{_STARRED})\*|`(?P<code>(?:\\.|[^`\\])+)`",
    re.DOTALL,
)


class Span(NamedTuple):
    """A stretch of text in one style."""

    style: Style
    text: str


def spans(text: str) -> Iterator[Span]:
    """Yield the stretches of a text.

    >>> for span in spans("at least **5** rows of `age`"):
    ...     print(span)
    Span(style='', text='at least ')
    Span(style='strong', text='5')
    Span(style='', text=' rows of ')
    Span(style='code', text='age')
    """
    end = 0
    for found in _MARKED.finditer(text):
        if found.start() > end:
            yield Span("", text[end : found.start()])
        style = found.lastgroup
        yield Span("", found[style]) if style == "escaped" else Span(style, _unescaped(found[style]))  # type: ignore[arg-type, index]  # every match has a group
        end = found.end()
    if end < len(text):
        yield Span("", text[end:])


def escaped(text: str) -> str:
    r"""Return a text whose stars, backticks and backslashes mean themselves.

    >>> print(escaped("a*b"))
    a\*b
    """
    return re.sub(r"([\\*`])", r"\\\1", text)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines set apart, each in one line."""
    return [" ".join(part.split()) for part in re.split(r"\n[ \t]*\n", text) if part.strip()]


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\\*`])", r"\1", text)
