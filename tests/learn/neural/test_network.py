"""Clipped gradients in whole numbers: right, bounded, and the same in any company."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.learn.neural._network import (
    ERROR_BITS,
    NORM_BITS,
    ClassHead,
    Network,
    NumberHead,
    TwoClassHead,
    exponentials,
    input_scale,
    input_steps,
    sigmoids,
    tanh_steps,
    with_constant,
)
from tests.learn.neural.reference import NETWORKS, gradient, problem, uniform

STEPS = 2**NORM_BITS
CASES = pytest.mark.parametrize("network", NETWORKS.values(), ids=list(NETWORKS))


def one_by_one(network: Network, parameters: np.ndarray, inputs: np.ndarray, target: np.ndarray, clip: float) -> list:
    """What each row adds, asked for alone."""
    one = np.ones(1)
    return [
        network.clipped_sum(parameters, inputs[i : i + 1], target[i : i + 1], one, clip=clip)
        for i in range(len(inputs))
    ]


@CASES
def test_gradients_agree_with_finite_differences(network: Network) -> None:
    parameters, inputs, target = problem(network, 8, size=0.5)
    for place, alone in enumerate(one_by_one(network, parameters, inputs, target, clip=64.0)):
        found = alone * (64.0 / STEPS)
        assert np.allclose(found, gradient(network, parameters, inputs[place], target[place]), atol=4e-3)


@CASES
def test_long_gradients_are_cut_to_the_clip_norm_and_keep_their_direction(network: Network) -> None:
    parameters, inputs, target = problem(network, 8)
    long = [row * (64.0 / STEPS) for row in one_by_one(network, parameters, inputs, target, clip=64.0)]
    for whole, short in zip(long, one_by_one(network, parameters, inputs, target, clip=0.01), strict=True):
        size = float(np.linalg.norm(whole))
        assert np.allclose(short * (0.01 / STEPS), whole * min(1.0, 0.01 / size), atol=1e-5)


@CASES
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 40.0, 1e4]), st.sampled_from([1e-310, 1e-3, 0.3, 1.0, 1e308]))
def test_no_row_adds_more_than_the_norm(network: Network, seed: int, size: float, clip: float) -> None:
    parameters, inputs, target = problem(network, 4, seed=seed, size=size)
    for alone in one_by_one(network, parameters, inputs, target, clip=clip):
        assert sum(int(item) ** 2 for item in alone) <= STEPS**2


@CASES
def test_no_row_adds_more_than_the_norm_where_noise_has_driven_parameters_away(network: Network) -> None:
    parameters, inputs, target = problem(network, 4)
    for bad in (np.nan, np.inf, -np.inf):
        parameters[::2] = bad
        for alone in one_by_one(network, parameters, inputs, target, clip=1.0):
            assert sum(int(item) ** 2 for item in alone) <= STEPS**2


def test_a_row_without_errors_adds_nothing_whatever_the_clip_norm_is() -> None:
    network, certain = Network(1, (), TwoClassHead()), np.array([0.0, 32.0])
    found = network.clipped_sum(certain, np.full((1, 2), 4096.0), np.array([1]), np.ones(1), clip=1e-310)
    assert found.tolist() == [0, 0]


@CASES
@pytest.mark.parametrize("size", [1.5, 1e4])
def test_a_row_adds_the_same_in_any_company(network: Network, size: float) -> None:
    parameters, inputs, target = problem(network, 67, size=size)
    alone = np.sum(one_by_one(network, parameters, inputs, target, clip=0.7), axis=0)
    ones = np.ones(len(inputs))
    assert (network.clipped_sum(parameters, inputs, target, ones, clip=0.7) == alone).all()
    order = np.argsort(uniform(9, len(inputs)))
    assert (network.clipped_sum(parameters, inputs[order], target[order], ones, clip=0.7) == alone).all()
    twice = network.clipped_sum(parameters, inputs, target, 2 * ones, clip=0.7)
    assert (twice == 2 * alone).all()


def test_many_rows_are_added_in_parts_without_a_difference() -> None:
    network = NETWORKS["tanh"]
    parameters, inputs, target = problem(network, 5000)
    whole = network.clipped_sum(parameters, inputs, target, np.ones(5000), clip=1.0)
    parts = [
        network.clipped_sum(parameters, inputs[i::7], target[i::7], np.ones(len(inputs[i::7])), clip=1.0)
        for i in range(7)
    ]
    assert (whole == np.sum(parts, axis=0)).all()
    often = network.clipped_sum(parameters, inputs[:2048], target[:2048], np.full(2048, 4096.0), clip=1.0)
    assert (
        often == 4096 * network.clipped_sum(parameters, inputs[:2048], target[:2048], np.ones(2048), clip=1.0)
    ).all()


def test_an_empty_sample_adds_nothing() -> None:
    network = NETWORKS["relu"]
    parameters, inputs, target = problem(network, 4)
    assert not network.clipped_sum(parameters, inputs[:0], target[:0], np.ones(0), clip=1.0).any()


def test_inputs_are_put_between_their_bounds() -> None:
    lows, highs = np.array([10.0, -4.0, -3.0]), np.array([20.0, 2.0, -1.0])
    assert [part.tolist() for part in input_scale(lows, highs)] == [[10, 0, -3], [10, 4, 2]]
    rows = input_steps(np.array([[15.0, 2.0, -3.0], [99.0, -99.0, 0.0]]), lows, highs)
    assert rows.tolist() == [[2048, 2048, 0, 4096], [4096, -4096, 4096, 4096]]
    assert with_constant(np.zeros((0, 3))).shape == (0, 4)


def test_shapes() -> None:
    network = Network(3, (5, 2), ClassHead(4))
    assert network.shapes == ((4, 5), (6, 2), (3, 4))
    assert network.size == 20 + 12 + 12
    assert [layer.shape for layer in network.layers(np.zeros(network.size))] == [(4, 5), (6, 2), (3, 4)]
    assert max(abs(part).max() for part in network.steps_of(np.full(network.size, 1e9))) == 2**23


def test_tables_are_functions_and_saturate() -> None:
    places = np.array([0.0, 1024.0, -1024.0, 1e9, -1e9])
    assert np.allclose(tanh_steps(places) / 4096, np.tanh([0, 1, -1, 8, -8]), atol=2e-4)
    assert np.allclose(sigmoids(places), 1 / (1 + np.exp([0, -1, 1, -32, 32])))
    assert exponentials(places).tolist()[:3] == [2**30, 2**30, round(2**30 / math.e)]


def test_heads_say_what_scores_mean() -> None:
    scores = np.array([[1024.0], [-2048.0]])
    pairs = TwoClassHead().predictions(scores)
    assert np.allclose(pairs.sum(axis=1), 1)
    assert pairs[0, 1] == pytest.approx(1 / (1 + math.exp(-1)))
    many = ClassHead(3).predictions(np.array([[0.0, 1024.0, 2048.0]]))
    assert np.allclose(many, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), atol=1e-6)
    assert NumberHead().predictions(np.array([[512.0], [1e9]])).tolist() == [[0.5], [1.0]]
    assert NumberHead().errors(np.array([[1e9]]), np.array([0.0])).tolist() == [[4 * 2**ERROR_BITS]]
