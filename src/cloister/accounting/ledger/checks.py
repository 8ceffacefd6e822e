"""Checks of what callers hand to a ledger: each returns the clean value or raises an error with a fix."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from typing import Any

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.core.guarantees import Adjacency
from cloister.core.validation import check_choice
from cloister.core.wordings import a_or_an
from cloister.errors import AccountMismatchError, ParameterError, ParameterTypeError

LONGEST_NAME = 200
LONGEST_PURPOSE = 1_000
LONGEST_KEY = 100_000
FINEST = 2**512
"""Numbers in a ledger have at most this denominator, and are at most this large."""


def check_name(value: object, *, name: str) -> str:
    """Return a name in one Unicode form, so that two ways of typing it are not two accounts."""
    text = _text(value, name=name)
    if not text or text != text.strip() or not text.isprintable() or len(text) > LONGEST_NAME:
        raise ParameterError(
            f"The {name} is empty, too long, or has characters that do not print.",
            fix=f'name the {name} in 1 to {LONGEST_NAME} printable characters, such as "hospital-2026".',
        )
    return unicodedata.normalize("NFC", text)


def check_spelling(value: str, known: Iterable[str], *, name: str) -> None:
    """Raise if a new name differs from a known one only by capitals, width or other forms of the same letters."""
    for other in known:
        if other != value and _fold(other) == _fold(value):
            raise AccountMismatchError(
                f'The {name} "{value}" is only another spelling of "{other}".',
                fix=f'write {name} "{other}", or choose a name that differs by more than capitals or width.',
            )


def check_analyst(value: object) -> str | None:
    """Return the name of an analyst, or None."""
    return None if value is None else check_name(value, name="analyst")


def check_purpose(value: object) -> str:
    """Return a sentence of limited length, possibly empty."""
    return _short(_text(value, name="purpose"), name="purpose", longest=LONGEST_PURPOSE)


def check_key(value: object) -> str:
    """Return the canonical text of a query."""
    key = _short(_text(value, name="key"), name="key", longest=LONGEST_KEY)
    if not key:
        raise ParameterError("The key is empty.", fix="give the canonical text of the query, or leave the key out.")
    return key


def check_adjacency(value: object) -> Adjacency:
    """Return a neighbor relation."""
    return Adjacency(check_choice(value, name="adjacency", allowed=list(Adjacency)))


def check_event(value: object) -> Event | None:
    """Return an event, or None."""
    if value is None or isinstance(value, Event):
        return value
    raise ParameterTypeError("The event is not an Event.", fix="give the event of the mechanism, or leave it out.")


def check_budget(value: object, *, name: str = "budget") -> Budget:
    """Return a budget whose numbers are of a sensible size."""
    budget = _budget(value, name=name)
    if budget.amount.denominator > FINEST or budget.delta.denominator > FINEST:
        raise ParameterError(f"The {name} has far too many digits.", fix=f"round the {name} to a few digits.")
    return budget


def check_cost(value: object) -> Budget:
    """Return a cost that is not zero."""
    return _not_zero(_budget(value, name="cost"), name="cost")


def check_opening(value: object) -> Budget:
    """Return the budget of a new account, which is not zero."""
    return _not_zero(check_budget(value), name="budget")


def check_json(value: object) -> Any:  # any JSON value
    """Return a value as JSON gives it back."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise ParameterTypeError(
            "The answer cannot be written as JSON.",
            fix="store numbers, text, lists and dictionaries without NaN or infinity, such as answer.to_dict().",
        ) from None


def digest_of_key(key: str) -> str:
    """Return the fixed-length text under which a query is looked up."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _fold(text: str) -> str:
    # Folding capitals can undo a normal form, so that one round is not enough.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text).casefold()
    return text


def _budget(value: object, *, name: str) -> Budget:
    if not isinstance(value, Budget):
        raise ParameterTypeError(f"The {name} is not a Budget.", fix=f"write {name}=Budget(epsilon=0.1).")
    if value.amount > FINEST:
        raise ParameterError(f"The {name} is absurdly large.", fix=f"give {a_or_an(name)} of a few digits.")
    return value


def _not_zero(budget: Budget, *, name: str) -> Budget:
    if not budget.amount and not budget.delta:
        raise ParameterError(
            f"The {name} is zero.", fix=f"give {a_or_an(name)} above zero, such as Budget(epsilon=0.1)."
        )
    return budget


def _text(value: object, *, name: str) -> str:
    if not isinstance(value, str):
        raise ParameterTypeError(f"The {name} is not text.", fix=f"give the {name} as text.")
    return value


def _short(text: str, *, name: str, longest: int) -> str:
    if len(text) > longest:
        raise ParameterError(f"The {name} is longer than {longest} characters.", fix=f"shorten the {name}.")
    return text
