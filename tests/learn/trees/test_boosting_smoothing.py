from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from cloister.learn.trees.boosting import FeatureEffect, onto_total, prior_precision


def _observed(sums, *, is_ordered=False, deviation=0.001, doubt=0.0):
    sums = np.array(sums, dtype=np.float64)
    effect = FeatureEffect(prior_precision(len(sums), is_ordered=is_ordered, spread=1.0, roughness=3.0))
    effect.observe(sums, counts=np.full(len(sums), 1000.0), doubt=doubt, curvature=0.25, deviation=deviation)
    return effect.value


def test_clear_sums_are_believed() -> None:
    assert np.allclose(_observed([250.0, -250.0, 0.0]), [1, -1, 0], atol=0.01)


def test_noise_is_not_believed() -> None:
    assert np.abs(_observed([250.0, -250.0], deviation=1e6)).max() < 1e-3
    assert np.abs(_observed([250.0, -250.0], doubt=1e6)).max() < 1e-2


def test_bins_of_a_number_learn_from_each_other() -> None:
    lonely, shared = (_observed([300.0, 0.0, 300.0], is_ordered=kind, deviation=500.0) for kind in (False, True))
    assert lonely[1] == 0
    assert shared[1] > 0.1


def test_later_observations_are_averaged_in() -> None:
    effect = FeatureEffect(prior_precision(1, is_ordered=False, spread=10.0, roughness=3.0))
    for _ in range(50):
        effect.observe(np.array([250.0]), counts=np.array([1000.0]), doubt=0.0, curvature=0.25, deviation=1e-3)
    assert effect.value[0] == 12.0  # where effects end


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.floats(1e-3, 1e6))
def test_counts_are_made_to_add_up(noisy: list[float], total: float) -> None:
    counts = onto_total(np.array(noisy), total)
    assert (counts >= 0).all()
    assert np.isclose(counts.sum(), total, rtol=1e-6, atol=1e-6)
    assert (np.diff(counts[np.argsort(noisy)]) >= -1e-6).all()
