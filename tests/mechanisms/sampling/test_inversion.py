from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.core import exact
from cloister.mechanisms.sampling.coins import toss_exponentials
from cloister.mechanisms.sampling.inversion import (
    FixedPointInterval,
    Inversion,
    bernoulli,
    draw_exponential_weights,
    search,
)
from tests.support.words import PreparedWords

probabilities = st.fractions(min_value=0, max_value=1, max_denominator=1000)


@given(probabilities, probabilities, st.integers(min_value=1, max_value=100))
def test_interval_arithmetic_encloses(first: Fraction, second: Fraction, bits: int) -> None:
    x, y = FixedPointInterval.of(first, bits), FixedPointInterval.of(second, bits)
    for interval, true in ((x, first), (x * y, first * second), (x + y, first + second), (x.one_minus(), 1 - first)):
        assert interval.low <= true * 2**bits <= interval.high


@given(probabilities, st.fractions(min_value=Fraction(1, 10), max_value=1, max_denominator=1000))
def test_interval_quotients_enclose(first: Fraction, second: Fraction) -> None:
    quotient = FixedPointInterval.of(first, 64).over(FixedPointInterval.of(second, 64))
    assert quotient.low <= first / second * 2**64 <= quotient.high


@given(st.fractions(min_value=0, max_value=60, max_denominator=1000))
def test_interval_exponentials_enclose(exponent: Fraction) -> None:
    interval = FixedPointInterval.exp_of_minus(exponent, 128)
    low, high = exact.exp_bounds(-exponent, digits=80)
    assert interval.low <= high * 2**128
    assert low * 2**128 <= interval.high
    assert interval.high - interval.low <= 2


@given(st.integers(min_value=0, max_value=2**64 - 1), st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4))
def test_a_search_finds_what_a_table_finds(word: int, further: list[int]) -> None:
    thirds = [Fraction(k, 3) for k in (1, 2)]
    found = search(
        PreparedWords(word, *further), lambda k, bits: FixedPointInterval.of([*thirds, Fraction(1)][k], bits), last=2
    )
    assert found == _thresholds(*thirds).draw(PreparedWords(word, *further), 1)[0]


@pytest.mark.parametrize(("words", "expected"), [((2**64 // 3, 0), 0), ((2**64 // 3, 2**64 - 1), 1)])
def test_a_search_takes_further_words_when_it_must(words: tuple[int, ...], expected: int) -> None:
    assert (
        search(PreparedWords(*words), lambda k, bits: FixedPointInterval.of(Fraction(k + 1, 3), bits), last=2)
        == expected
    )


def test_a_floor_is_told_only_when_it_is_certain() -> None:
    assert FixedPointInterval(7, 9, 3).floor_at(0) is None or FixedPointInterval(7, 9, 3).floor_at(0) == 0
    assert FixedPointInterval(3, 5, 3).floor_at(1) is None
    assert FixedPointInterval(4, 5, 3).floor_at(1) == 1


def _thresholds(*values: Fraction) -> Inversion:
    return Inversion(lambda bits: [FixedPointInterval.of(value, bits) for value in values])


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@given(st.integers(min_value=0, max_value=2**64 - 1), st.lists(st.integers(0, 2**64 - 1), max_size=3))
def test_a_draw_counts_the_thresholds_below_the_uniform_number(word: int, further: list[int]) -> None:
    draw = _thresholds(THIRD, HALF).draw(PreparedWords(word, *further), 1)[0]
    uniform = Fraction(word, 2**64) + sum(Fraction(w, 2 ** (64 * (i + 2))) for i, w in enumerate(further))
    assert draw == (uniform >= THIRD) + (uniform >= HALF)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((2**64 // 3, 2**64 // 3 - 1), 0),
        ((2**64 // 3, 2**64 // 3 + 1), 1),
        ((2**64 // 3, 2**64 // 3, 2**64 // 3, 0), 0),
        ((2**64 // 3, 2**64 // 3, 2**64 // 3, 2**64 - 1), 1),
        ((2**64 - 1, 0), 2),
        ((2**64 - 1, 2**64 - 1, 5), 2),
    ],
)
def test_a_shared_cell_is_decided_by_further_words(words: tuple[int, ...], expected: int) -> None:
    assert _thresholds(THIRD, HALF).draw(PreparedWords(*words), 1)[0] == expected


def test_precision_grows_until_the_floors_are_certain() -> None:
    asked: list[int] = []

    def vague_at_first(bits: int) -> list[FixedPointInterval]:
        asked.append(bits)
        middle = 2 ** (bits - 1)
        return (
            [FixedPointInterval(middle - 1, middle, bits)] if len(asked) == 1 else [FixedPointInterval.of(HALF, bits)]
        )

    assert Inversion(vague_at_first).draw(PreparedWords(2**63 + 1, 2**63 - 1), 2).tolist() == [1, 0]
    assert asked == [160, 256]


def test_no_thresholds_give_zero() -> None:
    assert _thresholds().draw(PreparedWords(5, 2**64 - 1, 3), 2).tolist() == [0, 0]


def test_an_infinite_tail_is_reached_by_further_words() -> None:
    from cloister.mechanisms.sampling.discrete_noise import geometric

    deep = geometric(Fraction(1)).draw(PreparedWords(2**64 - 1, 2**64 - 1, 0), 1)[0]
    assert deep == 88  # the largest k with exp(-k) > 2**-128


@pytest.mark.parametrize(("probability", "expected"), [(Fraction(0), 0), (Fraction(1), 1)])
def test_certain_coins(probability: Fraction, expected: int) -> None:
    coin = bernoulli(lambda bits: FixedPointInterval.of(probability, bits))
    assert coin.draw(PreparedWords(0, 1, 2**63, 2**64 - 1, 7), 4).tolist() == [expected] * 4


def test_a_very_rare_coin_needs_no_endless_precision() -> None:
    coin = bernoulli(lambda bits: FixedPointInterval.exp_of_minus(Fraction(50_000), bits))
    assert coin.draw(PreparedWords(0, 2**63, 2**64 - 2), 3).tolist() == [0, 0, 0]


def test_close_tosses_are_decided_exactly() -> None:
    cell = FixedPointInterval.exp_of_minus(Fraction(1), 64).low
    finer = FixedPointInterval.exp_of_minus(Fraction(1), 128).low - (cell << 64)
    asked: list[int] = []

    def exactly(index: int, bits: int) -> FixedPointInterval:
        asked.append(index)
        return FixedPointInterval.exp_of_minus(Fraction(1), bits)

    gammas = np.array([1.0, 1.0, 1.0, 1.0, 1.0])
    source = PreparedWords(cell - 5, cell + 5, cell, cell, 2**63, finer - 2, finer + 2)
    assert toss_exponentials(source, gammas, exactly).tolist() == [True, False, True, False, False]
    assert set(asked) == {0, 1, 2, 3}


def test_a_categorical_draw_near_a_boundary_is_decided_exactly() -> None:
    scores, rate = np.array([0.0, 1.0, 0.0]), Fraction(1)
    low, high = exact.exp_bounds(Fraction(-1))
    boundary = int(low / (1 + 2 * high) * 2**64)
    draws = [draw_exponential_weights(PreparedWords(boundary + shift, 0), scores, rate) for shift in (-9, 9)]
    assert draws == [0, 1]


def test_a_boundary_at_exactly_one_half_is_decided() -> None:
    scores, rate = np.array([0.0, -1.0, -1.0, 0.0]), Fraction(1)
    draws = [draw_exponential_weights(PreparedWords(2**63 + shift, 1), scores, rate) for shift in (-5, 0, 5)]
    assert draws == [1, 2, 2]


def test_a_single_category_is_certain() -> None:
    assert draw_exponential_weights(PreparedWords(2**63), np.array([3.0]), Fraction(1)) == 0


def test_multiplicities_weigh_like_so_many_candidates() -> None:
    """Weights 1, 3/e, 1/e as three runs; every word falls where it falls among the five candidates written out."""
    written_out, runs = np.array([0.0, -1.0, -1.0, -1.0, -1.0]), np.array([0.0, -1.0, -1.0])
    times, rate = np.array([1, 3, 1]), Fraction(1)
    for word in range(0, 2**64, 2**58 - 1):
        single = draw_exponential_weights(PreparedWords(word), written_out, rate)
        assert (
            draw_exponential_weights(PreparedWords(word), runs, rate, multiplicities=times) == [0, 1, 1, 1, 2][single]
        )


def test_multiplicities_near_a_boundary_are_decided_exactly() -> None:
    scores, times, rate = np.array([0.0, 1.0, 0.0]), np.array([2**61, 1, 5]), Fraction(40)
    low, high = exact.exp_bounds(Fraction(-40))
    for index in (0, 1):
        parts = [2**61 * low, 1, 5 * low]
        boundary = int(sum(parts[: index + 1]) / (1 + (2**61 + 5) * high) * 2**64)
        draws = [
            draw_exponential_weights(PreparedWords(boundary + shift, 0), scores, rate, multiplicities=times)
            for shift in (-9, 9)
        ]
        assert draws == [index, index + 1]
