"""Texts that people read in a survey: not too long, and without characters that would change what is shown."""

from __future__ import annotations

import unicodedata

from cloister.errors import ParameterError

__all__ = ["MOST_CHARACTERS", "check_text", "has_commands", "is_written"]

MOST_CHARACTERS = 1000
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def check_text(value: object, *, name: str, empty: bool = False) -> str:
    """Return a text for people, not too long, on one line, and without characters that would change what is shown."""
    if isinstance(value, str) and not value.strip() and not empty:
        raise ParameterError(f"{name} is empty.", fix="write what people are to read there.")
    if not isinstance(value, str) or not is_written(value):
        raise ParameterError(
            f"{name} is not a text of up to {MOST_CHARACTERS:,} characters.", fix=f"write {name} in quotes."
        )
    shown = " ".join(value.split())
    if has_commands(shown):
        raise ParameterError(
            f"{name} holds characters that command a terminal or turn the direction of text.",
            fix="delete them: people must see what is written.",
        )
    return shown


def has_commands(text: str) -> bool:
    """Return whether a text holds control characters, or overrides of the direction of writing."""
    return any(unicodedata.category(character) == "Cc" or character in _TURNING for character in text)


def is_written(text: str) -> bool:
    """Return whether a text is not too long, and can be written to a file."""
    return len(text) <= MOST_CHARACTERS and not any("\ud800" <= character <= "\udfff" for character in text)
