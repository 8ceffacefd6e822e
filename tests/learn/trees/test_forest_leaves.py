from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from cloister.learn.trees.forest import leaf_probabilities


def test_large_leaves_have_the_shares_of_their_classes() -> None:
    noisy = np.array([[9000.0, 1000.0], [1000.0, 3000.0]])
    assert np.allclose(leaf_probabilities(noisy, deviation=1.0), [[0.9, 0.1], [0.25, 0.75]], atol=0.001)


def test_empty_leaves_believe_their_parent() -> None:
    noisy = np.array([[9000.0, 1000.0], [-3.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    probabilities = leaf_probabilities(noisy, deviation=5.0)
    assert probabilities[1, 0] > 0.8
    assert np.allclose(probabilities[2], probabilities[3])
    assert probabilities[2, 0] > 0.8


def test_noise_alone_says_nothing() -> None:
    assert np.allclose(leaf_probabilities(np.full((4, 3), -5.0), deviation=100.0), 1 / 3)


@given(
    st.lists(st.lists(st.integers(-(10**6), 10**9), min_size=3, max_size=3), min_size=4, max_size=4),
    st.floats(0, 1e9),
)
def test_probabilities_add_up(noisy: list[list[int]], deviation: float) -> None:
    probabilities = leaf_probabilities(np.array(noisy, dtype=np.float64), deviation=deviation)
    assert (probabilities >= 0).all()
    assert np.allclose(probabilities.sum(axis=1), 1)
