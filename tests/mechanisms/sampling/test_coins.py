from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from cloister.core.random import random_source
from cloister.mechanisms.sampling.coins import toss_coins
from cloister.testing import check_independent, distributions, statistics


class _Bytes:
    is_secure = False

    def __init__(self, prepared: bytes) -> None:
        self.left = prepared

    def random_bytes(self, count: int) -> bytes:
        taken, self.left = self.left[:count], self.left[count:]
        return taken + bytes(count - len(taken))


@given(st.fractions(0, 1, max_denominator=10**6), st.binary(min_size=1, max_size=6))
def test_a_toss_compares_a_uniform_number_with_the_probability(probability: Fraction, drawn: bytes) -> None:
    uniform = Fraction(int.from_bytes(drawn + bytes(8)), 256 ** (len(drawn) + 8))
    assert toss_coins(_Bytes(drawn), probability, 1).tolist() == [uniform < probability]


def test_undecided_tosses_draw_further_bytes_in_order() -> None:
    third = Fraction(1, 3)  # 0x55 0x55 ...
    source = _Bytes(bytes([0x55, 0x00, 0x55, 0xFF, 0x55, 0x54, 0x55, 0x56, 0x54]))
    assert toss_coins(source, third, 5).tolist() == [True, True, True, False, False]
    assert source.left == b""


@pytest.mark.parametrize(("probability", "expected"), [(Fraction(0), False), (Fraction(1), True)])
def test_certain_coins(probability: Fraction, expected: bool) -> None:
    assert toss_coins(random_source(), probability, 1000).tolist() == [expected] * 1000


def test_no_tosses() -> None:
    assert toss_coins(random_source(), Fraction(1, 3), 0).tolist() == []


@pytest.mark.statistical
@pytest.mark.parametrize("probability", [Fraction(1, 10), Fraction(1, 3), Fraction(9, 10)])
def test_tosses_follow_the_probability_and_are_independent(probability: Fraction) -> None:
    tosses = toss_coins(random_source(), probability, 6 * statistics.SAMPLES).astype(int)
    statistics.check_distribution(tosses, distributions.categorical({1: float(probability), 0: float(1 - probability)}))
    for wrong in (0.9, 1.1):
        chance = float(probability) * wrong if wrong < 1 else 1 - float(1 - probability) * 0.9
        law = distributions.categorical({1: chance, 0: 1 - chance})
        assert statistics.fit(tosses, law).p_value < 1e-9
    check_independent(tosses[: 3 * (tosses.size // 3)].reshape(-1, 3))
