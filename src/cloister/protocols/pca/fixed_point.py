"""Rows as whole numbers of steps, no longer than a public norm.

A step is ``2**-fraction_bits``. Each row is shrunk, rounded, and shrunk again by itself if rounding made it too long,
so that its norm in whole steps is at most that of the public bound, exactly, whatever the other rows are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from cloister.core import exact, validation
from cloister.core.whole_rows import Floats, limit_norms
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["FixedPoint", "as_rows"]

_DEFAULT_STEPS = 19
"""A row of the largest norm has at least 2**19 steps unless told otherwise."""

_EXACT = 2**53
_MOST_BITS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPoint:
    """How rows become whole numbers.

    >>> whole = FixedPoint.of(data_norm=5, fraction_bits=1, columns=2)
    >>> whole.largest, whole.steps(np.array([[3.0, 4.0], [30.0, 40.0], [0.2, 0.3]])).tolist()
    (10, [[6.0, 8.0], [6.0, 8.0], [0.0, 1.0]])
    """

    norm: Fraction
    fraction_bits: int
    largest: int

    @classmethod
    def of(cls, *, data_norm: object, fraction_bits: int | None, columns: int) -> Self:
        """Return the fixed point for a public norm.

        Raises:
            ParameterError: if the norm is not positive, or there would be no steps, or too many for exact sums.
        """
        norm = validation.check_positive(data_norm, name="data_norm")
        below = exact.power_of_two_below(norm)
        exponent = below.numerator.bit_length() - below.denominator.bit_length()
        bits = _DEFAULT_STEPS - exponent if fraction_bits is None else fraction_bits
        if isinstance(bits, bool) or not isinstance(bits, int | np.integer):
            raise ParameterTypeError("fraction_bits is not a whole number.", fix="leave fraction_bits out.")
        largest = int(norm * Fraction(2) ** int(bits)) if abs(bits + exponent) < _MOST_BITS else 0
        if largest < 1 or (largest + 1) ** 2 * columns >= _EXACT:
            raise ParameterError(
                "With these fraction_bits a row of the norm data_norm has too few steps, or too many for exact sums.",
                fix="leave fraction_bits out, or take fewer with very many columns.",
            )
        return cls(norm=norm, fraction_bits=int(bits), largest=largest)

    @property
    def squared_unit(self) -> Fraction:
        """Return how many squared steps a squared unit has."""
        return Fraction(4) ** self.fraction_bits

    @property
    def unit(self) -> Fraction:
        """Return how many steps a unit has."""
        return Fraction(2) ** self.fraction_bits

    def steps(self, rows: Floats) -> Floats:
        """Return rows in whole steps, each shrunk by itself to the norm."""
        norm = exact.float_above(self.norm)
        longest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
        unit = rows / np.where(longest > 0, longest, 1.0)
        squared = np.zeros_like(longest)
        # Column by column: the order in which a row is added up must not depend on how many rows there are.
        for place in range(rows.shape[1]):
            squared[:, 0] += unit[:, place] * unit[:, place]
        allowed = norm / np.sqrt(squared.clip(1.0))
        short = unit * np.minimum(longest, allowed)
        return limit_norms(np.rint(np.ldexp(short, self.fraction_bits)), most=self.largest)


def as_rows(given: Any, *, name: str) -> Floats:  # whatever a caller gave
    """Return an owner's rows as numbers, without quoting any.

    Raises:
        ParameterTypeError: if they are not rows of numbers.
        ParameterError: if some are missing or infinite.
    """
    try:
        rows = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(
            f'The rows of "{name}" are not numbers.', fix="give a two-dimensional array of numbers."
        ) from None
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise ParameterTypeError(
            f'The rows of "{name}" are not a table.', fix="give a two-dimensional array: one line for each row."
        )
    if not np.isfinite(rows).all():
        raise ParameterError(
            f'Some numbers of "{name}" are missing or infinite.', fix="fill or drop them before the protocol."
        )
    return rows
