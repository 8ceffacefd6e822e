from __future__ import annotations

from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.core.random import random_source
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps
from cloister.synth._gaussian_mixtures import correlations, covariance_near, davies_bouldin, group_columns, merge_small
from cloister.synth._moments import Box, NoisyMoments, cut_into_boxes, places_in, plan_moments, release_moments
from cloister.synth._numeric import UNIT

RECORDS = np.array(list(product((-1, 0, 1), repeat=2)))


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_syn_10_means_and_covariances_of_a_fixed_cluster_move_as_far_as_stated_and_no_further(size: int) -> None:
    farthest_mean, farthest_entry = Fraction(0), Fraction(0)
    for chosen in combinations_with_replacement(range(len(RECORDS)), size - 1):
        kept = RECORDS[list(chosen)]
        sums = kept.sum(axis=0) + RECORDS
        products = [kept.T @ kept + np.outer(record, record) for record in RECORDS]
        covariances = [size * part - np.outer(total, total) for part, total in zip(products, sums, strict=True)]
        for first, second in combinations(range(len(RECORDS)), 2):
            mean = Fraction(int(np.abs(sums[first] - sums[second]).sum()), size)
            entry = Fraction(int(np.abs(covariances[first] - covariances[second]).max()), size**2)
            farthest_mean, farthest_entry = max(farthest_mean, mean), max(farthest_entry, entry)
    assert farthest_mean == Fraction(2 * 2, size)
    assert farthest_entry <= Fraction(4 * (size - 1), size**2)


@pytest.mark.parametrize("reach", [(3,), (2, 5), (1, 2, 3), (4, 4)])
def test_no_row_of_a_box_moves_counts_sums_and_products_further_than_noise_is_made_for(reach: tuple[int, ...]) -> None:
    pure, gaussian = (plan_moments(NoiseCalibration.of(epsilon=1, delta=d), Fraction(1), reach) for d in (0, 1e-6))
    rows = np.array(list(product(*(range(-step, step + 1) for step in reach))))
    above = np.triu_indices(len(reach))
    products = rows[:, above[0]] * rows[:, above[1]]
    products -= np.where(above[0] == above[1], np.array(reach)[above[0]] ** 2 // 2, 0)
    for moved, laplace, normal in (
        (np.ones((1, 1), int), pure.count, gaussian.count),
        (rows, pure.sums, gaussian.sums),
        (products, pure.products, gaussian.products),
    ):
        assert isinstance(laplace, LaplaceSteps)
        assert isinstance(normal, GaussianSteps)
        assert laplace.sensitivity == np.abs(moved).sum(axis=1).max()
        multiplier = 3 * NoiseCalibration.of(epsilon=1, delta=1e-6).squared_multiplier
        farthest = int((moved**2).sum(axis=1).max())
        assert 0 <= normal.squared_sigma - farthest * multiplier <= 5
    assert sum(noise.epsilon for noise in (pure.count, pure.sums, pure.products)) == 1  # type: ignore[union-attr]


@given(
    lows=st.lists(st.integers(-UNIT, UNIT - 1), min_size=1, max_size=3),
    data=st.data(),
)
def test_moments_are_those_of_the_rows_when_there_is_hardly_any_noise(lows: list[int], data: st.DataObject) -> None:
    highs = [data.draw(st.integers(low, UNIT)) for low in lows]
    box = Box(np.array(lows), np.array(highs))
    cells = st.tuples(*(st.integers(low, high) for low, high in zip(lows, highs, strict=True)))
    rows = np.array(data.draw(st.lists(cells, min_size=1, max_size=6)), dtype=np.float64)
    weights = np.arange(1, len(rows) + 1)
    noise = plan_moments(NoiseCalibration.of(epsilon=10**12), Fraction(1), box.reach)
    found = release_moments(rows, weights, box, noise, random_source())
    each = np.repeat(rows / UNIT, weights, axis=0)
    assert found.count == len(each)
    assert found.sums == pytest.approx(each.sum(axis=0), abs=1e-9)
    assert found.products == pytest.approx(each.T @ each, abs=1e-9)


def test_a_matrix_that_is_no_covariance_becomes_the_nearest_one() -> None:
    noisy = np.array([[0.5, 3.0], [3.0, -0.7]])
    found = covariance_near(noisy, np.zeros(2))
    values = np.linalg.eigvalsh(found)
    assert values == pytest.approx([1e-3, 2.0])
    assert np.array_equal(found, found.T)
    same = np.array([[0.5, 0.1], [0.1, 0.3]])
    assert covariance_near(same, np.zeros(2)) == pytest.approx(same)


def test_columns_that_go_along_or_against_each_other_are_one_group() -> None:
    base = np.sin(np.arange(200) * 1.7) / 2
    other = np.cos(np.arange(200) * 0.37) / 2
    columns = np.column_stack([base, -base, other, other + base / 100])
    moments = NoisyMoments(200.0, columns.sum(axis=0), columns.T @ columns)
    found = correlations(moments)
    assert found[0, 1] == pytest.approx(-1)
    assert group_columns(found, most=3) == ((0, 1), (2, 3))
    assert group_columns(found, most=1) == ((0, 1, 2, 3),)
    assert group_columns(found[:2, :2], most=9) == ((0, 1),)
    distances = 1 - np.abs(found)
    assert davies_bouldin(distances, np.array([1, 1, 2, 2])) < davies_bouldin(distances, np.array([1, 2, 1, 2]))
    assert davies_bouldin(distances, np.array([1, 1, 1, 1])) == float("inf")


def test_correlations_of_nothing_but_noise_are_correlations() -> None:
    found = correlations(NoisyMoments(-3.0, np.array([5.0, -9.0]), np.array([[-4.0, 80.0], [80.0, 2.0]])))
    assert np.abs(found).max() <= 1


def test_boxes_cut_the_columns_that_tell_most_and_cover_every_row() -> None:
    steps = np.column_stack([np.repeat([-3000.0, 3000.0], 500), np.full(1000, 7.0)])
    boxes = cut_into_boxes(
        steps,
        np.ones(1000, np.int64),
        levels=3,
        calibration=NoiseCalibration.of(epsilon=1000),
        share=Fraction(1),
        fewest=50,
        source=random_source(),
    )
    assert [(box.lows[0], box.highs[0]) for box in boxes] == [(-UNIT, -1), (0, UNIT)]
    assert {(box.lows[1], box.highs[1]) for box in boxes} == {(-UNIT, UNIT)}
    assert places_in(steps, boxes).tolist() == [0] * 500 + [1] * 500


@given(st.lists(st.floats(-20, 200), min_size=1, max_size=8), st.integers(1, 100))
def test_small_boxes_are_joined_and_no_rows_are_lost(counts: list[float], fewest: int) -> None:
    edges = np.linspace(-UNIT, UNIT, len(counts) + 1).astype(np.int64)
    boxes = [Box(edges[place : place + 1], edges[place + 1 : place + 2]) for place in range(len(counts))]
    moments = [NoisyMoments(count, np.array([count]), np.array([[count]])) for count in counts]
    found = merge_small(moments, boxes, fewest=fewest)
    assert sum(item.count for item, _ in found) == pytest.approx(sum(counts), abs=1e-9)
    assert len(found) == 1 or all(item.count >= fewest for item, _ in found)
