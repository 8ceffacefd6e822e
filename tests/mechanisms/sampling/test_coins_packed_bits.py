from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from cloister.core.random import SeededRandomSource, Words, random_source
from cloister.errors import ParameterError, ParameterTypeError
from cloister.mechanisms.sampling import coins
from cloister.mechanisms.sampling.coins import packed_bernoulli
from cloister.testing import check_independent, distributions, statistics
from tests.support.words import PreparedWords

LANES = 64
EIGHTH = 2**61


class _Counting:
    """Passes the words of another source on, and remembers how many were asked for at a time."""

    is_secure = False

    def __init__(self, source: PreparedWords | SeededRandomSource) -> None:
        self.source, self.asked = source, list[int]()

    def random_bytes(self, count: int) -> bytes:
        return self.source.random_bytes(count)

    def words(self, count: int) -> Words:
        self.asked.append(count)
        return self.source.words(count)


def _unpack(packed: NDArray[np.uint8], columns: int) -> list[list[int]]:
    rows: list[list[int]] = np.unpackbits(packed, axis=1, count=columns, bitorder="little").tolist()
    return rows


def _bit_sliced(numbers: list[int], digits: int) -> list[int]:
    """Return words of which the first holds the most significant digit of each number."""
    return [
        sum((number >> (digits - 1 - place) & 1) << lane for lane, number in enumerate(numbers))
        for place in range(digits)
    ]


@pytest.mark.parametrize("eighths", range(9))
def test_all_three_digit_numbers_are_compared_with_all_three_digit_thresholds(eighths: int) -> None:
    source = PreparedWords(*_bit_sliced(list(range(8)), 3))
    packed = packed_bernoulli(source, eighths * EIGHTH, 1, 8)
    assert _unpack(packed, 8) == [[int(number < eighths) for number in range(8)]]


_WORD = st.integers(0, 2**64 - 1)


@st.composite
def _thresholds_and_numbers(draw: st.DrawFn) -> tuple[int, list[int]]:
    """Draw a threshold and 64 numbers, many of which begin like the threshold or equal it."""
    threshold = draw(_WORD | st.integers(0, 255).map(lambda digits: digits << 56))
    common = draw(st.lists(st.integers(0, 64), min_size=LANES, max_size=LANES))
    others = draw(st.lists(_WORD, min_size=LANES, max_size=LANES))
    numbers = [
        (threshold >> (64 - same) << (64 - same)) | (other & ((1 << (64 - same)) - 1))
        for same, other in zip(common, others, strict=True)
    ]
    return threshold, numbers


@given(_thresholds_and_numbers())
def test_a_bit_says_whether_a_number_is_below_the_threshold(drawn: tuple[int, list[int]]) -> None:
    threshold, numbers = drawn
    packed = packed_bernoulli(PreparedWords(*_bit_sliced(numbers, 64)), threshold, 1, LANES)
    assert _unpack(packed, LANES) == [[int(number < threshold) for number in numbers]]


def test_a_number_that_equals_the_threshold_is_not_below() -> None:
    threshold = 2**64 - 1
    source = _Counting(PreparedWords(*[2**64 - 1] * 64))
    assert _unpack(packed_bernoulli(source, threshold, 1, LANES), LANES) == [[0] * LANES]
    assert source.asked == [1] * 64


def _reference(source: PreparedWords, threshold: int, words: int, *, block: int, slice_: int, head: int) -> list[int]:
    """The obvious version: lane after lane, with the words in the same order."""
    digits = f"{threshold:064b}".rstrip("0")
    below, undecided = [0] * words, [2**64 - 1] * words

    def compare(digit: str, places: list[int]) -> None:
        for place, drawn in zip(places, source.words(len(places)).tolist(), strict=True):
            for lane in range(LANES):
                mask, bit = 1 << lane, drawn >> lane & 1
                if undecided[place] & mask and bit != int(digit):
                    undecided[place] ^= mask
                    below[place] |= mask * (bit < int(digit))

    for first in range(0, words, block):
        inside = range(first, min(first + block, words))
        for start in inside[::slice_]:
            for digit in digits[:head]:
                compare(digit, [place for place in inside if start <= place < start + slice_])
        for digit in digits[head:]:
            compare(digit, [place for place in inside if undecided[place]])
    return below


@given(_WORD, st.integers(0, 12), st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 4))
def test_blocks_agree_with_the_obvious_version(threshold: int, words: int, seed: int, slices: int, slice_: int) -> None:
    prepared = SeededRandomSource(seed).words(64 * 12).tolist()
    block = slices * slice_
    with mock.patch.multiple(coins, _BLOCK=block, _SLICE=slice_, _HEAD=3):
        packed = packed_bernoulli(PreparedWords(*prepared), threshold, words, LANES)
    expected = _reference(PreparedWords(*prepared), threshold, words, block=block, slice_=slice_, head=3)
    assert packed.reshape(-1).view(np.uint64).tolist() == expected


def test_later_words_are_drawn_only_where_a_number_is_undecided() -> None:
    source = _Counting(SeededRandomSource(1))
    packed_bernoulli(source, 2**64 // 3, 4000, LANES)
    assert source.asked[:8] == [4000] * 8
    assert sorted(source.asked[8:], reverse=True) == source.asked[8:]
    assert sum(source.asked) < 9 * 4000


def test_digits_behind_the_last_one_of_the_threshold_are_not_drawn() -> None:
    source = _Counting(SeededRandomSource(1))
    packed_bernoulli(source, 3 * 2**62, 10, LANES)
    assert source.asked == [10, 10]


@pytest.mark.parametrize(("threshold", "byte"), [(0, 0), (2**64, 255)])
def test_certain_bits_need_no_randomness(threshold: int, byte: int) -> None:
    source = _Counting(PreparedWords())
    assert packed_bernoulli(source, threshold, 3, 16).tolist() == [[byte, byte]] * 3
    assert source.asked == []


@pytest.mark.parametrize(("columns", "last"), [(1, 1), (3, 7), (8, 255), (9, 1), (20, 15)])
def test_bits_behind_the_last_column_are_zero(columns: int, last: int) -> None:
    packed = packed_bernoulli(PreparedWords(), 2**64, 5, columns)
    assert packed.shape == (5, -(-columns // 8))
    assert packed[:, -1].tolist() == [last] * 5
    assert packed[:, :-1].tolist() == [[255] * (packed.shape[1] - 1)] * 5


def test_no_rows() -> None:
    assert packed_bernoulli(random_source(), 2**62 + 1, 0, 9).shape == (0, 2)


@pytest.mark.parametrize("bad", [-1, 2**64 + 1])
def test_thresholds_are_probabilities(bad: int) -> None:
    with pytest.raises(ParameterError, match="2\\*\\*64|at least 0"):
        packed_bernoulli(random_source(), bad, 1, 1)


def test_thresholds_are_whole_and_rows_have_columns() -> None:
    with pytest.raises(ParameterTypeError, match="give threshold as an integer"):
        packed_bernoulli(random_source(), 0.5, 1, 1)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="columns=1"):
        packed_bernoulli(random_source(), 1, 1, 0)
    with pytest.raises(ParameterError, match="rows must be at least 0"):
        packed_bernoulli(random_source(), 1, -1, 1)


def _byte_law(probability: float) -> distributions.Distribution:
    ones = [byte.bit_count() for byte in range(256)]
    return distributions.categorical(
        {byte: probability ** ones[byte] * (1 - probability) ** (8 - ones[byte]) for byte in range(256)}
    )


@pytest.mark.statistical
@pytest.mark.parametrize("probability", [0.03, 0.2689414213699951, 0.5, 0.9])
def test_bits_follow_the_threshold_and_are_independent(probability: float) -> None:
    threshold = int(probability * 2**64) + 12345
    packed = packed_bernoulli(random_source(), threshold, 100_000, 32)
    sample = packed.reshape(-1)
    statistics.check_distribution(sample, _byte_law(probability))
    for wrong in (probability * 0.9, 1 - (1 - probability) * 0.9):
        assert statistics.fit(sample, _byte_law(wrong)).p_value < statistics.FALSE_ALARM
    check_independent(packed)
    check_independent(packed.reshape(-1, 8)[:, ::4])
