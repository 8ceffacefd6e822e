"""Recognizing personal numbers of several countries and of banks by their form and their check digits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from itertools import cycle

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU_LETTERS = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_NINO_UNUSED = ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


def is_us_social_security(text: str) -> bool:
    """Return whether a text has the form of a US social security number, dashes included."""
    return re.fullmatch(r"(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}", text) is not None


def is_uk_national_insurance(text: str) -> bool:
    """Return whether a text has the form of a UK national insurance number."""
    compact = text.replace(" ", "").upper()
    form = re.fullmatch(r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\d{6}[A-D]", compact)
    return form is not None and not compact.startswith(_NINO_UNUSED)


def is_nhs_number(text: str) -> bool:
    """Return whether a text is an NHS number: ten digits, the last checks the others modulo 11."""
    digits = _digits(text, 10)
    return bool(digits) and (11 - _weighted(digits[:9], range(10, 1, -1)) % 11) % 11 == digits[9]


def is_turkish_identity(text: str) -> bool:
    """Return whether a text is a Turkish identity number (TC kimlik): eleven digits, the last two check."""
    digits = _digits(text, 11)
    if not digits or digits[0] == 0:
        return False
    tenth = (7 * sum(digits[0:9:2]) - sum(digits[1:8:2])) % 10
    return digits[9] == tenth and digits[10] == sum(digits[:10]) % 10


def is_german_tax_id(text: str) -> bool:
    """Return whether a text is a German tax identification number (ISO 7064, MOD 11,10)."""
    digits = _digits(text, 11)
    if not digits or digits[0] == 0:
        return False
    product = 10
    for digit in digits[:10]:
        total = (digit + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == digits[10]


def is_spanish_identity(text: str) -> bool:
    """Return whether a text is a Spanish DNI or NIE: the letter at the end checks the number modulo 23."""
    compact = text.replace("-", "").replace(" ", "").upper()
    if not re.fullmatch(r"[XYZ\d]\d{7}[A-Z]", compact, re.ASCII):
        return False
    number = compact[:8].translate(str.maketrans("XYZ", "012"))
    return _DNI_LETTERS[int(number) % 23] == compact[8]


def is_swedish_personal(text: str) -> bool:
    """Return whether a text is a Swedish personnummer: a date, four digits, and a Luhn check."""
    match = re.fullmatch(r"(?:\d{2})?(\d{2})(\d{2})(\d{2})[-+]?(\d{4})", text, re.ASCII)
    if match is None:
        return False
    day = int(match[3]) % 60
    return _is_day(2000, int(match[2]), day) and is_luhn("".join(match.groups()))


def is_french_social_security(text: str) -> bool:
    """Return whether a text is a French NIR: thirteen digits and a key modulo 97."""
    digits = _digits(text, 15)
    number = int("".join(map(str, digits))) if digits else 0
    return bool(digits) and digits[0] in (1, 2) and 97 - number // 100 % 97 == number % 100


def is_dutch_service_number(text: str) -> bool:
    """Return whether a text is a Dutch BSN: nine digits that pass the eleven test."""
    digits = _digits(text, 9)
    return any(digits) and _weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def is_polish_pesel(text: str) -> bool:
    """Return whether a text is a Polish PESEL: a date and a check digit."""
    digits = _digits(text, 11)
    if not digits:
        return False
    month, day = (10 * digits[2] + digits[3]) % 20, 10 * digits[4] + digits[5]
    check = (10 - _weighted(digits[:10], (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10
    return _is_day(2000, month, day) and check == digits[10]


def is_brazilian_cpf(text: str) -> bool:
    """Return whether a text is a Brazilian CPF: eleven digits, the last two check."""
    digits = _digits(text, 11)
    if len(set(digits)) < 2:
        return False
    return all(
        (_weighted(digits[:count], range(count + 1, 1, -1)) * 10 % 11) % 10 == digits[count] for count in (9, 10)
    )


def is_finnish_identity(text: str) -> bool:
    """Return whether a text is a Finnish identity code: a date, a century sign, three digits and a check sign."""
    match = re.fullmatch(r"(\d{2})(\d{2})(\d{2})[-+A-FU-Y](\d{3})([0-9A-Y])", text.upper(), re.ASCII)
    if match is None or not _is_day(2000, int(match[2]), int(match[1])):
        return False
    number = int(match[1] + match[2] + match[3] + match[4])
    return _HETU_LETTERS[number % 31] == match[5]


def is_iban(text: str) -> bool:
    """Return whether a text is an international bank account number (ISO 13616, modulo 97)."""
    compact = text.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", compact, re.ASCII):
        return False
    return int("".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])) % 97 == 1


def is_card_number(text: str) -> bool:
    """Return whether a text is a payment card number: 13 to 19 digits that pass the Luhn check."""
    compact = re.sub(r"[ -]", "", text)
    return re.fullmatch(r"[2-6]\d{12,18}", compact, re.ASCII) is not None and is_luhn(compact)


def is_luhn(digits: str) -> bool:
    """Return whether digits pass the Luhn check."""
    doubled = (int(digit) * factor for digit, factor in zip(reversed(digits), cycle((1, 2)), strict=False))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _digits(text: str, count: int) -> list[int]:
    """Return the digits of a number of a given length, separators aside, or nothing."""
    compact = re.sub(r"[ ./-]", "", text)
    return [int(sign) for sign in compact] if re.fullmatch(rf"\d{{{count}}}", compact, re.ASCII) else []


def _weighted(digits: Sequence[int], weights: Sequence[int]) -> int:
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=True))


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        return bool(date(year, month, day))
    except ValueError:
        return False
