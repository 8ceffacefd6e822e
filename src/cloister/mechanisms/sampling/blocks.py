"""Exact draws of large integers: a block by inversion, a place in it uniformly, a coin toss for the difference.

A magnitude is ``2**b`` times a block number plus a place. The block is drawn with the weight of its first integer,
the place uniformly, and the pair is kept with the ratio of its true weight to that of the block's first integer, by an
exact coin toss. Blocks are so small against the law's width that about 98 of 100 pairs are kept. What is refused
depends on the noise alone, never on a private value.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.core import random
from cloister.core.random import RandomSource
from cloister.mechanisms.sampling.comparison import toss_exponentials
from cloister.mechanisms.sampling.fixed import Interval
from cloister.mechanisms.sampling.inversion import WORD, Inversion, Reals

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
        self._bits = max(0, law.width.bit_length() - BLOCKS_PER_WIDTH.bit_length() + 1)
        self._dtype = np.int64 if law.width.bit_length() <= _FITS else object
        thresholds: Reals = lambda bits: law.block_thresholds(2**self._bits, bits)  # noqa: E731
        self._block = Inversion(thresholds)

    def draw(self, source: RandomSource, count: int) -> NDArray[Any]:
        """Return ``count`` independent draws, of 64-bit integers unless the law is huge."""
        return fill(lambda size: self._propose(source, size), count)

    def _propose(self, source: RandomSource, count: int) -> NDArray[Any]:
        block = self._block.draw(source, count)
        if not self._bits:
            return block.astype(self._dtype)
        words = self._place_words(source, count)
        kept = self._toss(source, block, words)
        return self._magnitudes(block[kept], [word[kept] for word in words])

    def _place_words(self, source: RandomSource, count: int) -> list[NDArray[np.uint64]]:
        """Return the words of uniform places, the most significant first."""
        size = -(-self._bits // WORD)
        words = source.words(size * count).reshape(size, count)
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
        shares = [word * 2.0 ** (WORD * index - self._bits) for index, word in enumerate(reversed(words))]
        gammas = self._law.block_gammas(block, np.sum(shares, axis=0), size)

        def exactly(index: int, bits: int) -> Interval:
            first, whole = size * int(block[index]), slice(index, index + 1)
            magnitude = int(self._magnitudes(block[whole], [word[whole] for word in words])[0])
            return Interval.exp_of_minus(self._law.exponent(magnitude) - self._law.exponent(first), bits)

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
        return np.asarray(signed[positive | (magnitude != 0)])


def fill(propose: Callable[[int], NDArray[Any]], count: int) -> NDArray[Any]:
    """Return exactly ``count`` accepted proposals."""
    accepted = propose(count)
    while accepted.size < count:
        missing = count - accepted.size
        accepted = np.concatenate([accepted, propose(missing + missing // 4 + 16)])
    return accepted[:count]
