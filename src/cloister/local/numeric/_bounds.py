"""Public bounds, and the steps between them on which devices decide.

A number is clamped to the bounds and rounded to one of the steps 0 .. N: step ``floor((x - low) / (high - low) N +
1/2)``, so halves go up. The rule is exact: bounds are rational numbers, a float stands for the very number that its
bits say, and where floating point could round to the wrong side the step is found in rational arithmetic. With the
2**30 steps of most protocols, rounding moves a number by less than a billionth of the bounds' width.

Bounds are public and never read from the data: the extremes of a table are somebody's values.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core import exact
from cloister.core.validation import check_bounds, check_count
from cloister.errors import MissingBoundsError, OutsideDomainError, ParameterError
from cloister.local.domain import Codes

__all__ = ["MOST_STEPS", "STEPS", "Floats", "NumericGrid", "bounds_hash", "has_masked", "missing_bounds", "numbers_of"]

Floats = NDArray[np.float64]

STEPS = 2**30
"""How many steps most protocols put between the bounds."""

MOST_STEPS = 2**31
"""So many that products of steps and halves of 64-bit thresholds still fit into 64 bits."""

_LARGEST, _NARROWEST = Fraction(10) ** 140, Fraction(1, 10**140)
"""So that variances, in squared units, are floats as well."""
_EXACT_INTEGER = 2**53
_HALF = Fraction(1, 2)
_MOST_EXPONENT = 400


@dataclass(frozen=True)
class NumericGrid:
    """Steps 0 .. steps between public bounds.

    >>> NumericGrid.of((0, 10), 4).places([-3, 1.2, 1.25, 99])
    array([0, 0, 1, 4])
    """

    low: Fraction
    high: Fraction
    steps: int

    @classmethod
    def of(cls, bounds: object, steps: object) -> NumericGrid:
        """Return the grid of bounds.

        Raises:
            MissingBoundsError: if no bounds are declared.
            ParameterError: if they are reversed, empty or beyond floating point, or the steps are too many.
        """
        if bounds is None:
            raise missing_bounds()
        low, high = check_bounds(bounds)
        if max(abs(low), abs(high)) > _LARGEST or high - low < _NARROWEST:
            raise ParameterError(
                "The bounds are too large or too close for floating point.", fix="measure in another unit."
            )
        count = check_count(steps, name="steps", at_least=1)
        if count > MOST_STEPS:
            raise ParameterError(f"steps must be at most 2**31, not {count}.", fix="leave steps out, or use 2**30.")
        return cls(low, high, count)

    @property
    def width(self) -> Fraction:
        """Return the distance between the bounds."""
        return self.high - self.low

    @property
    def unit(self) -> float:
        """Return the length of a step."""
        return float(self.width / self.steps)

    @property
    def ends(self) -> tuple[float, float]:
        """Return the bounds as floats."""
        return float(self.low), float(self.high)

    @property
    def texts(self) -> list[str]:
        """Return the bounds as exact texts."""
        return [exact.text(self.low), exact.text(self.high)]

    def values(self, places: ArrayLike) -> Floats:
        """Return the numbers at places, which need not be whole and may lie outside of the bounds."""
        return float(self.low) + self.unit * np.asarray(places, dtype=np.float64)

    def places(self, values: object) -> Codes:
        """Return the step of each number.

        Raises:
            OutsideDomainError: if one is missing, infinite or not a number; it is not told which.
        """
        found = numbers_of(values)
        if found.dtype == object:
            return np.array([self.place(value) for value in found.ravel()], dtype=np.int64).reshape(found.shape)
        # The bounds are rounded outwards here, so that clamping in floats never moves a number that lies within them.
        near = (np.clip(found, exact.float_below(self.low), exact.float_above(self.high)) - float(self.low)) * float(
            self.steps / self.width
        ) + 0.5
        places = np.asarray(np.clip(np.floor(near), 0, self.steps)).astype(np.int64)
        # Near a half, floats may have rounded to the wrong side: those few numbers are decided in rationals.
        doubtful = np.abs(near - np.rint(near)) <= self._doubt
        if doubtful.any():
            places[doubtful] = self._exactly(found[doubtful])
        return places

    def place(self, value: Fraction) -> int:
        """Return the step of one exact number."""
        return min(max(math.floor((value - self.low) / self.width * self.steps + _HALF), 0), self.steps)

    @property
    def _doubt(self) -> float:
        """Return a bound of the error of a computed place: of less than 8 roundings of numbers below these."""
        return float(self.steps * (abs(self.low) / self.width + 1)) * 2.0**-50

    def _exactly(self, values: Floats) -> Codes:
        # Doubtful numbers are mostly round ones that many people share, so that each is decided once.
        distinct, places = np.unique(values, return_inverse=True)
        return np.array([self.place(Fraction(value)) for value in distinct.tolist()], dtype=np.int64)[places]


def missing_bounds() -> MissingBoundsError:
    """Return the error for bounds that were not declared."""
    return MissingBoundsError(
        "The bounds of the numbers are not declared, and reading them from the data would not be private.",
        fix="write for example bounds=(0, 110): the range that anybody would expect, not that of these people.",
    )


def numbers_of(values: Any) -> NDArray[Any]:  # numbers, in a list, an array, a Series, an Arrow array
    """Return numbers as floats without rounding, or else as an array of rationals.

    Raises:
        OutsideDomainError: if one is missing, infinite or not a number.
    """
    if bool in _types(values) or has_masked(values):
        raise _not_numbers()
    try:
        found = np.asarray(values)
    except (ValueError, TypeError):
        raise _not_numbers() from None
    # Beyond 2**53 a float would merge different integers; those are kept as rationals.
    if found.dtype.kind in "iu" and (not found.size or -_EXACT_INTEGER <= found.min() <= found.max() <= _EXACT_INTEGER):
        return found.astype(np.float64)
    if found.dtype.kind == "f" and found.dtype.itemsize <= np.dtype(np.float64).itemsize:
        if not np.isfinite(found).all():
            raise _not_numbers()
        return found.astype(np.float64)
    if found.dtype.kind not in "iuO":
        raise _not_numbers()
    rationals = np.empty(found.shape, dtype=object)
    rationals.ravel()[:] = [_rational(value) for value in found.ravel().tolist()]
    return rationals


def has_masked(values: Any) -> bool:  # numbers, in whatever holds them
    """Return whether a number is masked, in an array or in a list of them: it is missing then."""
    if isinstance(values, list | tuple):
        kinds = set(map(type, values))
        may_hold = any(issubclass(kind, list | tuple | np.ma.MaskedArray) for kind in kinds)
        return may_hold and any(map(has_masked, values))
    return bool(np.ma.is_masked(values))


def bounds_hash(texts: Iterable[str]) -> str:
    """Return the SHA-256 of the canonical text of bounds, which clients compare."""
    text = json.dumps([f"n:{text}" for text in texts], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _types(values: Any) -> set[type]:  # numbers, in whatever holds them
    """Return the types in a list, or in a list of lists: NumPy would take a truth value among numbers for a number."""
    if not isinstance(values, list | tuple):
        return {type(values)}
    found = set(map(type, values))
    return set(map(type, chain.from_iterable(values))) if found and found <= {list, tuple} else found


def _rational(value: object) -> Fraction:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Rational | float | Decimal):
        raise _not_numbers()
    if isinstance(value, Decimal) and value.is_finite():
        return _of_decimal(value)
    try:
        return Fraction(value)
    except (ValueError, OverflowError):
        raise _not_numbers() from None


def _of_decimal(value: Decimal) -> Fraction:
    """Return a decimal number; one beyond all bounds as another beyond them, without its many digits."""
    # Written out, a number such as 1E+999999999 fills the memory; beyond the bounds it would be clamped anyway.
    if value and value.adjusted() > _MOST_EXPONENT:
        return (-1 if value.is_signed() else 1) * Fraction(10) ** _MOST_EXPONENT
    if not value or value.adjusted() < -_MOST_EXPONENT:
        return Fraction(0)
    return Fraction(value)


def _not_numbers() -> OutsideDomainError:
    return OutsideDomainError(
        "A value is missing, infinite or not a number.",
        fix='leave people without a number out on purpose, or ask "no answer" as a question of its own.',
    )
