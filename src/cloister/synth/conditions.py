"""What rows must be like, in values or as people type it, turned into cells: for sampling and for counting cells.

A condition on a column is a value, a list of values, None for missing ones, or a pair (low, high) of numbers or
dates, both ends included.

As text, people type COLUMN=VALUE, or COLUMN=LOW..HIGH for numbers, dates and times.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.data.values import StorageType
from cloister.errors import ParameterError, ParameterTypeError
from cloister.synth._domain import DomainAttribute, TableDomain

__all__ = ["allowed_cells", "read_conditions", "whole_cells"]


Cells = NDArray[np.bool_]

_ORDERED = (StorageType.INTEGER, StorageType.REAL, StorageType.DATE, StorageType.TIMESTAMP)

_MOST_NAMED = 8
_EXAMPLES = {
    StorageType.DATE: "write for example (datetime.date(2025, 1, 1), datetime.date(2025, 1, 31)).",
    StorageType.TIMESTAMP: "write for example (datetime.datetime(2025, 1, 1), datetime.datetime(2025, 1, 31)).",
}


def allowed_cells(attribute: DomainAttribute, given: Any) -> tuple[Cells, tuple[Any, Any] | None]:
    """Return which cells a condition allows, and the limits inside of them."""
    if attribute.is_binned:
        return _find_touched(attribute, given)
    if isinstance(given, tuple) and len(given) == 2 and attribute.storage in _ORDERED:
        return _between(attribute, *_pair(attribute, given)), None
    listed = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    cells = np.zeros(attribute.size, dtype=np.bool_)
    for item in listed:
        place = attribute.present if item is None else int(attribute.codes([item])[0])
        if place >= attribute.size or (item is not None and place == attribute.present):
            raise ParameterError(
                f'"{attribute.name}" cannot have a value that a condition asks for.',
                fix=f"ask for declared values: {_some(attribute)}.",
            )
        cells[place] = True
    return cells, None


def whole_cells(attribute: DomainAttribute, given: Any) -> Cells:
    """Return the cells that a condition is about, or refuse one that asks for a part of a bin.

    Numbers and times that are not whole meet at the edges of bins, so that a range may end at one.
    """
    cells, limits = allowed_cells(attribute, given)
    if limits is None:
        return cells
    low, high = limits
    for place in np.flatnonzero(cells):
        first, end = attribute.edges[place], attribute.edges[place + 1]
        if attribute.storage is StorageType.REAL and first == high and low < high:
            cells[place] = False
        elif low > _first(attribute, first) or high < _last(attribute, end):
            raise ParameterError(
                f'The condition on "{attribute.name}" asks for a part of a bin, which was not counted by itself.',
                fix=f"ask for whole bins, such as {attribute.labels[place]}, or fit with other bins.",
            )
    return cells


def _find_touched(attribute: DomainAttribute, given: Any) -> tuple[Cells, tuple[Any, Any] | None]:
    cells = np.zeros(attribute.size, dtype=np.bool_)
    if given is None:
        if attribute.complete:
            raise ParameterError(f'"{attribute.name}" is never missing.', fix="ask for a range of values.")
        cells[-1] = True
        return cells, None
    low, high = _pair(attribute, given if isinstance(given, list | tuple) and len(given) == 2 else (given, given))
    inside = [first <= high and low < end for first, end in zip(attribute.edges, attribute.edges[1:], strict=False)]
    if not any(inside):
        raise _nothing(attribute)
    cells[: attribute.present] = inside
    return cells, (low, high)


def _between(attribute: DomainAttribute, low: Any, high: Any) -> Cells:
    cells = np.zeros(attribute.size, dtype=np.bool_)
    cells[: attribute.present] = [low <= value <= high for value in attribute.values]
    if not cells.any():
        raise _nothing(attribute)
    return cells


def _pair(attribute: DomainAttribute, given: Any) -> tuple[Any, Any]:
    """Return the ends of a range, or refuse what cannot be one."""
    low, high = given
    known = (attribute.edges or attribute.values)[0]
    try:
        # A value of another type fails in the comparisons, and NaN meets neither of them.
        if low <= high and (low <= known or low > known) and (high <= known or high > known):
            return low, high
    except TypeError:
        raise ParameterTypeError(
            f'The condition on "{attribute.name}" is not a pair (low, high) of its values.',
            fix=_EXAMPLES.get(attribute.storage, "write for example (30, 40)."),
        ) from None
    raise _nothing(attribute)


def _some(attribute: DomainAttribute) -> str:
    """Return the first declared values, which are public."""
    shown = ", ".join(attribute.labels[: min(attribute.present, _MOST_NAMED)])
    return shown + (", ..." if attribute.present > _MOST_NAMED else "")


def _nothing(attribute: DomainAttribute) -> ParameterError:
    return ParameterError(
        f'No value of "{attribute.name}" meets the condition.', fix="ask for a pair (low, high) inside its bounds."
    )


def _first(attribute: DomainAttribute, edge: Any) -> Any:
    return math.ceil(edge) if attribute.storage is StorageType.INTEGER else edge


def _last(attribute: DomainAttribute, edge: Any) -> Any:
    """Return the last value before the edge of a bin; real numbers reach up to it."""
    match attribute.storage:
        case StorageType.INTEGER:
            return math.ceil(edge) - 1
        case StorageType.DATE:
            return edge - dt.timedelta(days=1)
        case StorageType.TIMESTAMP:
            return edge - dt.timedelta(seconds=1)
        case _:
            return edge


def read_conditions(given: Iterable[str], domain: TableDomain) -> dict[str, Any]:
    """Return what rows must have: for each column a value, several values, or a pair (low, high)."""
    values: dict[str, list[str]] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals:
            raise ParameterError(f'"{item}" is not a condition.', fix="write COLUMN=VALUE, such as sex=F.")
        domain.positions([name])
        values.setdefault(name, []).append(text)
    return {name: _meant(domain[name], texts) for name, texts in values.items()}


def _meant(attribute: DomainAttribute, texts: list[str]) -> Any:
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


def _value(attribute: DomainAttribute, text: str) -> Any:
    edge = attribute.edges[0]
    try:
        if isinstance(edge, dt.datetime):
            return dt.datetime.fromisoformat(text)
        return dt.date.fromisoformat(text) if isinstance(edge, dt.date) else float(text)
    except ValueError:
        raise ParameterError(
            f'"{text}" is not a value of "{attribute.name}".', fix="write for example age=30..40 or day=2025-01-31."
        ) from None
