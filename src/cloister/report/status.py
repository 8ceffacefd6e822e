"""How something stands: a word and a sign beside each color, so that a black-and-white print says the same."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cloister.core.validation import check_choice
from cloister.report.wording import clean


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


def checked_status(value: object) -> Status:
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean(self.text))
        object.__setattr__(self, "status", checked_status(self.status))
