from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cloister.core.random import ListedRandomSource
from cloister.errors import InternalError
from cloister.local.draws import CERTAIN, Draws, SourceDraws, law_of


def test_law_follows_every_decision() -> None:
    def device(draws: Draws) -> int:
        if draws.chances(CERTAIN // 4, 1)[0]:
            return 9
        return int(draws.below(3, 2).sum())

    law = law_of(device)
    ninth = Fraction(3, 4) / 9
    assert law == {9: Fraction(1, 4), 0: ninth, 1: 2 * ninth, 2: 3 * ninth, 3: 2 * ninth, 4: ninth}


def test_law_leaves_out_what_cannot_happen() -> None:
    thresholds = np.array([0, 2**63], dtype=np.uint64)
    law = law_of(lambda draws: tuple(draws.chances(thresholds, 2).tolist()))
    assert law == {(False, True): Fraction(1, 2), (False, False): Fraction(1, 2)}
    assert law_of(lambda draws: bool(draws.chances(CERTAIN, 1)[0])) == {True: Fraction(1)}


def test_a_device_gives_one_threshold_for_each_toss() -> None:
    with pytest.raises(InternalError, match="another number of thresholds"):
        law_of(lambda draws: bool(draws.chances(np.array([1, 2], dtype=np.uint64), 1)[0]))


def test_source_draws_take_one_word_each() -> None:
    source = ListedRandomSource([2**62, 2**63])
    draws = SourceDraws(source)
    assert draws.chances(2**63, 1).tolist() == [True]
    assert draws.below(4, 1).tolist() == [2]
    assert source.used == 2
