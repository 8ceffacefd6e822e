from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from cloister.core.random import SeededRandomSource, integers_below, random_source
from cloister.errors import ParameterError
from cloister.local import _affine_hashing as affine_hashing
from cloister.local._affine_hashing import LARGEST_PRIME, hash_codes, prime_for, support_counts, support_probabilities
from cloister.testing import distributions, statistics

Integers = NDArray[np.int64]
Reports = tuple[Integers, Integers, Integers]

HALF = 2**63


def _family(prime: int) -> tuple[Integers, Integers]:
    """Return every function of the family."""
    a, b = np.meshgrid(np.arange(prime), np.arange(prime))
    return a.reshape(-1), b.reshape(-1)


def _reports(count: int, prime: int, buckets: int, seed: int) -> Reports:
    source = SeededRandomSource(seed)
    return (
        integers_below(source, prime, count),
        integers_below(source, prime, count),
        integers_below(source, buckets, count),
    )


def _reference(reports: Reports, domain_size: int, prime: int, buckets: int) -> list[int]:
    a, b, y = (numbers.tolist() for numbers in reports)
    return [
        sum((one * value + other) % prime % buckets == told for one, other, told in zip(a, b, y, strict=True))
        for value in range(domain_size)
    ]


@pytest.mark.parametrize(("prime", "buckets"), [(5, 2), (5, 4), (7, 3), (11, 4), (13, 12)])
def test_hashes_of_two_values_are_exactly_independent(prime: int, buckets: int) -> None:
    a, b = _family(prime)
    sizes = np.bincount(np.arange(prime) % buckets, minlength=buckets)
    hashes = [hash_codes(a, b, np.full_like(a, value), prime, buckets) for value in range(prime)]
    for first in range(prime):
        for second in range(first + 1, prime):
            pairs = np.bincount(hashes[first] * buckets + hashes[second], minlength=buckets**2)
            assert pairs.tolist() == np.outer(sizes, sizes).reshape(-1).tolist()


@pytest.mark.parametrize(("prime", "buckets"), [(5, 2), (5, 4), (7, 3), (11, 4)])
@pytest.mark.parametrize("threshold", [0, HALF, 2**64 - 5, 2**64])
def test_support_probabilities_agree_with_all_functions(prime: int, buckets: int, threshold: int) -> None:
    truth = Fraction(threshold, 2**64)
    a, b = _family(prime)
    true, other = (hash_codes(a, b, np.full_like(a, value), prime, buckets) for value in (1, prime - 1))
    same = Fraction(int((true == other).sum()), a.size)
    expected = same * truth + (1 - same) * (1 - truth) / (buckets - 1)
    assert support_probabilities(prime, buckets, threshold) == (truth, expected)


def test_equal_buckets_would_be_wrong() -> None:
    _, other = support_probabilities(5, 4, HALF)
    assert other == Fraction(7, 25) / 2 + Fraction(18, 25) / 6
    assert other != Fraction(1, 4)


@given(st.integers(1, 3000), st.integers(2, 100))
def test_the_prime_makes_buckets_nearly_equal(domain_size: int, buckets: int) -> None:
    prime = prime_for(domain_size, buckets)
    least = max(domain_size, 16 * buckets)
    assert all(any(number % divisor == 0 for divisor in range(2, number)) for number in range(least, prime))
    assert all(prime % divisor for divisor in range(2, prime))
    assert 0 <= support_probabilities(prime, buckets, 2**64)[1] * buckets - 1 < Fraction(1, 1000)


def test_the_largest_prime_is_one() -> None:
    assert prime_for(LARGEST_PRIME - 3, 2) == LARGEST_PRIME


@given(st.integers(0, 2**32), st.sampled_from([(7, 3), (101, 4), (LARGEST_PRIME, 1000)]))
def test_hashes_agree_with_whole_numbers(seed: int, field: tuple[int, int]) -> None:
    prime, buckets = field
    a, b, _ = _reports(20, prime, buckets, seed)
    codes = integers_below(SeededRandomSource(seed + 1), prime, 20)
    expected = [(x * v + z) % prime % buckets for x, z, v in zip(a.tolist(), b.tolist(), codes.tolist(), strict=True)]
    assert hash_codes(a, b, codes, prime, buckets).tolist() == expected
    largest = np.full(1, prime - 1)
    assert hash_codes(largest, largest, largest, prime, buckets).tolist() == [((prime - 1) * prime) % prime % buckets]


_FIELDS = st.sampled_from([(3, 2), (5, 2), (5, 3), (5, 4), (23, 2), (23, 7), (101, 4), (101, 100), (499, 149)])


@given(st.integers(0, 60), _FIELDS, st.integers(0, 2**32), st.data())
def test_both_ways_of_counting_agree_with_the_definition(
    count: int, field: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    prime, buckets = field
    domain_size = data.draw(st.integers(1, prime))
    reports = _reports(count, prime, buckets, seed)
    expected = _reference(reports, domain_size, prime, buckets)
    sizes = data.draw(st.sampled_from([(1, 1, 1, 1), (300, 40, 3, 7), (2**21, 2**15, 128, 256)]))
    names = ("_TABLE", "_CELLS", "_REPORTS", "_VALUES")
    for grouped, direct in ((0, 1), (1, 0)):
        costs = {"_GROUPED_REPORT": grouped, "_GROUPED_CELL": grouped, "_DIRECT_CELL": direct}
        with mock.patch.multiple(affine_hashing, **costs, **dict(zip(names, sizes, strict=True))):
            counts = support_counts(*reports, domain_size=domain_size, prime=prime, buckets=buckets)
        assert counts.dtype == np.int64
        assert counts.tolist() == expected


@settings(max_examples=30)
@given(
    st.sampled_from([(LARGEST_PRIME, 2), (LARGEST_PRIME, 3001), (2**31 - 19, 100_000), (268_435_399, 4), (1031, 4)]),
    st.integers(0, 2**32),
)
def test_fixed_point_tells_the_ends_of_an_interval(field: tuple[int, int], seed: int) -> None:
    prime, buckets = field
    a, _, y = _reports(40, prime, buckets, seed)
    domain_size = 270
    codes = integers_below(SeededRandomSource(seed + 1), domain_size, 40)
    lengths = prime // buckets + (y < prime % buckets)
    inverse = pow(buckets, -1, prime)
    for distance in (np.zeros_like(y), lengths - 1, lengths, np.full_like(y, prime - 1)):
        starts = (a * inverse % prime * codes - distance) % prime
        b = (y - starts * buckets) % prime
        told = hash_codes(a, b, codes, prime, buckets) == y
        assert told.tolist() == (distance < lengths).tolist()
        expected = [int((hash_codes(a, b, np.full_like(a, v), prime, buckets) == y).sum()) for v in range(domain_size)]
        intervals = affine_hashing._Intervals.of(a, b, y, prime=prime, buckets=buckets)
        counts = affine_hashing._count_directly(intervals, domain_size)
        assert counts.tolist() == expected


def test_a_full_block_of_equal_reports_does_not_overflow() -> None:
    ones, zeros = np.ones(1000, dtype=np.int64), np.zeros(1000, dtype=np.int64)
    assert affine_hashing._REPORTS < 256
    counts = affine_hashing._count_directly(affine_hashing._Intervals.of(ones, zeros, zeros, prime=101, buckets=4), 9)
    assert counts.tolist() == [1000, 0, 0, 0] * 2 + [1000]


@pytest.mark.parametrize(
    ("count", "domain_size", "buckets", "way"),
    [
        (10**6, 128, 4, "_count_grouped"),
        (10**6, 1024, 4, "_count_grouped"),
        (10**6, 1024, 149, "_count_grouped"),
        (10**4, 10**5, 4, "_count_directly"),
        (10**6, 8, 10_000, "_count_directly"),
        (0, 100, 4, "_count_directly"),
    ],
)
def test_the_cheaper_way_is_chosen(count: int, domain_size: int, buckets: int, way: str) -> None:
    zeros = np.zeros(count, dtype=np.int64)
    with (
        mock.patch.object(affine_hashing, "_count_grouped") as grouped,
        mock.patch.object(affine_hashing, "_count_directly") as directly,
    ):
        prime = prime_for(domain_size, buckets)
        support_counts(zeros, zeros, zeros, domain_size=domain_size, prime=prime, buckets=buckets)
    assert [grouped.call_count, directly.call_count] == [way == "_count_grouped", way == "_count_directly"]


@pytest.mark.parametrize("buckets", [4, 149])
def test_many_reports_are_counted_alike_both_ways(buckets: int) -> None:
    prime = prime_for(1500, buckets)
    a, b, y = _reports(20_000, prime, buckets, 5)
    reports = affine_hashing._Intervals.of(a, b, y, prime=prime, buckets=buckets)
    grouped, direct = affine_hashing._count_grouped(reports, 1500), affine_hashing._count_directly(reports, 1500)
    assert np.array_equal(grouped, direct)


@given(st.data())
def test_numbers_outside_the_output_space_are_refused(data: st.DataObject) -> None:
    reports = [np.zeros(3, dtype=np.int64) for _ in range(3)]
    which = data.draw(st.integers(0, 2))
    reports[which] = data.draw(
        arrays.arrays(np.int64, 3).filter(
            lambda numbers: bool((numbers < 0).any() | (numbers >= (11, 11, 4)[which]).any())
        )
    )
    with pytest.raises(ParameterError, match="validate reports"):
        support_counts(*reports, domain_size=10, prime=11, buckets=4)


@pytest.mark.parametrize("bad", [np.zeros(2, dtype=np.int64), np.zeros((3, 1), dtype=np.int64), np.zeros(3)])
def test_numbers_of_another_shape_or_kind_are_refused(bad: Integers) -> None:
    good = np.zeros(3, dtype=np.int64)
    with pytest.raises(ParameterError, match="one length"):
        support_counts(good, good, bad, domain_size=10, prime=11, buckets=4)


def test_fields_must_suit_domain_and_buckets() -> None:
    empty = np.zeros(0, dtype=np.int64)
    with pytest.raises(ParameterError, match="prime_for"):
        support_counts(empty, empty, empty, domain_size=12, prime=11, buckets=4)
    for prime, buckets in ((5, 5), (2**31 + 11, 4)):
        with pytest.raises(ParameterError, match="prime_for"):
            hash_codes(empty, empty, empty, prime, buckets)
    with pytest.raises(ParameterError, match="buckets=2"):
        support_probabilities(11, 1, HALF)
    with pytest.raises(ParameterError, match="smaller domain"):
        prime_for(2**31, 4)


@pytest.mark.statistical
def test_reports_support_values_with_the_stated_probabilities() -> None:
    prime, buckets, count, source = 5, 4, 200_000, random_source()
    a, b = integers_below(source, prime, count), integers_below(source, prime, count)
    told = hash_codes(a, b, np.full_like(a, 3), prime, buckets)
    lies = integers_below(source, 2, count) == 1
    told[lies] = (told[lies] + 1 + integers_below(source, buckets - 1, int(lies.sum()))) % buckets
    counts = support_counts(a, b, told, domain_size=5, prime=prime, buckets=buckets)
    p, q = support_probabilities(prime, buckets, HALF)
    for value, chance in enumerate([q, q, q, p, q]):
        sample = np.arange(count) < counts[value]
        law = {True: float(chance), False: 1 - float(chance)}
        statistics.check_distribution(sample, distributions.categorical(law))
        for wrong in (float(chance) * 0.9, float(chance) * 1.1, 1 / buckets):
            law = {True: wrong, False: 1 - wrong}
            assert statistics.fit(sample, distributions.categorical(law)).p_value < statistics.FALSE_ALARM
