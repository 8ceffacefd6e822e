"""Exact draws of discrete Laplace and discrete Gaussian noise, for any rational scale or variance.

The laws are ``Pr[k]`` proportional to ``exp(-abs(k) / scale)`` and to ``exp(-k**2 / (2 * sigma**2))``.

Large integers are drawn in three steps: a block by inversion, a place in it uniformly, a coin toss for the difference.
A magnitude is ``2**b`` times a block number plus a place. The block is drawn with the weight of its first integer,
the place uniformly, and the pair is kept with the ratio of its true weight to that of the block's first integer, by an
exact coin toss. Blocks are so small against the law's width that about 98 of 100 pairs are kept. What is refused
depends on the noise alone, never on a private value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.core import random
from cloister.core.random import RandomSource
from cloister.mechanisms.sampling.coins import toss_exponentials
from cloister.mechanisms.sampling.inversion import CUT, WORD, FixedPointInterval, Inversion, Reals

BLOCKS_PER_WIDTH = 64
_FITS = 50
"""Wider laws give Python integers: 64 bits could overflow."""


class Sampler(Protocol):
    """Something that draws integers."""

    def draw(self, source: RandomSource, count: int) -> NDArray[Any]:
        """Return ``count`` independent draws."""
        ...


class BlockLaw(Protocol):
    """A decreasing law on 0, 1, 2, ... whose weights are exp(-exponent(k))."""

    @property
    def width(self) -> int:
        """Return the distance over which the weight falls by a constant factor, rounded down."""
        ...

    def exponent(self, magnitude: int) -> Fraction:
        """Return minus the logarithm of the weight."""
        ...

    def block_thresholds(self, block_size: int, bits: int) -> Any:
        """Return the cumulative probabilities of the blocks, as `Reals` of a precision."""
        ...

    def block_gammas(
        self, blocks: NDArray[np.int64], places: NDArray[np.float64], block_size: int
    ) -> NDArray[np.float64]:
        """Return exponent(first + place) - exponent(first), with places relative to the block size."""
        ...


class BlockSampler:
    """Samples a one-sided law by blocks."""

    def __init__(self, law: BlockLaw) -> None:
        self._law = law
        # Between 32 and 64 blocks make up a width: a short table, and hardly a pair is refused.
        self._bits = max(0, law.width.bit_length() - BLOCKS_PER_WIDTH.bit_length() + 1)
        # Beside a value of up to 2**62, int64 has room for 2**12 widths: noise beyond has a probability below
        # exp(-4096).
        self._dtype = np.int64 if law.width.bit_length() <= _FITS else object
        thresholds: Reals = lambda bits: law.block_thresholds(2**self._bits, bits)  # noqa: E731
        self._block = Inversion(thresholds)

    def draw(self, source: RandomSource, count: int) -> NDArray[Any]:
        """Return ``count`` independent draws, of 64-bit integers unless the law is huge."""
        return fill(lambda size: self._propose(source, size), count)

    def _propose(self, source: RandomSource, count: int) -> NDArray[Any]:
        block = self._block.draw(source, count)
        # A block of one integer was drawn with that integer's own weight: there is no place and nothing to toss.
        if not self._bits:
            return block.astype(self._dtype)
        words = self._place_words(source, count)
        kept = self._toss(source, block, words)
        return self._magnitudes(block[kept], [word[kept] for word in words])

    def _place_words(self, source: RandomSource, count: int) -> list[NDArray[np.uint64]]:
        """Return the words of uniform places, the most significant first."""
        size = -(-self._bits // WORD)
        words = source.words(size * count).reshape(size, count)
        # The top word keeps only the bits that are still needed, so that every place is equally likely.
        return [words[0] >> np.uint64(WORD * size - self._bits), *words[1:]]

    def _magnitudes(self, block: NDArray[np.int64], words: list[NDArray[np.uint64]]) -> NDArray[Any]:
        magnitude: NDArray[Any] = block.astype(self._dtype) * 2**self._bits
        for index, word in enumerate(reversed(words)):
            magnitude += word.astype(self._dtype) * 2 ** (WORD * index)
        return magnitude

    def _toss(
        self, source: RandomSource, block: NDArray[np.int64], words: list[NDArray[np.uint64]]
    ) -> NDArray[np.bool_]:
        size = 2**self._bits
        # As shares of a block, places are exact to 2**-52 however large it is: gamma stays within what the tosses
        # allow.
        shares = [word * 2.0 ** (WORD * index - self._bits) for index, word in enumerate(reversed(words))]
        gammas = self._law.block_gammas(block, np.sum(shares, axis=0), size)

        def exactly(index: int, bits: int) -> FixedPointInterval:
            first, whole = size * int(block[index]), slice(index, index + 1)
            magnitude = int(self._magnitudes(block[whole], [word[whole] for word in words])[0])
            return FixedPointInterval.exp_of_minus(self._law.exponent(magnitude) - self._law.exponent(first), bits)

        return toss_exponentials(source, gammas, exactly)


class Symmetric:
    """Samples the two-sided law of a one-sided sampler: a sign for each magnitude, the negative zero refused."""

    def __init__(self, magnitudes: Sampler) -> None:
        self._magnitudes = magnitudes

    def draw(self, source: RandomSource, count: int) -> NDArray[Any]:
        """Return ``count`` independent draws."""
        return fill(lambda size: self._propose(source, size), count)

    def _propose(self, source: RandomSource, count: int) -> NDArray[Any]:
        magnitude = self._magnitudes.draw(source, count)
        positive = random.bits(source, count)
        signed: NDArray[Any] = np.where(positive, magnitude, -magnitude)
        # Zero comes with either sign; one of the two is kept, or it would weigh twice.
        return np.asarray(signed[positive | (magnitude != 0)])


def fill(propose: Callable[[int], NDArray[Any]], count: int) -> NDArray[Any]:
    """Return exactly ``count`` accepted proposals."""
    accepted = propose(count)
    while accepted.size < count:
        missing = count - accepted.size
        # Some more than missing, so that this rarely runs twice; draws are independent, so the surplus may go.
        accepted = np.concatenate([accepted, propose(missing + missing // 4 + 16)])
    return accepted[:count]


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

    def block_thresholds(self, block_size: int, bits: int) -> Iterable[FixedPointInterval]:
        """Yield ``Pr[block < h]`` for h = 1, 2, ... while it can be told from 1."""
        power = ratio = FixedPointInterval.exp_of_minus(block_size / self.scale, bits)
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

    def block_thresholds(self, block_size: int, bits: int) -> Iterable[FixedPointInterval]:
        """Return ``Pr[block < h]`` for h = 1, 2, ... while it can be told from 1."""
        squared = self.squared_sigma / block_size**2
        # Successive weights have ratios exp(-(2h + 1) / (2s)), which shrink by exp(-1/s): two products replace an
        # exponential.
        step = FixedPointInterval.exp_of_minus(1 / squared, bits)
        ratio = FixedPointInterval.exp_of_minus(1 / (2 * squared), bits)
        weight = partial = FixedPointInterval.of(Fraction(1), bits)
        sums = []
        while weight.low > 0:
            sums.append(partial)
            weight, ratio = weight * ratio, ratio * step
            partial = partial + weight
        # What is left out shrinks at least by the ratio each time: a geometric series bounds its sum.
        rest = weight.over(ratio.one_minus())
        whole = FixedPointInterval(partial.low, partial.high + rest.high, bits)
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
