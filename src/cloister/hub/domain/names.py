"""Names that cannot be confused: of accounts, which people type and policies and ledgers quote, and of institutions."""

from __future__ import annotations

import re
import unicodedata

from cloister.errors import ParameterError

_ACCOUNT = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_SPACES = re.compile(r"\s+")
_LOOK_ALIKES = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
"""Alphabets whose letters look like those of another."""

LONGEST = 200


def folded(name: str) -> str:
    """Return what two spellings of one name have in common: capitals, width and spaces do not count."""
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
    if not clean or clean != clean.strip() or not clean.isprintable() or len(clean) > LONGEST:
        raise ParameterError(
            f"The {what} is empty, too long, or has characters that do not print.",
            fix=f"give 1 to {LONGEST} printable characters.",
        )
    alphabets = {unicodedata.name(letter, "").partition(" ")[0] for letter in clean if letter.isalpha()}
    if len(alphabets & _LOOK_ALIKES) > 1:
        raise ParameterError(f"The {what} mixes alphabets that look alike.", fix="write it in one alphabet.")
    return clean
