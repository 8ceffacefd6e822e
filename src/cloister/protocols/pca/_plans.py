"""What the parties of a distributed PCA agree on beforehand: public numbers only, and how rows become whole numbers.

Rows are whole numbers of steps, no longer than a public norm. A step is ``2**-fraction_bits``. Each row is shrunk,
rounded, and shrunk again by itself if rounding made it too long, so that its norm in whole steps is at most that of the
public bound, exactly, whatever the other rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.core import exact, validation
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product, limit_norms
from cloister.crypto.paillier import Packing, PaillierPublicKey
from cloister.errors import ParameterError, ParameterTypeError
from cloister.mechanisms.gaussian import SharedGaussian

__all__ = [
    "FixedPoint",
    "NoiseSharing",
    "PcaPlan",
    "Released",
    "Shares",
    "as_rows",
    "symmetric",
    "upper_triangle",
    "with_noise",
]


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
        # Far outside of this range the power itself would be huge.
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
        # Divided by its largest entry a row cannot overflow when it is squared.
        unit = rows / np.where(longest > 0, longest, 1.0)
        squared = np.zeros_like(longest)
        # Column by column: the order in which a row is added up must not depend on how many rows there are.
        for place in range(rows.shape[1]):
            squared[:, 0] += unit[:, place] * unit[:, place]
        # The largest entry of a row is 1, so that only rows of zeros are below.
        allowed = norm / np.sqrt(squared.clip(1.0))
        short = unit * np.minimum(longest, allowed)
        # Rounding to whole steps may make a row too long again.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSharing:
    """How many owners make the noise, how many of them may tell theirs, and what it costs; no budget is no noise."""

    budget: Budget | None
    owners: int
    colluding: int


@dataclass(frozen=True, slots=True)
class Shares:
    """Whole numbers of one owner, or of all: those that may be packed, and those that stay alone. Protected."""

    packed: list[int]
    alone: list[int]

    def __repr__(self) -> str:
        return f"Shares(packed={len(self.packed)}, alone={len(self.alone)})"


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """What the data user gets in the end: noisy scatter, number of rows and mean, in the units of the rows."""

    scatter: Floats
    count: float
    mean: Floats | None
    deviation: float
    """The standard deviation of the noise on an entry of the scatter."""


class PcaPlan(Protocol):
    """One way to add up what the owners have."""

    @property
    def columns(self) -> int:
        """Return how many columns rows have."""
        ...

    @property
    def noise(self) -> SharedGaussian | None:
        """Return the noise, of which each owner adds a share, if there is any."""
        ...

    @property
    def event(self) -> Event | None:
        """Return what the run is for the accountants, if it is private."""
        ...

    @property
    def packed(self) -> int:
        """Return how many numbers are packed."""
        ...

    @property
    def alone(self) -> int:
        """Return how many numbers have a ciphertext of their own."""
        ...

    @property
    def largest(self) -> int:
        """Return how large a packed number can become on the way."""
        ...

    @property
    def learned_by_user(self) -> str:
        """Return what the data user learns, in words."""
        ...

    def shares(self, rows: Floats, source: RandomSource) -> Shares:
        """Return what an owner contributes, noise included."""
        ...

    def forward(
        self,
        key: PaillierPublicKey,
        packing: Packing,
        packed: Sequence[int],
        alone: Sequence[int],
        source: RandomSource,
    ) -> tuple[list[int], list[int]]:
        """Return what the proxy makes of the encrypted sums for the data user."""
        ...

    def read(self, total: Shares) -> Released:
        """Return what the data user makes of the decrypted numbers."""
        ...


def second_moments(steps: Floats, whole: FixedPoint) -> NDArray[Any]:
    """Return the exact sum of xx' over rows of whole steps."""
    weights = np.ones(len(steps), dtype=np.int64)
    return exact_product(steps, steps, weights, most=whole.largest**2).astype(object)


def column_sums(steps: Floats, whole: FixedPoint) -> NDArray[Any]:
    """Return the exact sums of columns of whole steps."""
    ones = np.ones((len(steps), 1))
    return exact_product(steps, ones, np.ones(len(steps), dtype=np.int64), most=whole.largest)[:, 0].astype(object)


def upper_triangle(matrix: NDArray[Any]) -> list[int]:
    """Return the entries on and above the diagonal, line by line, as Python's integers."""
    return [int(entry) for entry in matrix[np.triu_indices(len(matrix))]]


def symmetric(entries: Sequence[int], width: int) -> NDArray[Any]:
    """Return the symmetric matrix of an upper triangle."""
    matrix = np.zeros((width, width), dtype=object)
    rows, columns = np.triu_indices(width)
    matrix[rows, columns] = matrix[columns, rows] = np.array(entries, dtype=object)
    return matrix


def with_noise(entries: Sequence[int], noise: SharedGaussian | None, source: RandomSource) -> list[int]:
    """Return numbers with one owner's share of the noise."""
    if noise is None:
        return list(entries)
    return [entry + int(drawn) for entry, drawn in zip(entries, noise.draw(source, len(entries)), strict=True)]


def in_units(matrix: NDArray[Any], divisor: Fraction) -> Floats:
    """Return whole numbers divided, each rounded once."""
    return np.array([float(int(entry) / divisor) for entry in matrix.flat]).reshape(matrix.shape)
