"""The rows of a linear model as whole numbers, and what is public about their length.

A number between bounds becomes a whole number of steps, from -2**12 to 2**12 around the middle of its bounds; a
category is one column per value, 2**12 where it is the value and 0 elsewhere. Where a bound of the norm of rows is
declared, rows are divided by it instead, so that the longest has 2**12 steps, and longer ones are shrunk. The last
column is constant; its weight is the intercept. Each row is encoded by itself, and no row is longer than
`LinearDesign.squared_norm` and `LinearDesign.norm` say, whatever it holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloister.core.validation import check_positive
from cloister.core.whole_rows import Floats, exact_product, limit_norms, whole_steps
from cloister.learn._encoding import Encoding
from cloister.learn._features import Numeric

__all__ = ["BITS", "UNIT", "LinearDesign"]

BITS = 12
UNIT: int = 2**BITS
"""How many steps a feature of size one has."""


@dataclass(frozen=True)
class LinearDesign:
    """How features become rows of whole numbers.

    Args:
        encoding: the features.
        constant: the steps of the constant column, at most ``UNIT``; 0 for no such column.
        data_norm: a public bound of the Euclidean norm of rows.
        centered: whether numbers are measured from the middle of their bounds, as they may be if there is an intercept.
    """

    encoding: Encoding
    constant: int = UNIT
    data_norm: Fraction | None = None
    centered: bool = True

    @classmethod
    def of(cls, encoding: Encoding, *, constant: int, data_norm: object = None, centered: bool = True) -> LinearDesign:
        """Return the design for a norm that a user declared, or did not.

        With a norm above 1 the constant column is at most 1 in the units of the features, so that it does not count
        for more than they do.
        """
        if data_norm is None:
            return cls(encoding, constant, None, centered)
        norm = check_positive(data_norm, name="data_norm")
        # At least one step, or a large norm would take the constant column away.
        return cls(encoding, min(constant, max(1, round(UNIT / norm))), norm, centered)

    @property
    def width(self) -> int:
        """Return the number of columns, the constant one among them."""
        return len(self.encoding.names) + (self.constant > 0)

    @cached_property
    def squared_norm(self) -> int:
        """Return a bound of the squared Euclidean norm of a row of steps; each feature has at most ``UNIT``."""
        free = UNIT**2 if self.data_norm is not None else len(self.encoding.features) * UNIT**2
        return free + self.constant**2

    @cached_property
    def norm(self) -> int:
        """Return a bound of the sum of absolute values of a row of steps; each feature has one that is not zero."""
        features = len(self.encoding.features)
        free = features * UNIT if self.data_norm is None else math.isqrt(features * UNIT**2) + 1
        return free + self.constant

    @cached_property
    def _scale(self) -> tuple[Floats, Floats]:
        """Return the value of each column that is zero steps, and the one that is ``UNIT`` steps, less that."""
        lows, highs = self.encoding.bounds
        if self.data_norm is not None:
            return np.zeros(len(lows)), np.full(len(lows), float(self.data_norm))
        if not self.centered:
            return np.zeros(len(lows)), np.maximum(np.abs(lows), np.abs(highs))
        numbers = self._numbers
        return np.where(numbers, (lows + highs) / 2, lows), np.where(numbers, (highs - lows) / 2, highs - lows)

    @cached_property
    def _numbers(self) -> NDArray[np.bool_]:
        flags: list[bool] = []
        for feature in self.encoding.features:
            flags += [True] if isinstance(feature, Numeric) else [False] * len(feature.labels)
        return np.array(flags, dtype=np.bool_)

    def rows(self, features: Floats) -> Floats:
        """Return rows as whole steps, the constant last."""
        zeros, units = self._scale
        lows, highs = self.encoding.bounds
        inside = np.clip(features, lows, highs)
        steps = whole_steps(inside, lows=zeros - units, highs=zeros + units, bits=BITS)
        if self.data_norm is not None:
            steps = limit_norms(steps, most=UNIT)
        if not self.constant:
            return steps
        return np.concatenate([steps, np.full((len(steps), 1), float(self.constant))], axis=1)

    def in_units(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts for features in their own units.

        Args:
            weights: one column per class, of weights for rows that are divided by ``UNIT``.
        """
        zeros, units = self._scale
        features = len(self.encoding.names)
        coefficients = (weights[:features] / units[:, None]).T
        # Features were measured from the middle of their bounds, which moves into the intercept.
        middle = coefficients @ zeros
        return coefficients, weights[features:].sum(axis=0) * (self.constant / UNIT) - middle

    # Second moments ---------------------------------------------------------------------------------------------------

    @cached_property
    def free_pairs(self) -> NDArray[np.bool_]:
        """Return which pairs of columns, on and above the diagonal, can both be other than zero in a row."""
        groups = np.repeat(
            np.arange(len(self.encoding.features)),
            [1 if isinstance(feature, Numeric) else len(feature.labels) for feature in self.encoding.features],
        )
        groups = np.append(groups, [-1] * (self.width - len(groups))).astype(np.int64)
        apart = groups[:, None] != groups
        return np.asarray(np.triu(apart | np.eye(self.width, dtype=np.bool_)))

    @property
    def squared_moment(self) -> int:
        """Return a bound of the sum of squared products of a row's columns, on and above the diagonal.

        The sum of all of them is the fourth power of the norm, and entries off the diagonal come twice in it. Those on
        the diagonal are fourth powers of entries of at most ``UNIT``: together at most UNIT**2 times the squared norm.
        """
        return (self.squared_norm**2 + UNIT**2 * self.squared_norm) // 2 + 1

    @property
    def moment(self) -> int:
        """Return a bound of the sum of absolute products of a row's columns, on and above the diagonal."""
        return (self.norm**2 + self.squared_norm) // 2 + 1

    def moments(self, steps: Floats, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums of products of columns that are not zero by themselves: exact whole numbers."""
        return np.asarray(exact_product(steps, steps, weights, most=UNIT**2)[self.free_pairs])

    def symmetric(self, entries: NDArray[np.int64]) -> Floats:
        """Return the matrix of second moments of rows divided by ``UNIT``, from what `moments` gave."""
        matrix = np.zeros((self.width, self.width))
        matrix[self.free_pairs] = entries.astype(np.float64) / UNIT**2
        return matrix + np.triu(matrix, 1).T
