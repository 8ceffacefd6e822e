"""The one door to randomness.

`SystemRandomSource` is an AES-256-CTR stream keyed from the operating system. It takes a new key after 2**32 bytes,
in every forked child and in every thread, so that no two processes or threads ever share a stream.
`SeededRandomSource` repeats itself: for tests only. `random_source` turns the ``random_state`` of a public function
into a source: None is the operating system, an integer is seeded, warns, and taints the guarantee.
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
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


class _Stream:
    """The key stream of AES-256 in counter mode."""

    def __init__(self, key: bytes) -> None:
        self._encryptor: CipherContext = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self.used = 0

    def take(self, count: int) -> bytes:
        self.used += count
        return self._encryptor.update(bytes(count))


class SystemRandomSource:
    """Unpredictable randomness from the operating system, expanded with AES-256-CTR."""

    _REKEY_AFTER = 2**32

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def is_secure(self) -> bool:
        """Return True."""
        return True

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` uniform bytes."""
        return self._stream().take(count)

    def words(self, count: int) -> Words:
        """Return ``count`` uniform 64-bit words."""
        return np.frombuffer(self.random_bytes(8 * count), dtype="<u8")

    def _stream(self) -> _Stream:
        stream: _Stream | None = getattr(self._local, "stream", None)
        if stream is None or stream.used >= self._REKEY_AFTER or self._local.process != os.getpid():
            stream = self._local.stream = _Stream(os.urandom(32))
            self._local.process = os.getpid()
        return stream


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
        return np.frombuffer(self.random_bytes(8 * count), dtype="<u8")


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


def integers_below(source: RandomSource, bound: int, count: int) -> NDArray[np.int64]:
    """Return ``count`` exactly uniform integers in [0, bound), for a bound up to 2**62."""
    if not 1 <= bound <= 2**62:
        raise ParameterError("A bound for random integers must lie in 1 .. 2**62.", fix="use a smaller range.")
    limit = np.uint64((2**64 // bound) * bound - 1)
    words = source.words(count)
    refused = np.flatnonzero(words > limit)
    if refused.size:
        words = words.copy()
    while refused.size:
        words[refused] = source.words(refused.size)
        refused = refused[words[refused] > limit]
    return (words % np.uint64(bound)).astype(np.int64)


def permutation(source: RandomSource, count: int) -> NDArray[np.int64]:
    """Return a uniform permutation of ``range(count)``: the order of random 128-bit keys, redrawn on a tie."""
    while True:
        high, low = source.words(count), source.words(count)
        order = np.lexsort((low, high))
        ties = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
        if not ties.any():
            return order.astype(np.int64)
