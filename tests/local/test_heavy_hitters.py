"""Frequent values of huge domains: the exact law, what is found, and what is not."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

from cloister import local
from cloister.core.random import integers_below, permutation, random_source
from cloister.errors import ForeignReportError, OutsideDomainError, ParameterError, TooFewReportsError
from cloister.local._affine_hashing import LARGEST_PRIME, candidate_counts, hash_codes
from cloister.local._bit_strings import BitStrings, pack_bits, prefix_codes
from tests.local.laws import assert_epsilon_is_exact, law
from tests.support.thoroughness import audited


def with_frequent(count: int, bits: int, frequent: dict[int, float]) -> np.ndarray:
    """Uniform values, of which some are replaced by frequent ones, in random order."""
    source = random_source()
    values = integers_below(source, 2**bits, count)
    start = 0
    for value, share in frequent.items():
        values[start : start + round(share * count)] = value
        start += round(share * count)
    return values[permutation(source, count)]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", audited(["1/2", "1", "3"], but=["3"]))
def test_the_devices_law_has_exactly_its_epsilon(epsilon: str) -> None:
    search = local.HeavyHitters(kind="integer", size=2, epsilon=epsilon, most=1, candidates=2, buckets=2)
    assert search.lengths == (1, 2)
    rows = search.values.encode([0, 1, 2])
    assert_epsilon_is_exact(search, [law(search, row) for row in rows])


@pytest.mark.parametrize("prime", [67, 1031, LARGEST_PRIME])
@pytest.mark.parametrize("buckets", [2, 3, 4])
def test_candidates_are_counted_as_their_hashes_say(prime: int, buckets: int) -> None:
    source, count = random_source(), 1000
    a, b = integers_below(source, prime, count), integers_below(source, prime, count)
    y = integers_below(source, buckets, count)
    prefixes, endings = integers_below(source, prime, 5), integers_below(source, prime, 7)
    counts = candidate_counts(a, b, y, prefixes, endings, prime=prime, buckets=buckets)
    for i, prefix in enumerate(prefixes.tolist()):
        for j, ending in enumerate(endings.tolist()):
            code = np.full(count, (prefix + ending) % prime)
            assert counts[i, j] == (hash_codes(a, b, code, prime, buckets) == y).sum()


def test_no_reports_support_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert candidate_counts(none, none, none, np.arange(3), np.arange(2), prime=67, buckets=4).tolist() == [[0, 0]] * 3


@pytest.mark.slow
@pytest.mark.statistical
def test_frequent_integers_are_found_and_nothing_else() -> None:
    frequent = {7: 0.12, 2**31 + 5: 0.08, 2**31 + 6: 0.07, 2**32 - 1: 0.065}
    search = local.HeavyHitters(kind="integer", size=32, epsilon=2)
    values = with_frequent(200_000, 32, frequent)
    found = search.estimate(search.randomize(values), false_alarm=1e-9)
    assert set(found.values) == set(frequent)
    for value, share in frequent.items():
        assert abs(found.counts[value] - share * 200_000) < 6.2 * found.standard_errors[value]
    assert search.detectable(200_000, false_alarm=1e-9) < 0.05
    # So frequent that even the rarest is not missed by chance.
    assert search.detectable(200_000, false_alarm=1e-9, power="0.9999999999") < min(frequent.values())
    assert list(found.counts.values()) == sorted(found.counts.values(), reverse=True)


@pytest.mark.slow
@pytest.mark.statistical
def test_frequent_words_are_found() -> None:
    words = {"fièvre": 0.3, "toux": 0.25, "": 0.2}
    rare = np.array([f"r{number}" for number in range(1000)], dtype=object)
    source, count = random_source(), 60_000
    values = rare[integers_below(source, 1000, count)]
    start = 0
    for word, share in words.items():
        values[start : start + round(share * count)] = word
        start += round(share * count)
    search = local.HeavyHitters(kind="text", size=7, epsilon=4)
    found = search.estimate(search.randomize(values.tolist()), false_alarm=1e-9)
    assert set(found.values) == set(words)
    for word, share in words.items():
        assert abs(found.counts[word] - share * count) < 6.2 * found.standard_errors[word]
    assert any("folded" in note for note in found.notes)


@pytest.mark.statistical
def test_counts_are_unbiased_with_the_errors_that_they_state() -> None:
    search = local.HeavyHitters(kind="integer", size=6, epsilon=2, most=4, candidates=16)
    values = with_frequent(3000, 6, {5: 0.5, 44: 0.4})
    truth = int((values == 5).sum())
    z = []
    for _ in range(300):
        found = search.estimate(search.randomize(values))
        z.append((found.counts[5] - truth) / found.standard_errors[5])
    assert abs(np.mean(z)) < 6.2 / math.sqrt(300)
    spread, (low, high) = np.sum(np.square(z)), chi2.interval(1 - 1e-9, 300)
    assert low < spread < high
    assert spread * 0.5**2 < low
    assert spread * 2**2 > high


@pytest.mark.statistical
def test_a_value_that_nobody_has_is_listed_no_more_often_than_said() -> None:
    search = local.HeavyHitters(kind="integer", size=8, epsilon=1, most=8, candidates=64)
    values = with_frequent(2000, 8, {})
    values[values == 3] = 4
    runs = [search.estimate(search.randomize(values), false_alarm=0.2) for _ in range(400)]
    absent = sum(3 in found.values for found in runs)
    assert absent <= 0.2 * 400 / 64 + 6 * math.sqrt(400 * 0.2 / 64) + 6


def test_without_frequent_values_the_list_is_empty_and_still_told() -> None:
    search = local.HeavyHitters(kind="integer", size=16, epsilon=1)
    found = search.estimate(search.randomize(with_frequent(4000, 16, {})), false_alarm=1e-9)
    assert len(found) == 0
    assert not found.counts
    assert not found.intervals()
    assert "0 values above" in str(found)
    assert found.to_dict()["values"] == []
    assert [name for name, _ in found.summary()] == ["listed", "promise", "note"]


def test_a_result_prints_saves_and_draws() -> None:
    search = local.HeavyHitters(kind="bits", size=10, epsilon=5)
    reports = search.randomize(["0000011111"] * 3000 + ["1111100000"] * 2000)
    found = search.estimate(reports, false_alarm=1e-9)
    assert found.values == ("0000011111", "1111100000")
    low, high = found.intervals()["0000011111"]
    assert low < found.counts["0000011111"] < high
    assert found.frequencies["0000011111"] == pytest.approx(found.counts["0000011111"] / 5000)
    record = json.loads(json.dumps(found.to_dict()))
    assert record["schema"] == "cloister.frequent_values/1"
    assert record["guarantee"]["epsilon"] == "5"
    assert "epsilon = 5 per report" in str(found)
    assert dict(found.summary())["0000011111"].endswith("(95%)")
    assert found.plot().to_dict()


def test_reports_and_protocol_go_through_every_wire_form() -> None:
    search = local.HeavyHitters(kind="text", size=9, epsilon=1, key="spring")
    reports = search.randomize(["a", "bb", "ccc"])
    assert search.read([report.to_json() for report in reports]).payload.tobytes() == reports.payload.tobytes()
    assert search.read(reports.to_bytes()).payload.tobytes() == reports.payload.tobytes()
    assert local.open_protocol(json.dumps(search.to_dict())) == search
    assert len(search.randomize("bb")) == 1
    with pytest.raises(ForeignReportError):
        local.HeavyHitters(kind="text", size=9, epsilon=1, key="autumn").estimate(reports)
    assert "text of 9 bytes" in repr(search)


def test_a_group_without_reports_is_said() -> None:
    search = local.HeavyHitters(kind="integer", size=32, epsilon=1)
    with pytest.raises(TooFewReportsError, match="collect more"):
        search.estimate(search.randomize([1]))


@pytest.mark.parametrize(
    ("kind", "size", "bad"),
    [
        ("integer", 8, [1, 256]),
        ("integer", 8, [-1]),
        ("integer", 8, [1.5]),
        ("integer", 8, [None]),
        ("integer", 8, ["1"]),
        ("integer", 8, [True]),
        ("integer", 8, np.ma.masked_array([1, 2], mask=[False, True])),
        ("integer", 8, [[1], [1, 2]]),
        ("bits", 3, ["01"]),
        ("bits", 3, ["012"]),
        ("bits", 3, [5]),
        ("text", 3, ["äöü"]),
        ("text", 3, ["a\0b"]),
        ("text", 3, [None, "a"]),
        ("text", 3, [b"a"]),
        ("text", 3, ["a", 1]),
    ],
)
def test_values_outside_of_the_domain_are_refused(kind: str, size: int, bad: list[object]) -> None:
    with pytest.raises(OutsideDomainError, match="larger size"):
        local.HeavyHitters(kind=kind, size=size, epsilon=1).randomize(bad)


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        ({"kind": "word", "size": 3}, "integer, bits, text"),
        ({"kind": "integer", "size": 65}, "at most 64 bits"),
        ({"kind": "text", "size": 0}, "size"),
        ({"kind": "text", "size": 3, "candidates": 10}, "between 64"),
        ({"kind": "text", "size": 3, "most": 0}, "most"),
        ({"kind": "text", "size": 3, "buckets": 1}, "buckets"),
    ],
)
def test_odd_parameters_are_refused(arguments: dict[str, object], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        local.HeavyHitters(epsilon=1, **arguments)  # type: ignore[arg-type]


def test_odd_rates_are_refused() -> None:
    search = local.HeavyHitters(kind="integer", size=8, epsilon=1)
    for rate in (0, 1, 2):
        with pytest.raises(ParameterError, match="false_alarm"):
            search.estimate(search.randomize([1] * 50), false_alarm=rate)


@pytest.mark.parametrize("values", [["", "a", "héé"], pa.chunked_array([["", "a"], ["héé"]]), pa.array(["x", "y"])[1:]])
def test_text_comes_back(values: object) -> None:
    strings = BitStrings.of("text", 5)
    bits = np.unpackbits(strings.encode(values), axis=1, count=40)
    assert strings.decode(bits) == (values if isinstance(values, list) else values.to_pylist())  # type: ignore[attr-defined]


def test_integers_and_bits_come_back() -> None:
    for size in (1, 7, 31, 64):
        numbers = [0, 1, 2**size - 1]
        strings = BitStrings.of("integer", size)
        rows = strings.encode(np.array(numbers, dtype=np.uint64))
        assert strings.decode(np.unpackbits(rows, axis=1, count=size)) == numbers
    bits = BitStrings.of("bits", 19)
    assert bits.decode(np.unpackbits(bits.encode(["01" * 9 + "1"]), axis=1, count=19)) == ["01" * 9 + "1"]


def test_bits_that_no_text_has_are_no_value() -> None:
    strings = BitStrings.of("text", 3)
    rows = np.array([list(b"a\0b"), [0xFF, 0, 0], list(b"ok\0")], dtype=np.uint8)
    assert strings.decode(np.unpackbits(rows, axis=1)) == [None, None, "ok"]


@pytest.mark.parametrize("length", [3, 16, 17, 30, 31, 48, 77])
def test_the_number_of_a_prefix_is_the_sum_of_its_parts(length: int) -> None:
    source = random_source()
    bits = (integers_below(source, 2, 20 * 80) & 1).astype(np.uint8).reshape(20, 80)
    cut = length // 2
    first, second, whole = bits.copy(), bits.copy(), bits.copy()
    first[:, cut:] = 0
    second[:, :cut] = 0
    second[:, length:] = 0
    parts = [prefix_codes(pack_bits(each), length, prime=LARGEST_PRIME, point=12345) for each in (first, second)]
    together = prefix_codes(pack_bits(whole), length, prime=LARGEST_PRIME, point=12345)
    np.testing.assert_array_equal((parts[0] + parts[1]) % LARGEST_PRIME, together)
    if length <= 30:
        assert together.tolist() == [int("".join(map(str, row[:length])), 2) for row in bits]


def test_different_keys_fold_differently() -> None:
    one, two = (local.HeavyHitters(kind="text", size=9, epsilon=1, key=key) for key in "ab")
    assert one.to_dict()["params"]["points"] != two.to_dict()["params"]["points"]
