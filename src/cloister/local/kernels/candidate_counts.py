"""Supports of some candidates out of a domain too large to count whole, for reports of local hashing.

Candidates are extensions of a few prefixes by all endings, and their codes are sums of a prefix's and an ending's
number in the field of `affine_hashing`. A report supports a code v when ``(c v - s) mod P < m``, see there; so ``c``
times each prefix and each ending is worked out once, and each of the many pairs takes an addition and a comparison.

Positions are below 2 P and compared in 64-bit fixed point: with ``K = ceil(2**64 / P)`` and ``e = K P - 2**64 < P``, a
number ``q P + u`` times K is ``q e + u K`` modulo 2**64, below ``m K`` exactly if ``u < m`` as long as ``2 e < K``,
which holds for every P below 2**31.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["candidate_counts"]

Integers = NDArray[np.int64]

_CELLS = 2**16
_MOST_REPORTS = 255
"""Reports at a time: they are counted in bytes."""


def candidate_counts(
    a: Integers, b: Integers, y: Integers, prefixes: Integers, endings: Integers, *, prime: int, buckets: int
) -> Integers:
    """Return how many reports (a, b, y) support each sum of a prefix's and an ending's number, prefixes by endings.

    All numbers lie in 0 .. prime-1 and ``y`` below the buckets.
    """
    inverse = pow(buckets, -1, prime)
    steps, starts = a * inverse % prime, (y - b + prime) * inverse % prime
    scale = np.uint64(-(-(2**64) // prime))
    limits = (prime // buckets + (y < prime % buckets)).astype(np.uint64) * scale
    counts = np.zeros((prefixes.size, endings.size), dtype=np.int64)
    rows = max(1, min(_MOST_REPORTS, _CELLS // max(1, counts.size)))
    places = np.empty((rows, *counts.shape), dtype=np.uint64)
    supported = np.empty(places.shape, dtype=np.bool_)
    for first in range(0, a.size, rows):
        part = slice(first, first + rows)
        multiplied = steps[part, None]
        here = len(multiplied)
        bases = ((multiplied * prefixes - starts[part, None]) % prime).astype(np.uint64) * scale
        further = (multiplied * endings % prime).astype(np.uint64) * scale
        np.add(bases[:, :, None], further[:, None, :], out=places[:here])
        np.less(places[:here], limits[part, None, None], out=supported[:here])
        counts += supported[:here].view(np.uint8).sum(axis=0, dtype=np.uint8)
    return counts
