"""Detection of identifiers, by name, form or near uniqueness, and names that suggest a quasi or sensitive column.

An identifier is a column that singles out one person. The name of a column also suggests whether it is sensitive or a
quasi-identifier; names are public, so they may be read freely. Personal numbers of several countries and of banks are
recognized by their form and their check digits.

The findings say what they rest on, in shares and kinds, and never quote a value. They are suggestions: a check digit
can fit by chance, and an identifier in an unknown form can only be seen by its uniqueness.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import cycle

from cloister.core.wordings import percent
from cloister.data.values import ColumnProfile, StorageType, is_missing, text_of

_PERSON = (
    "applicant|borrower|child|citizen|client|contact|customer|donor|employee|holder|household|individual|member|owner"
    "|participant|passenger|patient|person|respondent|staff|student|subject|subscriber|teacher|user|visitor|voter|worker"
)

IDENTIFIERS = {
    "a user name": r"user ?name|login|nick ?name|handle|screen ?name",
    "a person's name": rf"name|((first|last|middle|full|given|family|maiden|birth|{_PERSON}) ?names?)|surname|forename"
    r"|vorname|nachname|nombres?|apellidos?|pr[eé]nom|soyad\w?|ad soyad|isim",
    "an e-mail address": r"(.* )?(e ?mail|eposta)( address)?",
    "a phone number": r"(.* )?(phone|telephone|mobile|cell ?phone|fax|telefon|tel)( number| no| nr)?",
    "a device or vehicle number": r"(.* )?(ip|ip address|mac|mac address|imei|imsi|vin|licen[cs]e plate|plate( number"
    r"| no)?|serial( number| no)?|device id|cookie( id)?)",
    "a street address": r"(.* )?(street|address|adre[s]+e?|direcci[oó]n)( line)?( \d)?",
    "a national identity number": r"(.* )?(ssn|social security( number| no)?|national (id|insurance)( number| no)?|nino"
    r"|nhs( number| no)?|tc ?kimlik( no)?|steuer ?id|dni|nie|personnummer|bsn|pesel|cpf|hetu|nir|tax id|passport"
    r"( number| no)?|driver s? ?licen[cs]e( number| no)?)",
    "an account or card number": r"(.* )?(iban|account( number| no| nr| id)?|(credit ?)?card( number| no| nr)|pan)",
    "a record number": rf"id|uid|uuid|guid|mrn|((({_PERSON}|medical|record|case|chart|admission|visit|encounter|row"
    r"|insurance|policy)( record)?) ?(id|uid|uuid|guid|key|code|number|no|nr|ref|reference))|record",
}
SUBJECT = rf"(({_PERSON})( record)?) ?(id|uid|uuid|guid|key|code|number|no|nr)|mrn"

SENSITIVE = (
    r"disease|diagnos[ie]s|diagnosis code|icd( ?\d+)?|illness|condition|symptoms?|treatment|therapy|medications?|drugs?"
    r"|prescriptions?|hiv|aids|cancer|lab|test results?|result|blood( type)?|allerg(y|ies)|disabilit(y|ies)|mental"
    r"|pregnan(t|cy)|genetic|genotype|cause of death|death|outcome|smok(er|ing)|alcohol|bmi|cholesterol|glucose"
    r"|salar(y|ies)|incomes?|wages?|earnings|pay|bonus|debts?|loans?|credit( score)?|balance|mortgage|wealth|capital"
    r"|religion|belief|faith|politic(s|al)|party|votes?|sexual|orientation|union|crimes?|offenses?|offences?|convictions?"
    r"|arrests?|grades?|gpa|scores?|marks?|charge|cost"
)
QUASI = (
    r"ages?|birth|born|dob|birth ?(date|day|year|place)|year of birth|zip|zip ?codes?|post ?(al)?( ?code)?|plz|sex"
    r"|gender|race|ethnicity|ethnic|nationality|citizenship|country|native|region|state|province|county|city|town|village"
    r"|district|municipality|neighbou?rhood|location|latitude|longitude|lat|lon|lng|marital|relationship|married"
    r"|education|degree|school|university|occupation|job|profession|employer|work|workclass|industry|position"
    r"|language|height|weight|children|household|family|hours|admission|discharge|visit|date|hospital|ward"
)
PLACES = r"location|coordinates?|gps|geo|geometry|position|point|latlon|latlng"
CODES = r"codes?|zip|zip ?codes?|post ?(al)?( ?code)?|plz|id|type|class|category|group|flag|icd( ?\d+)?|status|level"


def plain_name(name: str) -> str:
    """Return a column's name as lower-case words: ``patientID`` and ``patient_id`` are both ``patient id``."""
    split = re.sub(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return " ".join(re.findall(r"\w+", split.replace("_", " ").lower()))


def is_called(name: str, pattern: str) -> bool:
    """Return whether a whole name is as a pattern says."""
    return re.fullmatch(pattern, plain_name(name)) is not None


def mentions(name: str, pattern: str) -> bool:
    """Return whether a pattern's words are among those of a name."""
    return re.search(rf"\b(?:{pattern})\b", plain_name(name)) is not None


def identifier_by_name(name: str) -> str | None:
    """Return what kind of identifier a name announces, if any."""
    return next((kind for kind, pattern in IDENTIFIERS.items() if is_called(name, pattern)), None)


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
    return bool(digits) and (11 - _weigh_digits(digits[:9], range(10, 1, -1)) % 11) % 11 == digits[9]


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
    # Coordination numbers have 60 added to the day.
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
    return any(digits) and _weigh_digits(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def is_polish_pesel(text: str) -> bool:
    """Return whether a text is a Polish PESEL: a date and a check digit."""
    digits = _digits(text, 11)
    if not digits:
        return False
    # The century is told by 20, 40, 60 or 80 added to the month.
    month, day = (10 * digits[2] + digits[3]) % 20, 10 * digits[4] + digits[5]
    check = (10 - _weigh_digits(digits[:10], (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10
    return _is_day(2000, month, day) and check == digits[10]


def is_brazilian_cpf(text: str) -> bool:
    """Return whether a text is a Brazilian CPF: eleven digits, the last two check."""
    digits = _digits(text, 11)
    # Eleven equal digits pass the check, and are nobody's number.
    if len(set(digits)) < 2:
        return False
    return all(
        (_weigh_digits(digits[:count], range(count + 1, 1, -1)) * 10 % 11) % 10 == digits[count] for count in (9, 10)
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


def _weigh_digits(digits: Sequence[int], weights: Sequence[int]) -> int:
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=True))


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        return bool(date(year, month, day))
    except ValueError:
        return False


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
    # Dates have the form of phone numbers, too.
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
    _Form("an IBAN", is_iban, distinctive=True),
    _Form("a US social security number", is_us_social_security, distinctive=True),
    _Form("a UK national insurance number", is_uk_national_insurance, distinctive=True),
    _Form("a Spanish identity number", is_spanish_identity, distinctive=True),
    _Form("a Finnish identity code", is_finnish_identity, distinctive=True),
    _Form("a Turkish identity number", is_turkish_identity),
    _Form("a Polish PESEL", is_polish_pesel),
    _Form("a Brazilian CPF", is_brazilian_cpf),
    _Form("a German tax number", is_german_tax_id),
    _Form("a Swedish personal number", is_swedish_personal),
    _Form("an NHS number", is_nhs_number),
    _Form("a French social security number", is_french_social_security),
    _Form("a Dutch service number", is_dutch_service_number),
    _Form("a payment card number", is_card_number),
    _Form("a phone number", _is_phone),
)
