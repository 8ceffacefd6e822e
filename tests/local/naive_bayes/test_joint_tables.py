from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import integrate, stats

from cloister.local import OptimizedUnaryEncoding
from cloister.local.naive_bayes import _joint_tables as joint_tables
from cloister.local.naive_bayes._joint_tables import Floats, JointTable, class_shares, posterior, project_probabilities


def table(counts: list[list[int]], reports: int, low: float = 0.2, gain: float = 0.5) -> JointTable:
    return JointTable(np.array(counts), reports, low, gain)


def expected(shares: list[list[float]], reports: int, low: float = 0.2, gain: float = 0.5) -> JointTable:
    counts = np.rint(reports * (low + gain * np.array(shares))).astype(np.int64)
    return JointTable(counts, reports, low, gain)


def one_cell(
    found: JointTable, place: tuple[int, int], weight: float, first: float, second: float
) -> tuple[float, float]:
    """The posterior mean and the logarithm of the evidence of one cell, by adaptive integration."""
    count, prior = int(found.counts[place]), stats.beta(first, second)
    peak = float(np.clip(found.shares[place] / weight, 0, 1))
    best = found.low + found.gain * weight * peak

    def joint(theta: float) -> float:
        support = found.low + found.gain * weight * theta
        ratio = count * np.log(support / best) + (found.reports - count) * np.log((1 - support) / (1 - best))
        return float(np.exp(ratio) * prior.pdf(theta))

    points = [peak] if 0 < peak < 1 else None
    total = integrate.quad(joint, 0, 1, points=points, limit=500)[0]
    mean = integrate.quad(lambda theta: theta * joint(theta), 0, 1, points=points, limit=500)[0] / total
    return mean, np.log(total) + count * np.log(best) + (found.reports - count) * np.log1p(-best)


def by_quadrature(found: JointTable, weights: Floats, center: Floats) -> Floats:
    """The same posterior means, one cell and one concentration after the other."""
    means, evidences = [], []
    for size in joint_tables._CONCENTRATIONS:
        cells = {
            (row, column): one_cell(found, (row, column), weight, size * share, size * (1 - share))
            for row, share in enumerate(center)
            for column, weight in enumerate(weights)
        }
        means.append(np.array([mean for mean, _ in cells.values()]).reshape(found.counts.shape))
        evidences.append(sum(evidence for _, evidence in cells.values()))
    belief = np.exp(np.array(evidences) - max(evidences))
    mixed = np.tensordot(belief / belief.sum(), np.array(means), axes=1)
    return np.asarray(mixed / mixed.sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "reports"),
    [([[0.3, 0.1], [0.2, 0.4]], 400), ([[0.3, 0.1], [0.2, 0.4]], 40), ([[0.1, 0.2], [0.3, 0.1], [0.2, 0.1]], 3000)],
)
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_posterior_means_agree_with_adaptive_integration(shares: list[list[float]], reports: int) -> None:
    found = expected(shares, reports)
    weights = np.array(shares).sum(axis=0)
    wanted = by_quadrature(found, weights, joint_tables._value_shares(found))
    assert posterior(found, weights) == pytest.approx(wanted, abs=2e-3)


@settings(deadline=None)
@given(st.data())
def test_conditionals_are_probabilities_whatever_is_reported(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(2, 5)), data.draw(st.integers(2, 4))
    reports = data.draw(st.integers(0, 500))
    counts = data.draw(st.lists(st.integers(0, reports), min_size=rows * columns, max_size=rows * columns))
    low = data.draw(st.floats(0, 0.5))
    gain = data.draw(st.floats(1e-3, 1 - low))
    found = JointTable(np.array(counts).reshape(rows, columns), reports, low, gain)
    shares = np.array(data.draw(st.lists(st.floats(0, 1), min_size=columns, max_size=columns)))
    shares = shares / shares.sum() if shares.sum() > 0 else np.full(columns, 1 / columns)
    for conditional in (posterior(found, shares), project_probabilities(found, smoothing=1e-4)):
        assert (conditional >= 0).all()
        assert conditional.sum(axis=0) == pytest.approx(np.ones(columns))


@settings(deadline=None)
@given(st.permutations(range(4)))
def test_the_order_of_values_does_not_matter(order: list[int]) -> None:
    found = table([[40, 31], [22, 50], [35, 30], [60, 21]], 120)
    moved = JointTable(found.counts[order], found.reports, found.low, found.gain)
    shares = np.array([0.6, 0.4])
    assert posterior(moved, shares) == pytest.approx(posterior(found, shares)[order])
    assert project_probabilities(moved, smoothing=0.01) == pytest.approx(
        project_probabilities(found, smoothing=0.01)[order]
    )


def test_with_many_reports_both_tell_the_truth() -> None:
    shares = np.array([[0.3, 0.1], [0.2, 0.4]])
    found = expected(shares.tolist(), 10**7)
    truth = shares / shares.sum(axis=0)
    assert posterior(found, shares.sum(axis=0)) == pytest.approx(truth, abs=2e-3)
    assert project_probabilities(found, smoothing=0) == pytest.approx(truth, abs=1e-5)


def test_noise_draws_classes_together_and_the_plain_estimate_does_not() -> None:
    protocol = OptimizedUnaryEncoding(domain=4, epsilon=0.5)
    p, q = map(float, protocol.probabilities)
    found = expected([[0.35, 0.15], [0.15, 0.35]], 60, q, p - q)
    shrunk = posterior(found, np.array([0.5, 0.5]))
    plain = project_probabilities(found, smoothing=0)
    assert abs(shrunk[0, 0] - shrunk[0, 1]) < 0.6 * abs(plain[0, 0] - plain[0, 1])


def test_the_more_reports_the_less_is_drawn_together() -> None:
    apart = []
    for reports in (50, 500, 5000, 50000):
        found = posterior(expected([[0.35, 0.15], [0.15, 0.35]], reports, 0.3, 0.2), np.array([0.5, 0.5]))
        apart.append(found[0, 0] - found[0, 1])
    assert apart == sorted(apart)
    assert apart[-1] == pytest.approx(0.4, abs=0.03)


def test_without_reports_all_values_are_equally_likely() -> None:
    empty = table([[0, 0], [0, 0], [0, 0]], 0)
    assert posterior(empty, np.array([0.5, 0.5])) == pytest.approx(np.full((3, 2), 1 / 3))
    assert project_probabilities(empty, smoothing=0) == pytest.approx(np.full((3, 2), 1 / 3))
    assert empty.variance == np.inf


def test_a_class_without_any_share_gets_equal_values() -> None:
    found = project_probabilities(table([[10, 0], [10, 0]], 20, 0.0, 1.0), smoothing=0)
    assert found.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_class_shares_are_pooled_by_precision() -> None:
    exactly, coarsely = expected([[0.7, 0.3]], 10**6, 0.0, 1.0), expected([[0.2, 0.8]], 100, 0.0, 1.0)
    pooled = class_shares([exactly, coarsely], shrunk=False)
    assert pooled == pytest.approx([0.7, 0.3], abs=1e-3)
    assert class_shares([coarsely, table([[0, 0]], 0)], shrunk=False) == pytest.approx([0.2, 0.8])


def test_class_shares_that_may_be_noise_become_equal() -> None:
    noisy = expected([[0.52, 0.48]], 50, 0.4, 0.1)
    assert class_shares([noisy], shrunk=False) == pytest.approx([0.52, 0.48], abs=0.2)
    assert class_shares([noisy], shrunk=True) == pytest.approx([0.5, 0.5])
    sure = expected([[0.9, 0.1]], 10**6, 0.4, 0.1)
    assert class_shares([sure], shrunk=True) == pytest.approx([0.9, 0.1], abs=1e-2)
