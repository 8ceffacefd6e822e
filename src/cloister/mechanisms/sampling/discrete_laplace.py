"""The discrete Laplace law, ``Pr[k]`` proportional to ``exp(-abs(k) / scale)``, for any rational scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cloister.mechanisms.sampling.blocks import BlockSampler, Symmetric
from cloister.mechanisms.sampling.fixed import Interval
from cloister.mechanisms.sampling.inversion import CUT


@dataclass(frozen=True, slots=True)
class GeometricLaw:
    """Weights exp(-k / scale) on 0, 1, 2, ..."""

    scale: Fraction

    @property
    def width(self) -> int:
        """Return the scale, rounded down."""
        return int(self.scale)

    def exponent(self, magnitude: int) -> Fraction:
        """Return k / scale."""
        return magnitude / self.scale

    def block_thresholds(self, block_size: int, bits: int) -> Iterable[Interval]:
        """Yield ``Pr[block < h]`` for h = 1, 2, ... while it can be told from 1."""
        power = ratio = Interval.exp_of_minus(block_size / self.scale, bits)
        while power.high >> CUT:
            yield power.one_minus()
            power = power * ratio

    def block_gammas(
        self,
        blocks: NDArray[np.int64],  # noqa: ARG002  # every block looks the same
        places: NDArray[np.float64],
        block_size: int,
    ) -> NDArray[np.float64]:
        """Return the exponent of the place alone."""
        return places * float(block_size / self.scale)


@lru_cache(maxsize=256)
def geometric(scale: Fraction) -> BlockSampler:
    """Return the sampler of G >= 0 with ``Pr[G >= k] = exp(-k / scale)``."""
    return BlockSampler(GeometricLaw(scale))


@lru_cache(maxsize=256)
def discrete_laplace(scale: Fraction) -> Symmetric:
    """Return the sampler of a scale; recent ones are kept, since their tables depend on public numbers only."""
    return Symmetric(geometric(scale))
