"""The noisy number of rows of a box, the sums of their columns, and the sums of products of columns.

Numbers are measured in whole steps from the middle of the box, squares from the middle of their range.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP without a delta, for one row added or removed, which is in one box.
With at most r_i steps from the middle in column i, the row moves the count by 1; the sums by at most sum r_i in L1 and
sum r_i**2 in squared L2; the products by at most sum_{i<j} r_i r_j + sum_i ceil(r_i**2 / 2) in L1, and by the sum of
the squares of these in squared L2. The three are paid with a third of the share each. Boxes are fixed before, so that
those of the same share compose in parallel, each with the noise for its own size.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product
from cloister.mechanisms.allowance import Allowance, StepNoise
from cloister.synth.numeric import UNIT

__all__ = ["Box", "MomentNoise", "NoisyMoments", "plan_moments", "release_moments"]

_THIRD = Fraction(1, 3)


@dataclass(frozen=True, eq=False)
class Box:
    """The first and last step of some columns; public, or released before."""

    lows: NDArray[np.int64]
    highs: NDArray[np.int64]

    @classmethod
    def whole(cls, columns: int) -> Box:
        """Return the box of all rows."""
        return cls(np.full(columns, -UNIT), np.full(columns, UNIT))

    @property
    def middles(self) -> NDArray[np.int64]:
        """Return where numbers are measured from."""
        return np.asarray((self.lows + self.highs) // 2)

    @property
    def reach(self) -> tuple[int, ...]:
        """Return how far numbers can be from the middle."""
        return tuple(map(int, np.maximum(self.highs - self.middles, self.middles - self.lows)))


@dataclass(frozen=True, slots=True)
class MomentNoise:
    """The noise on the count, the sums and the products."""

    count: StepNoise
    sums: StepNoise
    products: StepNoise


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Released: the number of rows, the sums of columns and of products, in units of half the range from the middle."""

    count: float
    sums: Floats
    products: Floats

    def __add__(self, other: NoisyMoments) -> NoisyMoments:
        return NoisyMoments(self.count + other.count, self.sums + other.sums, self.products + other.products)


def plan_moments(allowance: Allowance, share: Fraction, reach: tuple[int, ...]) -> MomentNoise:
    """Return the noise that a share buys for rows that reach so far from the middle."""
    squares = [-(-(step**2) // 2) for step in reach]
    total, total_squared = sum(reach), sum(step**2 for step in reach)
    pairs = (total**2 - total_squared) // 2
    pairs_squared = (total_squared**2 - sum(step**4 for step in reach)) // 2
    return MomentNoise(
        count=allowance.noise(share * _THIRD, sensitivity=1, squared_sensitivity=1),
        sums=allowance.noise(share * _THIRD, sensitivity=max(1, total), squared_sensitivity=max(1, total_squared)),
        products=allowance.noise(
            share * _THIRD,
            sensitivity=max(1, pairs + sum(squares)),
            squared_sensitivity=max(1, pairs_squared + sum(square**2 for square in squares)),
        ),
    )


def release_moments(
    steps: Floats, weights: NDArray[np.int64], box: Box, noise: MomentNoise, source: RandomSource
) -> NoisyMoments:
    """Return the moments of rows that are all in a box, with noise: one draw for each number."""
    middles, reach = box.middles.astype(np.float64), np.array(box.reach, dtype=np.int64)
    apart = steps - middles
    count = int(weights.sum())
    ones, most = np.ones((len(steps), 1)), int(reach.max(initial=1)) or 1
    sums = exact_product(apart, ones, weights, most=most)[:, 0]
    products = exact_product(apart, apart, weights, most=most**2)
    shift = reach**2 // 2
    above = np.triu_indices(len(reach))
    entries = products[above] - np.where(above[0] == above[1], shift[above[0]], 0) * count
    noisy_count = float(noise.count.add(np.array([count]), source)[0])
    noisy_sums = noise.sums.add(sums, source).astype(np.float64) / UNIT
    full = np.zeros((len(reach), len(reach)))
    full[above] = noise.products.add(entries, source).astype(np.float64)
    full += np.triu(full, 1).T + np.diag(shift * noisy_count)
    return _from_origin(noisy_count, noisy_sums, full / UNIT**2, middles / UNIT)


def _from_origin(count: float, sums: Floats, products: Floats, middles: Floats) -> NoisyMoments:
    """Return moments around the middle of a box as moments around zero."""
    crossed = np.outer(middles, sums)
    return NoisyMoments(
        count, sums + count * middles, products + crossed + crossed.T + count * np.outer(middles, middles)
    )
