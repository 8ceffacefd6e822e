"""Local hashing with affine functions over a prime field, counted exactly for whole domains at once.

``H(v) = ((a v + b) mod P) mod g`` with ``a`` and ``b`` uniform on 0 .. P-1 and a prime P not below the domain size. For
two different values the pair ``(a v + b, a w + b) mod P`` is uniform on all P**2 pairs (Carter and Wegman 1979), so
``H(v)`` and ``H(w)`` are independent: not nearly, exactly. Buckets differ in size by at most one residue, and
`support_probabilities` allows for it, so that estimates are unbiased without an ideal hash function.

A report ``(a, b, y)`` supports v when ``H(v) = y``. With ``c = a / g`` and ``s = (y - b) / g`` in the field, that is
``(c v - s) mod P < m``, where m is the number of residues in bucket y: dividing by g turns a bucket, an arithmetic
progression, into an interval. Reports that share ``a`` are therefore counted together by prefix sums, in
``n + P**2`` steps in place of ``n d``; few reports on a large domain are compared one by one. All of it is integers.

Where the domain is too large to count whole, only candidates are counted: extensions of a few prefixes by all endings,
whose codes are sums of a prefix's and an ending's number in the field. So ``c`` times each prefix and each ending is
worked out once, and each of the many pairs takes an addition and a comparison.

Positions are below 2 P and compared in 64-bit fixed point: with ``K = ceil(2**64 / P)`` and ``e = K P - 2**64 < P``, a
number ``q P + u`` times K is ``q e + u K`` modulo 2**64, below ``m K`` exactly if ``u < m`` as long as ``2 e < K``,
which holds for every P below 2**31.

Bloom filters of a public domain: the bits that each value sets, one set of hash functions for each cohort.

A filter has ``bits`` places; each of ``hashes`` functions sets one of them (Bloom 1970). The functions are affine over
a prime field, ``((a v + b) mod P) mod bits`` for the code v, with ``a`` and ``b`` from the SHA-256 of the cohort and
the function's number: public, the same for everybody, chosen before anything is known about people. With one function
and a bit for every value, each value has a bit of its own (``a = 1, b = 0``).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.errors import ParameterError

__all__ = ["bloom_filters", "candidate_counts", "hash_functions"]


Integers = NDArray[np.int64]

LARGEST_PRIME = 2**31 - 1
"""Products of two residues, and sums of two such products, fit 64 bits."""

_RESIDUES_PER_BUCKET = 16
"""With so many, unequal buckets raise the chance of a collision above 1/g by less than a thousandth."""

_TABLE = 2**21
"""Most cells of a table of starts: 16 MB for each of two interval lengths."""

_CELLS = 2**15
"""Cells worked on at a time, for the cache."""

_VALUES = 256
_REPORTS = _CELLS // _VALUES
"""A block of reports and values in direct counting; fewer than 256 reports, as they are counted in bytes."""

_GROUPED_REPORT, _GROUPED_CELL, _DIRECT_CELL = 40, 12, 2
"""Rough costs in nanoseconds; only the choice between two ways to the same numbers depends on them."""


def prime_for(domain_size: int, buckets: int) -> int:
    """Return the smallest prime that suits a domain: not below its size, nor below 16 residues per bucket.

    >>> prime_for(1024, 4)
    1031
    """
    domain_size = validation.check_count(domain_size, name="domain_size", at_least=1)
    candidate = max(domain_size, _RESIDUES_PER_BUCKET * _check_buckets(buckets))
    if candidate > LARGEST_PRIME:
        raise ParameterError("Local hashing takes domains of fewer than 2**31 values.", fix="use a smaller domain.")
    while not _is_prime(candidate):
        candidate += 1
    return candidate


def support_probabilities(prime: int, buckets: int, threshold: int) -> tuple[Fraction, Fraction]:
    """Return the exact probabilities that a report supports the true value, and that it supports another one.

    Args:
        prime: the size of the field.
        buckets: the number g of hash values.
        threshold: the true hash is told with probability ``threshold / 2**64``, each other one equally often.
    """
    _check_field(prime, buckets)
    truth = Fraction(threshold, 2**64)
    lie = (1 - truth) / (buckets - 1)
    small, larger = divmod(prime, buckets)
    # The first P mod g buckets hold one residue more than the others, so a collision is a sum of squares, not 1/g.
    collision = Fraction(larger * (small + 1) ** 2 + (buckets - larger) * small**2, prime**2)
    # Another value is supported when it collides and the truth is told, or when it does not and the lie names its
    # bucket.
    return truth, collision * truth + (1 - collision) * lie


def hash_codes(a: Integers, b: Integers, codes: Integers, prime: int, buckets: int) -> Integers:
    """Return the hashes of codes, one function (a, b) each; all numbers lie in 0 .. prime-1."""
    _check_field(prime, buckets)
    # Residues are below 2**31, so that the product and the sum stay below 2**63 and nothing wraps around.
    hashed = a * codes
    hashed += b
    hashed %= prime
    hashed %= buckets
    return hashed


def support_counts(a: Integers, b: Integers, y: Integers, *, domain_size: int, prime: int, buckets: int) -> Integers:
    """Return, for each code below the domain size, how many reports (a, b, y) support it.

    Raises:
        ParameterError: if a report lies outside the output space, or the prime does not suit the domain.
    """
    domain_size = validation.check_count(domain_size, name="domain_size", at_least=1)
    _check_field(prime, buckets)
    if domain_size > prime:
        raise ParameterError("The prime is smaller than the domain.", fix="use prime_for(domain_size, buckets).")
    _check_reports(a, b, y, prime, buckets)
    # Only public sizes decide, and both ways return the same integers: no report changes what is computed.
    grouped = _GROUPED_REPORT * a.size + _GROUPED_CELL * prime**2
    count = _count_grouped if grouped < _DIRECT_CELL * a.size * domain_size else _count_directly
    return count(_Intervals.of(a, b, y, prime=prime, buckets=buckets), domain_size)


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Reports as circular intervals: one supports v when ``c v`` lies in 0 .. m-1 places behind its start."""

    a: Integers
    starts: Integers
    longer: NDArray[np.bool_]
    prime: int
    buckets: int

    @classmethod
    def of(cls, a: Integers, b: Integers, y: Integers, *, prime: int, buckets: int) -> _Intervals:
        # Adding P keeps the numbers between 0 and 2 P, so that the product with the inverse still fits 63 bits.
        starts = y - b
        starts += prime
        starts *= pow(buckets, -1, prime)
        starts %= prime
        return cls(a, starts, y < prime % buckets, prime, buckets)

    @property
    def shorter_length(self) -> int:
        return self.prime // self.buckets

    def multipliers(self, a: Integers) -> Integers:
        """Return c for each a."""
        return a * pow(self.buckets, -1, self.prime) % self.prime


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _check_buckets(buckets: int) -> int:
    return validation.check_count(buckets, name="buckets", at_least=2)


def _check_field(prime: int, buckets: int) -> None:
    if not _check_buckets(buckets) < prime <= LARGEST_PRIME:
        raise ParameterError(
            "The prime must be above the number of buckets and below 2**31.",
            fix="use prime_for(domain_size, buckets).",
        )


def _check_reports(a: Integers, b: Integers, y: Integers, prime: int, buckets: int) -> None:
    for numbers, bound in ((a, prime), (b, prime), (y, buckets)):
        if numbers.shape != (a.size,) or numbers.dtype != np.int64:
            raise ParameterError("Reports are three rows of 64-bit integers.", fix="give a, b and y of one length.")
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < bound:
            raise ParameterError("A report lies outside the output space.", fix="validate reports before counting.")


def _count_grouped(reports: _Intervals, domain_size: int) -> Integers:
    """Count the reports of each ``a`` together."""
    prime = reports.prime
    # One integer holds slope, length and start of an interval, so that one histogram counts all three together.
    keys = reports.a * 2
    keys += reports.longer
    keys *= prime
    keys += reports.starts
    # The whole table has 2 P**2 cells; a block of slopes at a time keeps it small, whatever P is.
    rows = min(prime, max(1, _TABLE // prime))
    if rows < prime:
        keys.sort()
    counts = np.zeros(domain_size, dtype=np.int64)
    for first in range(0, prime, rows):
        last = min(first + rows, prime)
        # Sorted keys make each block a slice; otherwise every block would have to look at all reports.
        inside = keys
        if rows < prime:
            inside = keys[slice(*np.searchsorted(keys, [2 * prime * first, 2 * prime * last]))]
        table = np.bincount(inside - 2 * prime * first, minlength=2 * prime * (last - first))
        counts += _gather(reports, np.arange(first, last), table.reshape(-1, 2, prime), domain_size)
    return counts


def _gather(reports: _Intervals, a: Integers, table: Integers, domain_size: int) -> Integers:
    """Return the counts of the reports in a table of starts: by ``a``, whether the interval is longer, and place."""
    prime, values = reports.prime, np.arange(domain_size)
    counts = np.zeros(domain_size, dtype=np.int64)
    rows = max(1, _CELLS // prime)
    for first in range(0, a.size, rows):
        part = table[first : first + rows]
        covered = _count_cover(part[:, 0], reports.shorter_length)
        covered += _count_cover(part[:, 1], reports.shorter_length + 1)
        # The value v lies at c v in the row of its slope, whichever report told that slope.
        places = reports.multipliers(a[first : first + rows, None]) * values
        places %= prime
        # The offset of each row turns all lookups of the block into one in a flat array.
        places += prime * np.arange(len(part))[:, None]
        counts += covered.reshape(-1).take(places).sum(axis=0)
    return counts


def _count_cover(starts: Integers, length: int) -> Integers:
    """Return by how many circular intervals of one length each place of each row is covered."""
    # The intervals over a place are those that start at most length - 1 places before it: a difference of prefix sums.
    until = starts.cumsum(axis=1)
    covered = until.copy()
    # Intervals that start near the end of the row reach around to its beginning.
    covered[:, :length] += until[:, -1:] - until[:, -length:]
    covered[:, length:] -= until[:, :-length]
    return covered


def _count_directly(reports: _Intervals, domain_size: int) -> Integers:
    """Compare every report with every value, in 64-bit fixed point.

    Let ``K = ceil(2**64 / P)`` and ``e = K P - 2**64 < P``. A number ``x = q P + u`` times K is ``q e + u K`` modulo
    2**64, and as long as ``(q + 1) e < K`` that is below ``m K`` exactly if ``u < m``. Positions are reduced modulo P
    at the first of every ``n`` values, and ``c < P``, so that ``q < n``; and ``n P**2 < 2**64`` gives ``n e < K``.
    """
    prime, counts = reports.prime, np.zeros(domain_size, dtype=np.int64)
    scale = np.uint64(-(-(2**64) // prime))
    values = min(_VALUES, 2**64 // prime**2 - 1, domain_size)
    for first in range(0, reports.a.size, _REPORTS):
        part = slice(first, first + _REPORTS)
        starts, steps = reports.starts[part, None], reports.multipliers(reports.a[part, None])
        limits = (reports.shorter_length + reports.longer[part, None]).astype(np.uint64) * scale
        offsets = (steps * np.arange(values)).astype(np.uint64) * scale
        for value in range(0, domain_size, values):
            positions = (steps * value - starts) % prime
            supported = positions.astype(np.uint64) * scale + offsets < limits
            # At most 128 reports meet here, so that a byte cannot overflow.
            counted = supported.view(np.uint8).sum(axis=0, dtype=np.uint8)
            # The last block may reach beyond the domain; what is counted there belongs to no value.
            counts[value : value + values] += counted[: domain_size - value]
    return counts


_CANDIDATE_CELLS = 2**16
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
    rows = max(1, min(_MOST_REPORTS, _CANDIDATE_CELLS // max(1, counts.size)))
    places = np.empty((rows, *counts.shape), dtype=np.uint64)
    supported = np.empty(places.shape, dtype=np.bool_)
    for first in range(0, a.size, rows):
        part = slice(first, first + rows)
        multiplied = steps[part, None]
        here = len(multiplied)
        # Both parts are reduced before they are added: positions stay below 2 P, which is what the comparison allows.
        bases = ((multiplied * prefixes - starts[part, None]) % prime).astype(np.uint64) * scale
        further = (multiplied * endings % prime).astype(np.uint64) * scale
        # The buffers are reused, as a fresh array for every block of reports would cost more than the counting.
        np.add(bases[:, :, None], further[:, None, :], out=places[:here])
        np.less(places[:here], limits[part, None, None], out=supported[:here])
        counts += supported[:here].view(np.uint8).sum(axis=0, dtype=np.uint8)
    return counts


_LABEL = "cloister.bloom/1"


def hash_functions(domain_size: int, *, bits: int, hashes: int, cohorts: int, prime: int) -> NDArray[np.int64]:
    """Return (a, b) for each cohort and function: an array of shape (cohorts, hashes, 2)."""
    # With a bit for every value the identity has no collisions at all, which hashing could only add.
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
        # Two functions may set the same bit: assigning, unlike adding, does not mind.
        filters[cohorts, codes, places[:, number]] = True
    return filters


def _pair(cohort: int, number: int, prime: int) -> tuple[int, int]:
    digest = hashlib.sha256(f"{_LABEL}:{cohort}:{number}".encode()).digest()
    first, second = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:], "big")
    # A slope of zero would send every value to one bit.
    return 1 + first % (prime - 1), second % prime
