"""Randomness, through one door: that of the operating system, or a seeded one, which taints the guarantee.

`SystemRandomSource` asks the operating system at every call, and keeps nothing between calls: a large call is the
AES-256-CTR stream of a key of its own. So there is no state that forked children, threads, or copies of a process or
machine that was saved and restored could share. What is left is what the operating system itself repeats.
`SeededRandomSource` repeats itself: for tests only. `random_source` turns the ``random_state`` of a public function
into a source: None is the operating system, an integer is seeded, warns, and taints the guarantee.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.guarantees import SEEDED_RANDOMNESS, Caveat
from cloister.errors import ParameterError, ParameterTypeError, SeededRandomnessWarning

Words: TypeAlias = NDArray[np.uint64]


@runtime_checkable
class RandomSource(Protocol):
    """A stream of independent uniform bits."""

    @property
    def is_secure(self) -> bool:
        """Return whether nobody can predict the stream."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` uniform bytes."""
        ...

    def words(self, count: int) -> Words:
        """Return ``count`` uniform 64-bit words."""
        ...


RandomState: TypeAlias = "int | RandomSource | None"

_ZEROS = memoryview(bytes(2**16))
"""What is encrypted at a time: little enough to stay in the cache."""

_SPARE = 15
"""How much room beyond its output the cipher asks for: its block size less one."""


_DIRECT = 2048
"""Up to how many bytes the operating system gives faster than it takes to set up a cipher."""


class _Stream:
    """The key stream of AES-256 in counter mode."""

    def __init__(self, key: bytes) -> None:
        self._encryptor: CipherContext = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def take(self, count: int) -> bytes:
        return self._encryptor.update(bytes(count))

    def words(self, count: int) -> Words:
        """Return the next ``8 * count`` bytes as words, without a copy."""
        size = 8 * count
        drawn = np.empty(size + _SPARE, dtype=np.uint8)
        room = drawn.data
        for start in range(0, size, len(_ZEROS)):
            self._encryptor.update_into(_ZEROS[: size - start], room[start:])
        return drawn[:size].view("<u8")


class SystemRandomSource:
    """Unpredictable randomness from the operating system, expanded with AES-256-CTR where much is asked for."""

    @property
    def is_secure(self) -> bool:
        """Return True."""
        return True

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` uniform bytes."""
        return os.urandom(count) if count <= _DIRECT else _Stream(os.urandom(32)).take(count)

    def words(self, count: int) -> Words:
        """Return ``count`` uniform 64-bit words."""
        if 8 * count <= _DIRECT:
            # A bytearray makes the words writable, like those of the stream.
            return np.frombuffer(bytearray(os.urandom(8 * count)), dtype="<u8")
        return _Stream(os.urandom(32)).words(count)


class SeededRandomSource:
    """A stream that repeats itself, for tests only. Nothing made with it is private."""

    def __init__(self, seed: int) -> None:
        seed = validation.check_count(seed, name="the seed")
        self._stream = _Stream(hashlib.sha256(b"cloister test stream" + str(seed).encode()).digest())

    @property
    def is_secure(self) -> bool:
        """Return False."""
        return False

    def random_bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        return self._stream.take(count)

    def words(self, count: int) -> Words:
        """Return the next ``count`` 64-bit words."""
        return self._stream.words(count)


class ListedRandomSource:
    """Words that are given, in order: for vectors that two implementations are compared on, never for privacy."""

    def __init__(self, words: Iterable[int]) -> None:
        self._words = np.array([validation.check_count(word, name="each word") for word in words], dtype=np.uint64)
        self.used = 0

    @property
    def is_secure(self) -> bool:
        """Return False."""
        return False

    def random_bytes(self, count: int) -> bytes:
        """Return the first ``count`` bytes of the next words."""
        return self.words((count + 7) // 8).tobytes()[:count]

    def words(self, count: int) -> Words:
        """Return the next ``count`` words.

        Raises:
            ParameterError: if there are not as many left.
        """
        if self.used + count > self._words.size:
            raise ParameterError("The list of random words is used up.", fix="list more words.")
        self.used += count
        return self._words[self.used - count : self.used]


_SYSTEM = SystemRandomSource()


def random_source(random_state: RandomState = None) -> RandomSource:
    """Return the source that a ``random_state`` argument stands for.

    Raises:
        ParameterTypeError: if it is neither None, an integer nor a source.
    """
    if random_state is None:
        return _SYSTEM
    if isinstance(random_state, RandomSource):
        return random_state
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise ParameterTypeError(
            "random_state is neither None, a whole number nor a RandomSource.",
            fix="leave random_state out; give an integer in tests only.",
        )
    warnings.warn(
        "A seed makes the noise predictable: for tests only, the result is not private.",
        SeededRandomnessWarning,
        stacklevel=3,
    )
    return SeededRandomSource(int(random_state))


def caveats_of(source: RandomSource) -> tuple[Caveat, ...]:
    """Return the caveat that a source adds to a guarantee, if any."""
    return () if source.is_secure else (SEEDED_RANDOMNESS,)


def bits(source: RandomSource, count: int) -> NDArray[np.bool_]:
    """Return ``count`` fair coin tosses."""
    packed = np.frombuffer(source.random_bytes((count + 7) // 8), dtype=np.uint8)
    return np.unpackbits(packed, count=count).view(np.bool_)


def chances(source: RandomSource, threshold: int | Words, count: int) -> NDArray[np.bool_]:
    """Return ``count`` coin tosses, each true with probability exactly ``threshold / 2**64``.

    One word decides each toss: it is compared with the integer threshold, of which there may be one for each toss.
    """
    words = source.words(count)
    if isinstance(threshold, int) and threshold >= 2**64:
        return np.ones(count, dtype=np.bool_)
    return words < (np.uint64(threshold) if isinstance(threshold, int) else threshold)


def integers_below(source: RandomSource, bound: int, count: int) -> NDArray[np.int64]:
    """Return ``count`` exactly uniform integers in [0, bound), for a bound up to 2**62.

    A word times the bound, divided by 2**64; words whose remainder would make some results more likely are drawn
    anew (after Lemire 2019). So ``floor(bound * u)`` for the uniform number u that the word stands for.
    """
    if not 1 <= bound <= 2**62:
        raise ParameterError("A bound for random integers must lie in 1 .. 2**62.", fix="use a smaller range.")
    # Remainders up to here come in whole multiples of the bound, so that each result has as many words.
    last, factor = np.uint64(2**64 - 2**64 % bound - 1), np.uint64(bound)
    words = source.words(count)
    # The product wraps around 64 bits on purpose: what is left of it is the remainder.
    refused = np.flatnonzero(words * factor > last)
    if refused.size:
        # A source may hand out a view of its own words.
        words = words.copy()
    while refused.size:
        words[refused] = source.words(refused.size)
        refused = refused[words[refused] * factor > last]
    return scale_words(words, bound)


def scale_words(words: Words, bound: int) -> NDArray[np.int64]:
    """Return ``floor(word * bound / 2**64)`` for words and a bound up to 2**62."""
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    high, low = words >> half, words & mask
    if bound < 2**32:
        # Neither product nor their sum can pass 64 bits, since both halves and the bound are below 2**32.
        return np.asarray((high * np.uint64(bound) + (low * np.uint64(bound) >> half)) >> half).astype(np.int64)
    bound_high, bound_low = np.uint64(bound >> 32), np.uint64(bound & (2**32 - 1))
    cross, other = low * bound_high, high * bound_low
    # Three numbers below 2**32 each: their sum cannot wrap around, and its upper half is the carry.
    carried = ((low * bound_low >> half) + (cross & mask) + (other & mask)) >> half
    return np.asarray(high * bound_high + (cross >> half) + (other >> half) + carried).astype(np.int64)


def permutation(source: RandomSource, count: int) -> NDArray[np.int64]:
    """Return a uniform permutation of ``range(count)``: the order of random 128-bit keys, redrawn on a tie."""
    while True:
        high, low = source.words(count), source.words(count)
        order = np.lexsort((low, high))
        # With equal keys the sort would keep the order that was given, which is not uniform.
        ties = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
        if not ties.any():
            return order.astype(np.int64)
