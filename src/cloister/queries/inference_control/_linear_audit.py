"""The audit of sums: would the answered sums, all together, give the value of a single row?

An answered set of rows is a vector of zeros and ones, the sum over it a product with the column of values. What
follows by linear algebra is the span of the vectors, and a row is given away when its unit vector lies in it (Chin
and Ozsoyoglu, "Auditing and inference control in statistical databases", 1982). With ``pairs``, a combination of two
rows is refused as well, since whoever knows one of the two values learns the other.

Rows that are in the same answered sets are one class, and the elimination works on classes, modulo the prime 2**61 -
1. It is exact all the same. Vectors that are independent modulo the prime are independent, and for those a
combination over the rationals that gives a unit vector exists modulo the prime, too. A vector that depends on others
modulo the prime is accepted only if the same dependence holds over the rationals, which is checked in whole numbers.

One basis serves all columns: a sum of any function of confidential values over a set that is known has the vector of
that set, and no combination of such sums depends on one row alone while no unit vector is in the span of the sets.

Nothing here looks at a value: a refusal can be foreseen by whoever knows which rows a question is about.

Arithmetic modulo the prime is on whole arrays of 64-bit numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isqrt
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "PRIME",
    "Audit",
    "Elements",
    "Mask",
    "as_fraction",
    "inverse",
    "multiply",
    "scale",
    "subtract",
    "sum_columns",
]


PRIME = 2**61 - 1
"""A Mersenne prime, for which the remainder of a product needs no division."""

Elements: TypeAlias = NDArray[np.uint64]
"""Numbers from 0 to the prime, without the prime."""

_P = np.uint64(PRIME)
_HALF, _SHIFT, _MIDDLE = np.uint64(31), np.uint64(61), np.uint64(30)
_LOW, _LOW_MIDDLE = np.uint64(2**31 - 1), np.uint64(2**30 - 1)
_LARGEST_PART = isqrt(PRIME // 2)


def _reduce(numbers: Elements) -> Elements:
    # 2**61 is 1 modulo the prime, so that the upper bits are simply added.
    folded = (numbers & _P) + (numbers >> _SHIFT)
    return np.where(folded >= _P, folded - _P, folded)


def multiply(left: Elements, right: Elements) -> Elements:
    """Return the products, from four products of halves that fit 64 bits."""
    high_left, low_left, high_right, low_right = left >> _HALF, left & _LOW, right >> _HALF, right & _LOW
    middle = high_left * low_right + low_left * high_right
    # The middle terms are worth 2**31 each: what they have above 30 bits passes 2**61 and comes down as ones.
    shifted = (middle >> _MIDDLE) + ((middle & _LOW_MIDDLE) << _HALF)
    # The product of the high halves is worth 2**62, which is 2; all terms together stay below 2**64.
    return _reduce(((high_left * high_right) << np.uint64(1)) + shifted + low_left * low_right)


def scale(numbers: Elements, factor: int) -> Elements:
    """Return the products with one number."""
    return multiply(numbers, np.full(1, factor, dtype=np.uint64))


def subtract(left: Elements, right: Elements) -> Elements:
    """Return the differences."""
    return np.where(left >= right, left - right, left + (_P - right))


def sum_columns(rows: Elements) -> Elements:
    """Return the sums of the columns, of less than 2**30 rows."""
    # The halves are added apart, because sums of whole 61-bit numbers would wrap around after eight rows.
    low, high = (rows & _LOW).sum(axis=0, dtype=np.uint64), (rows >> _HALF).sum(axis=0, dtype=np.uint64)
    return _reduce(multiply(_reduce(high), np.full_like(high, 2**31)) + _reduce(low))


def inverse(number: int) -> int:
    """Return the number whose product with another is 1."""
    return pow(number, -1, PRIME)


def as_fraction(element: int) -> Fraction | None:
    """Return the one fraction of small whole numbers that an element stands for, None if there is none."""
    # Euclid's algorithm stopped half way gives the only fraction whose parts are both that small, if there is
    # one.
    before, after = (PRIME, 0), (element, 1)
    while after[0] > _LARGEST_PART:
        quotient = before[0] // after[0]
        before, after = after, (before[0] - quotient * after[0], before[1] - quotient * after[1])
    if after[1] == 0 or abs(after[1]) > _LARGEST_PART:
        return None
    return Fraction(after[0], after[1])


Mask = NDArray[np.bool_]
"""For each row, whether it is in a set."""

LARGEST = 2 * 10**7
"""The most numbers in the basis; more are refused, rather than checked for ever."""

_SAFE = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit:
    """The span of answered sets in reduced row echelon form.

    Attributes:
        labels: the class of each row.
        sizes: how many rows each class has.
        sets: for each set of the basis, the classes in it.
        echelon: the reduced rows, over the classes.
        origin: how each reduced row is combined from the sets.
        pivots: the leading class of each reduced row.
        pairs: whether a combination of two rows is refused as well.
        is_sound: whether every recorded set could be checked and gives nobody away.
    """

    labels: NDArray[np.int64] = field(repr=False)
    sizes: NDArray[np.int64] = field(repr=False)
    sets: Mask = field(repr=False)
    echelon: Elements = field(repr=False)
    origin: Elements = field(repr=False)
    pivots: tuple[int, ...] = ()
    pairs: bool = True
    is_sound: bool = True

    @classmethod
    def of(cls, rows: int, *, pairs: bool = True) -> Self:
        """Return an audit of a table with so many rows, about which nothing was answered."""
        return cls(
            labels=np.zeros(rows, dtype=np.int64),
            sizes=np.array([rows], dtype=np.int64),
            sets=np.zeros((0, 1), dtype=np.bool_),
            echelon=np.zeros((0, 1), dtype=np.uint64),
            origin=np.zeros((0, 0), dtype=np.uint64),
            pairs=pairs,
        )

    @property
    def rank(self) -> int:
        """Return how many answered sets are independent."""
        return len(self.pivots)

    def permit_set(self, members: Mask) -> Self | None:
        """Return the audit with one more set, or None if it must not be answered."""
        after, is_new = self._extend(members)
        return None if after is None or (is_new and not after.is_sound) else after

    def record_set(self, members: Mask) -> Self:
        """Return the audit with a set that was answered, whatever follows from it."""
        after, _ = self._extend(members)
        return replace(self, is_sound=False) if after is None else after

    def gives_away(self, rows: NDArray[np.int64]) -> bool:
        """Return whether the value of a row, or with ``pairs`` a combination of two, follows from the sums.

        Args:
            rows: the reduced rows that are new or changed.
        """
        # A combination touches all rows of a class alike, so it isolates a row only where its classes hold
        # hardly any rows.
        smallest = (self.echelon[rows] != 0) @ self.sizes
        if (smallest <= (2 if self.pairs else 1)).any():
            return True
        return self.pairs and self._has_parallel_rows()

    def _has_parallel_rows(self) -> bool:
        """Return whether two reduced rows differ, up to a factor, in their leading rows of the table alone."""
        seen = set()
        for place, pivot in enumerate(self.pivots):
            # A leading class of several rows would leave all of them in the difference.
            if self.sizes[pivot] != 1:
                continue
            rest = self.echelon[place].copy()
            rest[pivot] = 0
            # There is a rest: a reduced row with a single row of the table was found by the check of sizes.
            first = rest[np.flatnonzero(rest)[0]]
            text = scale(rest, inverse(int(first))).tobytes()
            if text in seen:
                return True
            seen.add(text)
        return False

    def _extend(self, members: Mask) -> tuple[Self | None, bool]:
        """Return the audit with one more set, and whether it is independent; None if that could not be found out."""
        finer, vector = self.refine(members)
        # The form is reduced, so the entry at a pivot is the coefficient of its row: 0 or 1 for a set.
        chosen = np.flatnonzero(vector[list(finer.pivots)]) if finer.pivots else np.zeros(0, dtype=np.int64)
        rest = subtract(vector.astype(np.uint64), sum_columns(finer.echelon[chosen]))
        if not rest.any():
            # What follows from earlier sums tells nothing new, and the classes need not be split for it.
            return (self if finer.depends(vector, chosen) else None), False
        if (finer.rank + 1) * len(finer.sizes) > LARGEST:
            return None, True
        return finer.with_row(vector, rest, chosen), True

    def refine(self, members: Mask) -> tuple[Self, Mask]:
        """Return the audit with classes split by a set, and the classes in the set.

        The part of a class that is in the set becomes a new class, after all others; the rest keeps its place.
        """
        inside = np.bincount(self.labels[members], minlength=len(self.sizes))
        split = np.flatnonzero((inside > 0) & (inside < self.sizes))
        if not len(split):
            return self, inside > 0
        moved = np.full(len(self.sizes), -1, dtype=np.int64)
        moved[split] = len(self.sizes) + np.arange(len(split))
        new = np.where(members, moved[self.labels], -1)
        sizes = self.sizes.copy()
        sizes[split] -= inside[split]
        finer = replace(
            self,
            labels=np.where(new < 0, self.labels, new),
            sizes=np.concatenate([sizes, inside[split]]),
            # Both parts of a class were in the same earlier sets, so the new column starts as a copy.
            sets=np.hstack([self.sets, self.sets[:, split]]),
            echelon=np.hstack([self.echelon, self.echelon[:, split]]),
        )
        whole = inside == self.sizes
        return finer, np.concatenate([whole, np.ones(len(split), dtype=np.bool_)])

    def with_row(self, vector: Mask, rest: Elements, chosen: NDArray[np.int64]) -> Self:
        """Return the audit with a set of classes, of which the chosen rows leave a rest."""
        pivot = int(np.flatnonzero(rest)[0])
        factor = inverse(int(rest[pivot]))
        came = np.zeros(self.rank + 1, dtype=np.uint64)
        came[:-1] = subtract(came[:-1], sum_columns(self.origin[chosen]))
        came[-1] = 1
        row, came = scale(rest, factor), scale(came, factor)
        # Clearing the new pivot from the earlier rows keeps the form reduced, which the next set relies on.
        touched = np.flatnonzero(self.echelon[:, pivot])
        factors = self.echelon[touched, pivot]
        after = replace(
            self,
            sets=np.vstack([self.sets, vector]),
            echelon=_clear_rows(np.vstack([self.echelon, row]), touched, factors),
            origin=_clear_rows(np.vstack([np.pad(self.origin, ((0, 0), (0, 1))), came]), touched, factors),
            pivots=(*self.pivots, pivot),
        )
        # Rows that did not change were judged when they last did.
        return replace(after, is_sound=self.is_sound and not after.gives_away(np.append(touched, self.rank)))

    def depends(self, vector: Mask, chosen: NDArray[np.int64]) -> bool:
        """Return whether a set that is a combination of others modulo the prime is one over the rationals."""
        elements = sum_columns(self.origin[chosen]).tolist()
        fractions = [as_fraction(element) for element in elements]
        known = [fraction for fraction in fractions if fraction is not None]
        if len(known) < len(fractions):
            return False
        # Over a common denominator everything is a whole number, so that the prime plays no part in this check.
        common = math.lcm(*(fraction.denominator for fraction in known), 1)
        return _is_combination(vector, self.sets, [int(fraction * Fraction(common)) for fraction in known], common)


def _clear_rows(rows: Elements, touched: NDArray[np.int64], factors: Elements) -> Elements:
    """Change some rows in place, less multiples of the last one."""
    rows[touched] = subtract(rows[touched], multiply(factors[:, None], rows[-1]))
    return rows


def _is_combination(vector: Mask, sets: Mask, weights: list[int], common: int) -> bool:
    # The sum of the absolute weights bounds every entry of the product.
    kind: Any = np.int64 if sum(map(abs, weights)) + common < _SAFE else object
    combined = np.array(weights, dtype=kind) @ sets.astype(kind)
    return bool((combined == vector.astype(kind) * common).all())
