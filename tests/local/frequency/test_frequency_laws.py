"""What every frequency protocol must do beyond the laws: unbiased estimates, with the variance that theory says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from cloister import local
from cloister.core.random import integers_below, random_source
from cloister.local.frequency.support import FrequencyProtocol, SupportProtocol
from cloister.testing.local_laws import device_law

RUNS = 200
BY_DRAWS: dict[str, Any] = {
    "randomized_response": (local.RandomizedResponse, 2),
    "direct_encoding": (local.DirectEncoding, 5),
    "symmetric_unary_encoding": (local.SymmetricUnaryEncoding, 4),
    "optimized_unary_encoding": (local.OptimizedUnaryEncoding, 4),
    "hadamard_response": (local.HadamardResponse, 5),
    "subset_selection": (local.SubsetSelection, 5),
}
ALL = {
    **{name: kind for name, (kind, _) in BY_DRAWS.items()},
    "optimized_local_hashing": local.OptimizedLocalHashing,
    "summation_histogram_encoding": local.SummationHistogramEncoding,
    "threshold_histogram_encoding": local.ThresholdHistogramEncoding,
}


def opened(name: str, size: int = 5, epsilon: object = 1) -> FrequencyProtocol:
    return ALL[name](domain=2 if name == "randomized_response" else size, epsilon=epsilon)


@pytest.mark.parametrize("name", [name for name in BY_DRAWS if name != "randomized_response"])
def test_the_law_supports_values_with_the_stated_probabilities(name: str) -> None:
    kind, size = BY_DRAWS[name]
    protocol = kind(domain=size, epsilon=1)
    assert_supports(protocol, size)


def test_hashing_supports_values_with_the_stated_probabilities() -> None:
    assert_supports(local.OptimizedLocalHashing(domain=3, epsilon=1, buckets=2), 3)


def assert_supports(protocol: SupportProtocol, size: int) -> None:
    p, q = protocol.probabilities
    for code in range(size):
        support = [Fraction(0)] * size
        for output, probability in device_law(protocol, code).items():
            counts = protocol.support_counts(np.frombuffer(output, protocol.output_space.dtype))
            support = [total + probability * int(count) for total, count in zip(support, counts, strict=True)]
        assert support == [p if value == code else q for value in range(size)]


@pytest.mark.statistical
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_estimates_are_unbiased_with_the_variance_of_the_theory(name: str, epsilon: float) -> None:
    """LDP-06."""
    protocol = opened(name, 12, epsilon)
    size = len(protocol.domain)
    codes = np.sort(integers_below(random_source(), size, 2000) // 2)
    truth = np.bincount(codes, minlength=size)
    runs = np.array([np.asarray(protocol.estimate(protocol.randomize(codes)).counts) for _ in range(RUNS)])
    variances = np.array([2000 * protocol.variance(share) for share in truth / 2000])
    z = (runs - truth) / np.sqrt(variances)
    assert np.abs(z.mean(axis=0)).max() * math.sqrt(RUNS) < 6.6
    # Cells of one run are correlated at worst completely: so many independent squares.
    low, high = chi2.interval(1 - 1e-9, RUNS)
    assert low < RUNS * (z**2).mean() < high


@pytest.mark.parametrize("name", ALL)
def test_a_value_that_nobody_reports_keeps_its_place(name: str) -> None:
    """LDP-18."""
    protocol = ALL[name](domain=["b", "a"] if name == "randomized_response" else ["b", "z", "a", "c"], epsilon=4)
    estimate = protocol.estimate(protocol.randomize(["a"] * 3000))
    assert list(estimate.counts) == list(protocol.domain.values)
    assert max(estimate.counts, key=estimate.counts.get) == "a"  # type: ignore[arg-type]
    assert estimate.counts["b"] < 1500
