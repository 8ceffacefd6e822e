"""The values of a column: their storage types, their profile, and how single ones are read and written as text.

How a value is written is decided once for schemas and hierarchies. A value and its text match whatever engine it came
from: ``39``, ``39.0`` and ``"39"`` are all written ``39``, a truth value is ``true`` or ``false``, a date is ISO 8601.

A profile is what an engine tells about one column, so that a schema can be proposed. Profiles are private: never print
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import text_of_number


class StorageType(StrEnum):
    """The types that every engine's types are mapped to."""

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """Facts about one column, computed inside the engine. ``common`` holds its most frequent values, not all."""

    name: str
    type: StorageType
    rows: int
    missing: int
    distinct: int
    minimum: Any = field(default=None, repr=False)
    maximum: Any = field(default=None, repr=False)
    common: tuple[Any, ...] = field(default=(), repr=False)


Codes: TypeAlias = NDArray[np.int64]

_MISSING_TYPES = frozenset({"NAType", "NaTType"})


def is_missing(value: object) -> bool:
    """Return whether a value stands for "not known": None, NaN, NaT and the like."""
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, Decimal) and value.is_nan()


def text_of(value: object) -> str:
    """Return the one text that stands for a value.

    >>> text_of(39.0), text_of(True), text_of("01"), text_of(Fraction(1, 4))
    ('39', 'true', '01', '0.25')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.datetime64):
        return text_of(value.item())
    if isinstance(value, date):
        return value.isoformat()
    return _text_of_numeric(value)


def _text_of_numeric(value: object) -> str:
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        # Beyond 15 digits the integer would show digits that the float does not have.
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if isinstance(value, Fraction) or (isinstance(value, Decimal) and value.is_finite()):
        return text_of_number(Fraction(value))
    return str(value)


def is_single(value: object) -> bool:
    """Return whether an argument is one value rather than many."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return isinstance(value, str | bytes) or not isinstance(value, Iterable)


def distinct_values(values: Iterable[Any]) -> tuple[Sequence[Any], Codes]:
    """Return the distinct values and, for each given value, its position among them."""
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.dtype.kind in "iufUbM":
        found, inverse = np.unique(array.ravel(), return_inverse=True)
        return found.tolist() if array.dtype.kind != "M" else list(found), inverse.ravel().astype(np.int64)
    index: dict[tuple[type, Any], int] = {}
    # True equals 1 and 1.0 for Python, and is another value here.
    places = [index.setdefault((type(value), value), len(index)) for value in values]
    return [value for _, value in index], np.array(places, dtype=np.int64)
