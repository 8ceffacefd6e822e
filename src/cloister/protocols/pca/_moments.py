"""Noisy number, sums and products: what is released when one row may come or go.

A constant c stands before each row, and the sum of zz' over all rows z = (c, x) is released with Gaussian noise on its
upper triangle: the number of rows, the sums of columns and all products in one release. The scatter around the noisy
mean is computed from it afterwards, which costs nothing.

Privacy: claim (epsilon, delta)-DP for one row added or removed at one owner. Rows are whole vectors of norm at most B,
so that a row moves the upper triangle by ``c**4 + c**2 |x|**2 + (|x|**4 + |x|_4**4) / 2 <= c**4 + c**2 B**2 + B**4``
in squared L2. The noise is that of `cloister.mechanisms.gaussian`. The noise on the sums is what hides them from
the data user, who is shown no exact mean and no exact number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.crypto.paillier import Packing, PaillierPublicKey
from cloister.errors import InternalError
from cloister.mechanisms.gaussian import SharedGaussian
from cloister.protocols.pca._plans import (
    FixedPoint,
    NoiseSharing,
    Released,
    Shares,
    column_sums,
    in_units,
    second_moments,
    symmetric,
    upper_triangle,
    with_noise,
)

__all__ = ["MOST_ROWS", "MomentsPlan", "plan_moments"]

MOST_ROWS = 2**30
"""How many rows an owner can have: public, and more than fit into memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsPlan:
    """Adds up the products of all columns, a constant one included."""

    columns: int
    owners: int
    whole: FixedPoint
    constant: int
    noise: SharedGaussian | None

    @property
    def event(self) -> Event | None:
        """Return what the run is for the accountants, if it is private."""
        return None if self.noise is None else self.noise.event

    @property
    def packed(self) -> int:
        """Return how many numbers are packed: all of them."""
        return (self.columns + 1) * (self.columns + 2) // 2

    @property
    def alone(self) -> int:
        return 0

    @property
    def largest(self) -> int:
        """Return how large a sum can become."""
        entry = max(self.constant, self.whole.largest) ** 2
        return self.owners * MOST_ROWS * entry + (0 if self.noise is None else self.noise.largest)

    @property
    def learned_by_user(self) -> str:
        """Return what the data user learns."""
        return "the number of rows, the sums of columns and the sums of products of columns" + (
            ", exactly" if self.noise is None else ", with noise"
        )

    def shares(self, rows: Floats, source: RandomSource) -> Shares:
        """Return an owner's upper triangle with its share of the noise."""
        steps = self.whole.steps(rows)
        exactly: NDArray[Any] = np.zeros((self.columns + 1, self.columns + 1), dtype=object)
        exactly[0, 0] = self.constant**2 * len(steps)
        exactly[0, 1:] = self.constant * column_sums(steps, self.whole)
        exactly[1:, 1:] = second_moments(steps, self.whole)
        return Shares(with_noise(upper_triangle(exactly), self.noise, source), [])

    def forward(
        self,
        key: PaillierPublicKey,
        packing: Packing,
        packed: Sequence[int],
        alone: Sequence[int],
        source: RandomSource,  # noqa: ARG002  # other plans draw
    ) -> tuple[list[int], list[int]]:
        """Return the encrypted sums with new randomness."""
        if len(packed) != packing.numbers(self.packed) or alone:
            raise InternalError("the proxy has other ciphertexts than the plan.")
        return [key.renew(ciphertext) for ciphertext in packed], []

    def read(self, total: Shares) -> Released:
        """Return the scatter around the noisy mean: exact arithmetic on noisy numbers, rounded once."""
        products = symmetric(total.packed, self.columns + 1)
        # Noise may leave no row or fewer; one row keeps the mean finite.
        count, sums = max(int(products[0, 0]), self.constant**2), products[0, 1:]
        scatter = count * products[1:, 1:] - np.outer(sums, sums)
        mean = in_units(sums * self.constant, count * self.whole.unit)
        return Released(
            scatter=in_units(scatter, count * self.whole.squared_unit),
            count=count / self.constant**2,
            mean=mean,
            deviation=0.0 if self.noise is None else self.noise.deviation / float(self.whole.squared_unit),
        )


def plan_moments(*, whole: FixedPoint, columns: int, sharing: NoiseSharing) -> MomentsPlan:
    """Return the plan that the budget buys."""
    # Every constant is private: a larger one makes sums more precise, and products less.
    constant = max(1, math.isqrt(whole.largest**2 // math.isqrt(columns)))
    noise = None
    if sharing.budget is not None:
        noise = SharedGaussian.calibrate(
            epsilon=sharing.budget.amount,
            delta=sharing.budget.delta,
            squared_sensitivity=constant**4 + constant**2 * whole.largest**2 + whole.largest**4,
            dimensions=(columns + 1) * (columns + 2) // 2,
            shares=sharing.owners,
            colluding=sharing.colluding,
        )
    return MomentsPlan(columns=columns, owners=sharing.owners, whole=whole, constant=constant, noise=noise)
