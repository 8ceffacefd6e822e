"""Conditions on rows as people type them: COLUMN=VALUE, or COLUMN=LOW..HIGH for numbers, dates and times."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from cloister.errors import ParameterError
from cloister.synth.domain import Attribute, Domain

__all__ = ["read_conditions"]


def read_conditions(given: Iterable[str], domain: Domain) -> dict[str, Any]:
    """Return what rows must have: for each column a value, several values, or a pair (low, high)."""
    values: dict[str, list[str]] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals:
            raise ParameterError(f'"{item}" is not a condition.', fix="write COLUMN=VALUE, such as sex=F.")
        domain.positions([name])
        values.setdefault(name, []).append(text)
    return {name: _meant(domain[name], texts) for name, texts in values.items()}


def _meant(attribute: Attribute, texts: list[str]) -> Any:
    """Return texts as values of a column: an empty one is a missing value, LOW..HIGH a range."""
    if not attribute.is_binned:
        known: dict[str, Any] = {str(value): value for value in attribute.values} | {"": None}
        known |= {"true": True, "false": False} if attribute.values == (False, True) else {}
        unknown = next((text for text in texts if text not in known), None)
        if unknown is not None:
            raise ParameterError(
                f'"{attribute.name}" has no declared value "{unknown}".', fix="use a value of the schema's categories."
            )
        return [known[text] for text in texts]
    if len(texts) > 1:
        raise ParameterError(
            f'"{attribute.name}" has two conditions.', fix=f"give one range, such as {attribute.name}=30..40."
        )
    if texts[0] == "":
        return None
    low, dots, high = texts[0].partition("..")
    return _value(attribute, low), _value(attribute, high if dots else low)


def _value(attribute: Attribute, text: str) -> Any:
    edge = attribute.edges[0]
    try:
        if isinstance(edge, dt.datetime):
            return dt.datetime.fromisoformat(text)
        return dt.date.fromisoformat(text) if isinstance(edge, dt.date) else float(text)
    except ValueError:
        raise ParameterError(
            f'"{text}" is not a value of "{attribute.name}".', fix="write for example age=30..40 or day=2025-01-31."
        ) from None
