from __future__ import annotations

import pytest

from cloister.core.confidence import binomial_bounds, binomial_interval


def test_intervals_at_their_ends() -> None:
    assert binomial_interval(0, 10, confidence=0.95)[0] == 0
    assert binomial_interval(10, 10, confidence=0.95)[1] == 1
    assert binomial_interval(5, 10, confidence=0.95) == pytest.approx((0.1871, 0.8129), abs=1e-4)


def test_bounds_of_many_counts_are_the_intervals_of_each() -> None:
    low, high = binomial_bounds([0, 5, 10], 10, alpha=0.05)
    each = [binomial_interval(hits, 10, confidence=0.95) for hits in (0, 5, 10)]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [pytest.approx(pair) for pair in each]
