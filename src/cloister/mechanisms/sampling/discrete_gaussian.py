"""The discrete Gaussian law, ``Pr[k]`` proportional to ``exp(-k**2 / (2 * sigma**2))``, for any rational sigma**2."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from cloister.mechanisms.sampling.blocks import BlockSampler, Symmetric
from cloister.mechanisms.sampling.fixed import Interval


@dataclass(frozen=True, slots=True)
class HalfGaussianLaw:
    """Weights exp(-k**2 / (2 * squared_sigma)) on 0, 1, 2, ..."""

    squared_sigma: Fraction

    @property
    def width(self) -> int:
        """Return sigma, rounded down."""
        return isqrt(int(self.squared_sigma))

    def exponent(self, magnitude: int) -> Fraction:
        """Return k**2 / (2 * squared_sigma)."""
        return magnitude**2 / (2 * self.squared_sigma)

    def block_thresholds(self, block_size: int, bits: int) -> Iterable[Interval]:
        """Return ``Pr[block < h]`` for h = 1, 2, ... while it can be told from 1."""
        squared = self.squared_sigma / block_size**2
        step = Interval.exp_of_minus(1 / squared, bits)
        ratio = Interval.exp_of_minus(1 / (2 * squared), bits)
        weight = partial = Interval.of(Fraction(1), bits)
        sums = []
        while weight.low > 0:
            sums.append(partial)
            weight, ratio = weight * ratio, ratio * step
            partial = partial + weight
        # What is left out shrinks at least by the ratio each time: a geometric series bounds its sum.
        rest = weight.over(ratio.one_minus())
        whole = Interval(partial.low, partial.high + rest.high, bits)
        return (item.over(whole) for item in sums)

    def block_gammas(
        self, blocks: NDArray[np.int64], places: NDArray[np.float64], block_size: int
    ) -> NDArray[np.float64]:
        """Return (2 h l + l**2) / (2 * squared_sigma) in units of blocks."""
        return (2.0 * blocks * places + places * places) / float(2 * self.squared_sigma / block_size**2)


@lru_cache(maxsize=256)
def discrete_gaussian(squared_sigma: Fraction) -> Symmetric:
    """Return the sampler of a variance; recent ones are kept, since their tables depend on public numbers only."""
    return Symmetric(BlockSampler(HalfGaussianLaw(squared_sigma)))
