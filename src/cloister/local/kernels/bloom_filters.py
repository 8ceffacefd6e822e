"""Bloom filters of a public domain: the bits that each value sets, one set of hash functions for each cohort.

A filter has ``bits`` places; each of ``hashes`` functions sets one of them (Bloom 1970). The functions are affine over
a prime field, ``((a v + b) mod P) mod bits`` for the code v, with ``a`` and ``b`` from the SHA-256 of the cohort and
the function's number: public, the same for everybody, chosen before anything is known about people. With one function
and a bit for every value, each value has a bit of its own (``a = 1, b = 0``).
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["bloom_filters", "hash_functions"]

_LABEL = "cloister.bloom/1"


def hash_functions(domain_size: int, *, bits: int, hashes: int, cohorts: int, prime: int) -> NDArray[np.int64]:
    """Return (a, b) for each cohort and function: an array of shape (cohorts, hashes, 2)."""
    if hashes == 1 and bits >= domain_size:
        return np.tile(np.array([1, 0]), (cohorts, 1, 1))
    pairs = [[_pair(cohort, number, prime) for number in range(hashes)] for cohort in range(cohorts)]
    return np.array(pairs, dtype=np.int64)


def bloom_filters(functions: NDArray[np.int64], domain_size: int, *, bits: int, prime: int) -> NDArray[np.bool_]:
    """Return the filter of every value in every cohort: an array of shape (cohorts, values, bits)."""
    codes = np.arange(domain_size)
    a, b = functions[:, :, 0, None], functions[:, :, 1, None]
    places = (a * codes + b) % prime % bits
    filters = np.zeros((len(functions), domain_size, bits), dtype=np.bool_)
    cohorts = np.arange(len(functions))[:, None]
    for number in range(functions.shape[1]):
        filters[cohorts, codes, places[:, number]] = True
    return filters


def _pair(cohort: int, number: int, prime: int) -> tuple[int, int]:
    digest = hashlib.sha256(f"{_LABEL}:{cohort}:{number}".encode()).digest()
    first, second = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:], "big")
    return 1 + first % (prime - 1), second % prime
