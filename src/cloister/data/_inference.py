"""Inference of a schema from profiles. Everything proposed is marked as a guess, with what it rests on.

Bounds and categories that come from data tell about the people in it, so they may not be used before a person has
replaced or confirmed them. Bounds are rounded outward to two digits (dates to whole years), which also keeps the draft
from showing the exact extremes. Identifiers get no domain at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cloister.core import exact
from cloister.core.wordings import percent
from cloister.data import _identifiers as identifiers
from cloister.data._identifiers import find_identifier, names_subject, uniqueness
from cloister.data.columns import FROM_DATA, Bounds, Column, Kind, Role
from cloister.data.values import ColumnProfile, StorageType, is_missing
from cloister.errors import CloisterError

_AMOUNT = r"[+-]?[0-9]{1,3}([., ]?[0-9]{3})*([.,][0-9]+)?"
_ODD_SPELLINGS = {
    "days written day first or with slashes (write 2026-12-31)": re.compile(
        r"[0-9]{1,2}([./-])[0-9]{1,2}\1([0-9]{2}|[0-9]{4})|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}"
    ),
    "amounts with a currency (write the number alone)": re.compile(
        rf"([$€£¥]|[A-Z]{{3}}) ?{_AMOUNT}|{_AMOUNT} ?([$€£¥]|[A-Z]{{3}})"
    ),
    "numbers with commas (write 1234.5)": re.compile(
        r"[+-]?[0-9]+([., ][0-9]{3})*,[0-9]+|[+-]?[0-9]+,[0-9]+(\.[0-9]+)?"
    ),
}

MOST_CATEGORIES = 200
"""The most categories that are proposed; longer lists are better stated by a person."""


def infer_schema(profiles: Iterable[ColumnProfile]) -> list[Column]:
    """Return a proposal for every column, with all of it marked as guessed."""
    columns: list[Column] = []
    for profile in profiles:
        has_subject = any(column.subject for column in columns)
        columns.append(_infer_column(profile, may_be_subject=not has_subject))
    return columns


def _infer_column(profile: ColumnProfile, *, may_be_subject: bool) -> Column:
    role, reason = _role(profile)
    kind = _kind(profile, role)
    bounds = _bounds(profile) if role is not Role.IDENTIFIER and kind in (Kind.NUMERIC, Kind.DATETIME) else None
    categories = _categories(profile) if role is not Role.IDENTIFIER and kind is Kind.NOMINAL else None
    subject = may_be_subject and role is Role.IDENTIFIER and names_subject(profile)
    storage = profile.type if profile.missing < profile.rows else None
    reasons = [f"role: {reason}", *_odd_spelling(profile), *_domain_reasons(bounds=bounds, categories=categories)]
    if storage is not None:
        reasons.append("storage: the type that the values have")
    facts = {
        "role": True,
        "kind": True,
        "storage": storage,
        "bounds": bounds,
        "categories": categories,
        "subject": subject,
    }
    return Column(
        name=profile.name,
        role=role,
        kind=kind,
        storage=storage,
        bounds=bounds,
        categories=categories,
        subject=subject,
        guessed=frozenset(fact for fact, value in facts.items() if value),
        evidence="; ".join(reasons),
    )


def _role(profile: ColumnProfile) -> tuple[Role, str]:
    identifier = find_identifier(profile)
    near_unique_only = identifier is not None and identifier.kind == "a near-unique value"
    if identifier is not None and not (near_unique_only and _is_measure(profile)):
        return Role.IDENTIFIER, identifier.evidence
    share = f"different values are {percent(uniqueness(profile))} of all values"
    if identifiers.mentions(profile.name, identifiers.SENSITIVE):
        return Role.SENSITIVE, f"its name suggests something sensitive, {share}"
    if identifiers.mentions(profile.name, identifiers.QUASI):
        return Role.QUASI, f"its name suggests something that others know, {share}"
    return Role.QUASI, f"nothing says that others cannot know it, {share}"


def _is_measure(profile: ColumnProfile) -> bool:
    """Return whether a near-unique whole number is better explained by its name, as a salary is."""
    patterns = f"{identifiers.SENSITIVE}|{identifiers.QUASI}"
    return profile.type is StorageType.INTEGER and identifiers.mentions(profile.name, patterns)


def _kind(profile: ColumnProfile, role: Role) -> Kind:
    if profile.type in (StorageType.DATE, StorageType.TIMESTAMP):
        return Kind.DATETIME
    if profile.type is StorageType.BOOLEAN:
        return Kind.NOMINAL
    if profile.type is StorageType.TEXT:
        return _kind_of_text(profile, role)
    coded = role is Role.IDENTIFIER or identifiers.mentions(profile.name, identifiers.CODES)
    return Kind.NOMINAL if coded and profile.type is StorageType.INTEGER else Kind.NUMERIC


def _kind_of_text(profile: ColumnProfile, role: Role) -> Kind:
    if identifiers.mentions(profile.name, identifiers.PLACES):
        return Kind.LOCATION
    texts = [value for value in profile.common if isinstance(value, str)]
    if role is Role.IDENTIFIER or sum(len(text.split()) > 6 for text in texts) > len(texts) / 2:
        return Kind.TEXT
    listing = sum(any(mark in text for mark in "|;") for text in texts) > len(texts) / 2
    return Kind.SET if listing else Kind.NOMINAL


def _bounds(profile: ColumnProfile) -> Bounds | None:
    if is_missing(profile.minimum) or is_missing(profile.maximum):
        return None
    if profile.type in (StorageType.DATE, StorageType.TIMESTAMP):
        return _whole_years(profile.minimum, profile.maximum)
    try:
        low, high = (exact.number(end) for end in (profile.minimum, profile.maximum))
    except CloisterError:
        return None
    low, high = _round_outward(low, math.floor), _round_outward(high, math.ceil)
    # Bounds have to leave room, also where all values are the same.
    return (low, high) if low < high else (low, low + 1)


def _whole_years(first: Any, last: Any) -> Bounds | None:
    if not isinstance(first, date) or not isinstance(last, date):
        return None
    if isinstance(first, datetime):
        end = datetime(last.year, 12, 31, 23, 59, 59, 999_999, tzinfo=first.tzinfo)
        return datetime(first.year, 1, 1, tzinfo=first.tzinfo), end
    return date(first.year, 1, 1), date(last.year, 12, 31)


def _round_outward(value: Fraction, direction: Any) -> Fraction:
    """Return a number rounded to two significant digits, in one direction."""
    if value == 0:
        return value
    largest = Decimal(abs(value.numerator)) / Decimal(value.denominator)
    unit = Fraction(10) ** (largest.adjusted() - 1)
    return Fraction(direction(value / unit)) * unit


def _categories(profile: ColumnProfile) -> tuple[Any, ...] | None:
    values = [value for value in profile.common if not is_missing(value)]
    if profile.type is StorageType.BOOLEAN:
        return (False, True)
    # A profile lists the most frequent values only: categories are proposed where those are all.
    complete = 0 < profile.distinct <= len(values)
    return tuple(sorted(values)) if complete and len(values) <= MOST_CATEGORIES else None


def _odd_spelling(profile: ColumnProfile) -> Iterator[str]:
    """Say why a column that looks like numbers or dates is text."""
    if profile.type is not StorageType.TEXT:
        return
    texts = [value.strip() for value in profile.common if isinstance(value, str)]
    for what, pattern in _ODD_SPELLINGS.items():
        if texts and 2 * sum(pattern.fullmatch(text) is not None for text in texts) > len(texts):
            yield f"kind: looks like {what}, which is read as text"
            return


def _domain_reasons(*, bounds: Bounds | None, categories: tuple[Any, ...] | None) -> Iterator[str]:
    if bounds is not None:
        yield FROM_DATA["bounds"]
    if categories is not None:
        yield FROM_DATA["categories"]
