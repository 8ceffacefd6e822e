"""The eighteen identifiers of the HIPAA safe harbor (45 CFR 164.514(b)(2)), as a checklist for a person.

Columns are judged by name, kind and stated precision, never by reading every cell: an identifier in a free text, or in
a column with a name that says nothing, is not found. "Not found" is no finding of absence, and the rule's last
condition (no actual knowledge that the rest could identify somebody) cannot be checked by a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from cloister.data.columns import Column, Kind, Role
from cloister.data.schema import Schema

__all__ = ["SafeHarborFinding", "SafeHarborItem", "safe_harbor"]

_OLDEST = 89


class SafeHarborFinding(StrEnum):
    """What a look at the schema says."""

    FOUND = "found"
    LOOK = "look"
    NOT_FOUND = "not found"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeHarborItem:
    """One identifier of the rule.

    Attributes:
        number: its place in the rule, 1 to 18.
        what: what must be removed.
        finding: what the schema says.
        columns: the columns in question.
        advice: what to do about them.
    """

    number: int
    what: str
    finding: SafeHarborFinding
    columns: tuple[str, ...] = ()
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {**asdict(self), "finding": str(self.finding), "columns": list(self.columns)}


@dataclass(frozen=True, slots=True)
class _Rule:
    what: str
    words: str
    advice: str
    concerns: Callable[[Column], bool] | None = None
    otherwise: SafeHarborFinding = SafeHarborFinding.NOT_FOUND


def safe_harbor(schema: Schema) -> tuple[SafeHarborItem, ...]:
    """Return the checklist for the columns of a schema."""
    *listed, other = enumerate(_RULES, start=1)
    items = [_item(number, rule, schema, names=tuple(schema)) for number, rule in listed]
    named = {name for item in items if item.finding is SafeHarborFinding.FOUND for name in item.columns}
    left = tuple(name for name in schema if name not in named)
    return (*items, _item(*other, schema, names=left))


def _item(number: int, rule: _Rule, schema: Schema, *, names: tuple[str, ...]) -> SafeHarborItem:
    named = tuple(name for name in names if re.search(rule.words, _plain(name)))
    if named:
        return SafeHarborItem(
            number=number, what=rule.what, finding=SafeHarborFinding.FOUND, columns=named, advice=rule.advice
        )
    concerned = tuple(name for name in names if rule.concerns and rule.concerns(schema[name]))
    finding = SafeHarborFinding.LOOK if concerned else rule.otherwise
    return SafeHarborItem(
        number=number, what=rule.what, finding=finding, columns=concerned, advice=rule.advice if concerned else ""
    )


def _plain(name: str) -> str:
    """Return a name in lower-case words with a space on either side."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return " " + re.sub(r"[^a-z0-9]+", " ", spaced.lower()).strip() + " "


def _is_location(column: Column) -> bool:
    return column.kind is Kind.LOCATION


def _is_date(column: Column) -> bool:
    return column.kind is Kind.DATETIME


def _is_free_text(column: Column) -> bool:
    return column.kind is Kind.TEXT


def _is_identifier(column: Column) -> bool:
    return column.role is Role.IDENTIFIER


_DROP = "drop the column, or replace it by a keyed pseudonym whose key stays with you."
_RULES = (
    _Rule("names", r" (first|last|full|sur|given|family|maiden|middle) ?name | name | surname ", _DROP),
    _Rule(
        "places smaller than a state",
        r" (address|street|city|town|county|parish|precinct|zip|postal|postcode|geo(code)?|lat(itude)?|lon(gitude)?) "
        r"| zip ?code ",
        "keep the state; or the first three digits of a zip code, where more than 20,000 people share them, else 000.",
        _is_location,
    ),
    _Rule(
        "dates except the year, and ages above 89",
        r" (date|dob|birth ?day|birth ?date|birth|admission|discharge|death|age) ",
        f"keep the year only, and put every age above {_OLDEST} into one group of 90 or older.",
        _is_date,
    ),
    _Rule("telephone numbers", r" (tele)?phone | mobile | cell(phone)? ", _DROP),
    _Rule("fax numbers", r" (tele)?fax ", _DROP),
    _Rule("e-mail addresses", r" e ?mail ", _DROP),
    _Rule("social security numbers", r" ssn | social security | national insurance ", _DROP),
    _Rule(
        "medical record numbers", r" mrn | medical record | patient (id|no|number|nr) | chart (id|no|number) ", _DROP
    ),
    _Rule(
        "health plan beneficiary numbers",
        r" beneficiary | health plan | (insurance|member|policy) (id|no|number) ",
        _DROP,
    ),
    _Rule("account numbers", r" account | iban | credit card | card (no|number) ", _DROP),
    _Rule("certificate and license numbers", r" licen[cs]e | certificate | passport ", _DROP),
    _Rule("vehicle identifiers and license plates", r" vin | vehicle | (number|license) ?plate ", _DROP),
    _Rule("device identifiers and serial numbers", r" device | serial | imei | mac ", _DROP),
    _Rule("web addresses (URLs)", r" urls? | website | web ?page ", _DROP),
    _Rule("internet (IP) addresses", r" ip | ip ?address ", _DROP),
    _Rule("biometric identifiers", r" finger ?print | voice ?print | retina | iris | biometric | genome | dna ", _DROP),
    _Rule("full-face photographs and comparable images", r" photo(graph)? | image | picture | face ", _DROP),
    _Rule(
        "any other unique number, characteristic or code",
        r" uuid | guid | (record|row|case|subject|person|customer|user|employee|student) ?(id|no|nr|number|key) | id ",
        _DROP,
        lambda column: _is_identifier(column) or column.subject or _is_free_text(column),
        SafeHarborFinding.CANNOT_TELL,
    ),
)
