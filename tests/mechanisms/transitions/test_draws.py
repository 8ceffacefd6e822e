from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from cloister.core.random import random_source
from cloister.errors import ParameterError
from cloister.mechanisms.transitions import draw_codes, pick_codes, quantize
from cloister.testing import check_distribution, distributions, statistics
from tests.mechanisms.transitions.strategies import MATRIX, matrices

N = 50_000


def _law(row: Any) -> Any:
    return distributions.categorical({place: float(entry) for place, entry in enumerate(row)})


@pytest.mark.statistical
def test_draws_follow_the_matrix_and_refute_another() -> None:
    codes = np.tile(np.arange(3), N)
    drawn = draw_codes(codes, MATRIX, random_source(None))
    for true in range(3):
        check_distribution(drawn[codes == true], _law(MATRIX[true]))
        assert statistics.fit(drawn[codes == true], _law(MATRIX[(true + 1) % 3])).p_value < 1e-9


@pytest.mark.statistical
def test_picks_follow_the_matrix_and_refute_another() -> None:
    codes = np.tile(np.arange(3), N)
    picked = pick_codes(codes, quantize(MATRIX), random_source(None).words(len(codes)))
    for true in range(3):
        check_distribution(picked[codes == true], _law(MATRIX[true]))
        assert statistics.fit(picked[codes == true], _law(MATRIX[(true + 1) % 3])).p_value < 1e-9


@given(matrices(least=0))
def test_a_pick_counts_the_thresholds_that_are_not_above_the_word(matrix: Any) -> None:
    thresholds = quantize(matrix)
    for true, row in enumerate(thresholds):
        words = sorted({0, 2**64 - 1, *(word for bound in row for word in (bound - 1, bound) if 0 <= word < 2**64)})
        picked = pick_codes(np.full(len(words), true), thresholds, np.array(words, dtype=np.uint64))
        assert picked.tolist() == [sum(bound <= word for bound in row) for word in words]
        assert all(matrix[true][code] > 0 for code in picked.tolist())


def test_certain_draws_are_where_their_values_were() -> None:
    turn = (
        (Fraction(0), Fraction(1), Fraction(0)),
        (Fraction(0), Fraction(0), Fraction(1)),
        (Fraction(1),) + (Fraction(0),) * 2,
    )
    codes = [2, 0, 1, 1, 0, 2, 2]
    assert draw_codes(codes, turn, random_source(None)).tolist() == [0, 1, 2, 2, 1, 0, 0]
    words = random_source(None).words(len(codes))
    assert pick_codes(codes, quantize(turn), words).tolist() == [0, 1, 2, 2, 1, 0, 0]


def test_nothing_gives_nothing() -> None:
    assert draw_codes([], MATRIX, random_source(None)).tolist() == []
    assert pick_codes([], quantize(MATRIX), random_source(None).words(0)).tolist() == []


@pytest.mark.parametrize("codes", [[-1], [3], [0.5], [[0]], ["a"]])
def test_what_is_no_category_is_refused_and_not_shown(codes: Any) -> None:
    with pytest.raises(ParameterError, match="from 0 to 2"):
        draw_codes(codes, MATRIX, random_source(None))


@pytest.mark.parametrize("words", [np.zeros(2, dtype=np.uint64), np.zeros(1, dtype=np.int64)])
def test_each_value_needs_its_word(words: Any) -> None:
    with pytest.raises(ParameterError, match="source.words"):
        pick_codes([0], quantize(MATRIX), words)
