"""Finding columns that single out one person: by their name, by the form of their values, by being near unique.

The findings say what they rest on, in shares and kinds, and never quote a value. They are suggestions: a check digit
can fit by chance, and an identifier in an unknown form can only be seen by its uniqueness.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cloister.data import national_ids
from cloister.data.column_names import SUBJECT, identifier_by_name, is_called, plain_name
from cloister.data.profile import ColumnProfile, StorageType
from cloister.data.values import is_missing, text_of

SHARE = 0.8
"""The share of values that must have a form before the column is said to have it."""

NEAR_UNIQUE = 0.95
_NEAR_UNIQUE_NUMBERS = 0.99
_ENOUGH_ROWS = 20
_ENOUGH_MATCHES = 5


@dataclass(frozen=True, slots=True)
class Identifier:
    """Why a column seems to single out a person."""

    kind: str
    evidence: str
    by_value: bool


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of values; a distinctive one is believed after few examples, digits with a check only after several."""

    kind: str
    fits: Callable[[str], bool]
    distinctive: bool = False


def find_identifier(profile: ColumnProfile) -> Identifier | None:
    """Return why a column seems to be an identifier, or None."""
    return _by_form(profile) or _by_name(profile) or _by_uniqueness(profile)


def names_subject(profile: ColumnProfile) -> bool:
    """Return whether a column seems to name the person while several rows may be about the same one."""
    return is_called(profile.name, SUBJECT) and profile.distinct < profile.rows - profile.missing


def uniqueness(profile: ColumnProfile) -> float:
    """Return the number of different values as a share of those that are there."""
    present = profile.rows - profile.missing
    return profile.distinct / present if present > 0 else 0.0


def percent(share: float) -> str:
    """Return a share in words."""
    return "less than 1%" if 0 < share < 0.01 else f"{share:.0%}"


def form_of(values: Sequence[object]) -> tuple[str, float] | None:
    """Return the form of identifier that most of the values have, and their share."""
    texts = [text_of(value).strip() for value in values if not is_missing(value)]
    for form in _FORMS:
        matches = sum(map(form.fits, texts))
        if matches >= (1 if form.distinctive else _ENOUGH_MATCHES) and matches >= SHARE * len(texts):
            return form.kind, matches / len(texts)
    return None


def _by_form(profile: ColumnProfile) -> Identifier | None:
    if profile.type not in (StorageType.TEXT, StorageType.INTEGER):
        return None
    found = form_of(profile.common)
    if found is None:
        return None
    kind, share = found
    return Identifier(kind, f"{percent(share)} of the frequent values have the form of {kind}", by_value=True)


def _by_name(profile: ColumnProfile) -> Identifier | None:
    kind = identifier_by_name(profile.name)
    if kind is not None:
        return Identifier(kind, f"its name suggests {kind}", by_value=False)
    if plain_name(profile.name).endswith(" id") and uniqueness(profile) >= 0.5:
        return Identifier("a record number", "its name ends in id and most values differ", by_value=False)
    return None


def _by_uniqueness(profile: ColumnProfile) -> Identifier | None:
    limits = {StorageType.TEXT: NEAR_UNIQUE, StorageType.INTEGER: _NEAR_UNIQUE_NUMBERS}
    share = uniqueness(profile)
    if profile.rows - profile.missing < _ENOUGH_ROWS or share < limits.get(profile.type, 2):
        return None
    return Identifier("a near-unique value", f"different values are {percent(share)} of all values", by_value=False)


def _is_email(text: str) -> bool:
    return re.fullmatch(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}", text) is not None


def _is_phone(text: str) -> bool:
    if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}", text):
        return False
    enough = 7 <= sum(sign.isdigit() for sign in text) <= 15
    return enough and re.fullmatch(r"(?:\+|00|\()\d[\d ().\-/]+|\d{2,4}[-. ]\d{3,4}[-. ]\d{3,4}", text) is not None


def _is_address(text: str) -> bool:
    try:
        return ("." in text or ":" in text) and bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _is_uuid(text: str) -> bool:
    return re.fullmatch(r"\{?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\}?", text.lower()) is not None


def _is_mac(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}", text.lower()) is not None


_FORMS = (
    _Form("an e-mail address", _is_email, distinctive=True),
    _Form("a UUID", _is_uuid, distinctive=True),
    _Form("an IP address", _is_address, distinctive=True),
    _Form("a device address", _is_mac, distinctive=True),
    _Form("an IBAN", national_ids.is_iban, distinctive=True),
    _Form("a US social security number", national_ids.is_us_social_security, distinctive=True),
    _Form("a UK national insurance number", national_ids.is_uk_national_insurance, distinctive=True),
    _Form("a Spanish identity number", national_ids.is_spanish_identity, distinctive=True),
    _Form("a Finnish identity code", national_ids.is_finnish_identity, distinctive=True),
    _Form("a Turkish identity number", national_ids.is_turkish_identity),
    _Form("a Polish PESEL", national_ids.is_polish_pesel),
    _Form("a Brazilian CPF", national_ids.is_brazilian_cpf),
    _Form("a German tax number", national_ids.is_german_tax_id),
    _Form("a Swedish personal number", national_ids.is_swedish_personal),
    _Form("an NHS number", national_ids.is_nhs_number),
    _Form("a French social security number", national_ids.is_french_social_security),
    _Form("a Dutch service number", national_ids.is_dutch_service_number),
    _Form("a payment card number", national_ids.is_card_number),
    _Form("a phone number", _is_phone),
)
