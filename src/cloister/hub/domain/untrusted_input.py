"""What people and programs send, checked before it is used: names, pages to go to, and request bodies.

Names cannot be confused: of accounts, which people type and policies and ledgers quote, and of institutions.
After signing in, a person is sent only to a page of the hub itself. Request bodies and sets of parameters hold nothing
unknown, and no truth value as a number: Python takes True for 1, and so does pydantic, so a budget of ``true`` would be
epsilon 1, and a limit of ``true`` one row.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from cloister.errors import ParameterError

__all__ = ["RequestBody"]


_ACCOUNT = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_SPACES = re.compile(r"\s+")
_LOOK_ALIKES = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
"""Alphabets whose letters look like those of another."""

LONGEST_TITLE = 200


def fold_name(name: str) -> str:
    """Return what two spellings of one name have in common: capitals, width and spaces do not count."""
    # Folding can bring forth what normalizing would change again, so that both are done twice.
    for _ in range(2):
        name = unicodedata.normalize("NFKC", name).casefold()
    return _SPACES.sub(" ", name).strip()


def check_account_name(name: str) -> str:
    """Return the name of an account: small Latin letters, digits and ``. _ -`` only, so that no two look alike."""
    if _ACCOUNT.fullmatch(name) is None:
        raise ParameterError(
            "The name of the account is not one that cannot be confused.",
            fix="use 1 to 64 small letters a-z, digits, dots, hyphens or underscores, such as ada.lovelace.",
        )
    return name


def check_title(name: str, *, what: str) -> str:
    """Return the name of an institution or a person as it is shown: printable, in one Unicode form, in one alphabet."""
    clean = unicodedata.normalize("NFC", name)
    if not clean or clean != clean.strip() or not clean.isprintable() or len(clean) > LONGEST_TITLE:
        raise ParameterError(
            f"The {what} is empty, too long, or has characters that do not print.",
            fix=f"give 1 to {LONGEST_TITLE} printable characters.",
        )
    alphabets = {unicodedata.name(letter, "").partition(" ")[0] for letter in clean if letter.isalpha()}
    if len(alphabets & _LOOK_ALIKES) > 1:
        raise ParameterError(f"The {what} mixes alphabets that look alike.", fix="write it in one alphabet.")
    return clean


LONGEST_PATH = 500


def local_path(wanted: str | None, *, otherwise: str = "/") -> str:
    """Return a path on this hub, or another one where it could lead anywhere else."""
    if wanted is None or not 0 < len(wanted) <= LONGEST_PATH:
        return otherwise
    if not wanted.isascii() or not wanted.isprintable() or any(letter in wanted for letter in ' \\"<>{}'):
        return otherwise
    # Browsers take two slashes for another host.
    if not wanted.startswith("/") or wanted.startswith("//"):
        return otherwise
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return otherwise
    return otherwise if parts.scheme or parts.netloc else wanted


class RequestBody(BaseModel):
    """Values that somebody sends, checked by the types of the fields."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_values(cls, value: Any, info: ValidationInfo) -> Any:  # whatever somebody sent
        kinds = set(_kinds(cls.model_fields[str(info.field_name)].annotation))
        if kinds & {bool, Any, object}:
            return value
        # The values inside of another model are looked at by that model, whose fields may be truth values.
        has_models = any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)
        if isinstance(value, bool) or (not has_models and _holds_truth_value(value)):
            raise ValueError(
                "a truth value (true or false) is neither a number nor a text"
            )  # pydantic takes no TypeError
        return value


def _kinds(annotation: Any) -> list[Any]:
    """Return the types that an annotation is made of."""
    parts = get_args(annotation)
    return [annotation] if not parts else [kind for part in parts for kind in _kinds(part)]


def _holds_truth_value(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_truth_value(part) for part in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds_truth_value(part) for part in value)
    return isinstance(value, bool)
