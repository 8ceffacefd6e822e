"""Texts, values and states as every format of a report shows them, and the little emphasis that texts may carry.

How something stands is a word and a sign beside each color, so that a black-and-white print says the same.

Texts of a report may carry a little emphasis: ``**strong**``, ``*emphasis*`` and ```code```. A backslash before a star,
a backtick or a backslash takes its meaning away; `escape_text` does that to names from elsewhere, so that a column
called ``*secret*`` keeps its stars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Literal, NamedTuple

from cloister.core.construction import construct
from cloister.core.validation import check_choice
from cloister.core.wordings import format_number
from cloister.errors import ParameterTypeError
from cloister.plotting import inputs

NOTHING = "\N{EN DASH}"
"""How a missing value reads."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Control characters, surrogates, marks that turn text around, and code points that are no characters.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def clean(value: object, *, name: str = "text") -> str:
    r"""Return text without characters that a page could not show, or that would show another text than is there.

    >>> clean("one\r\ntwo\x00")
    'one\ntwo�'
    """
    if not isinstance(value, str):
        raise ParameterTypeError(f"{name} is not text.", fix=f'give {name} as text in quotes, such as "people".')
    # Line ends of all kinds become one, before what is left of them would count as unprintable.
    return _UNPRINTABLE.sub(_REPLACEMENT, re.sub("\r\n?|\x0b|\x0c|\x85|\u2028|\u2029", "\n", value))


def one_line(value: object, *, name: str = "text") -> str:
    """Return clean text in one line."""
    return " ".join(clean(value, name=name).split())


def lines(values: object, *, name: str) -> tuple[str, ...]:
    """Return a sequence of clean texts."""
    return tuple(clean(value, name=f"an item of {name}") for value in several(values, name=name))


def several(values: object, *, name: str) -> tuple[object, ...]:
    """Return the items of a sequence; one text alone is refused, because its letters are not meant."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterTypeError(f"{name} is not a sequence.", fix=f"give {name} as a list.")
    return tuple(values)


def to_cell(value: object) -> str | int | float | None:
    """Return a value as text, a finite number or None; NumPy, Arrow and pandas values are taken as they are meant."""
    (found,) = inputs.items([value], name="value")
    match found:
        case None | bool():
            return {None: None, True: "yes", False: "no"}[found]
        case int():
            return found
        case float() | Fraction() | Decimal():
            return _finite(float(found))
        case datetime() | date():
            return inputs.text(found, width=80)
    return clean(found, name="a value")


def format_value(value: object) -> str:
    """Return a value as it reads in running text.

    >>> format_value(30162), format_value(0.05472), format_value(12345.678), format_value(0.5)
    ('30,162', '0.05472', '12,346', '0.5')
    """
    if value is None:
        return NOTHING
    if not isinstance(value, int | float):
        return str(value)
    return format_number(value).replace("-", "\N{MINUS SIGN}")


def _finite(value: float) -> float | str:
    if math.isinf(value):
        return "∞" if value > 0 else "\N{MINUS SIGN}∞"
    return value


class Status(StrEnum):
    """How a figure, a check or a whole release stands."""

    GOOD = "good"
    ATTENTION = "attention"
    BAD = "bad"
    NEUTRAL = "neutral"

    @property
    def sign(self) -> str:
        """Return the sign that is shown with the color."""
        return _SIGNS[self]

    @property
    def word(self) -> str:
        """Return the word that is shown with the color; a neutral status has none."""
        return _WORDS[self]


_SIGNS = {Status.GOOD: "✓", Status.ATTENTION: "!", Status.BAD: "✕", Status.NEUTRAL: "○"}
_WORDS = {Status.GOOD: "OK", Status.ATTENTION: "Attention", Status.BAD: "Problem", Status.NEUTRAL: ""}


def check_status(value: object) -> Status:
    """Return the status that a caller named."""
    return Status(check_choice(value, name="status", allowed=tuple(Status)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """A short text with a status: the outcome of a whole report, or one cell of a table.

    >>> Verdict("5 of 5 models hold", Status.GOOD).status.word
    'OK'
    """

    text: str
    status: Status = Status.NEUTRAL

    def __init__(
        self,
        text: str,
        status: Status | str = Status.NEUTRAL,
    ) -> None:
        construct(self, text=text, status=status)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean(self.text))
        object.__setattr__(self, "status", check_status(self.status))


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
        yield Span("", found[style]) if style == "escaped" else Span(style, _unescape(found[style]))  # type: ignore[arg-type, index]  # every match has a group
        end = found.end()
    if end < len(text):
        yield Span("", text[end:])


def escape_text(text: str) -> str:
    r"""Return a text whose stars, backticks and backslashes mean themselves.

    >>> print(escape_text("a*b"))
    a\*b
    """
    return re.sub(r"([\\*`])", r"\\\1", text)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which empty lines set apart, each in one line."""
    return [" ".join(part.split()) for part in re.split(r"\n[ \t]*\n", text) if part.strip()]


def _unescape(text: str) -> str:
    return re.sub(r"\\([\\*`])", r"\1", text)
