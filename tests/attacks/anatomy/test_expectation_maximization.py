from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.attacks.anatomy._assignments import _hungarian as hungarian, assignments, best_assignments
from cloister.attacks.anatomy._expectation_maximization import (
    METHODS,
    fit,
    group_scores,
    posterior,
    random_start,
    uniform_start,
)
from cloister.attacks.anatomy._guesses import calibrate, calibrate_joint, joint, product
from cloister.core.random import SeededRandomSource
from tests.attacks.anatomy.puzzles import enumerated, puzzle_of, scored_groups, small_puzzles


@settings(max_examples=60)
@given(puzzle=small_puzzles(), seed=st.integers(0, 99))
def test_the_exact_step_is_that_of_enumeration_in_every_group(puzzle: Any, seed: int) -> None:
    scores = random_start(puzzle, SeededRandomSource(seed)).scores(puzzle)
    for block in puzzle.blocks:
        totals, shares = posterior(block, scores, method="exact")
        for group, total, share in zip(group_scores(block, scores), totals, shares, strict=True):
            expected = enumerated(group, block.pattern)
            assert total == pytest.approx(expected[0], abs=1e-9)
            np.testing.assert_allclose(share, expected[1], atol=1e-9)


@settings(max_examples=60)
@given(puzzle=small_puzzles(), method=st.sampled_from(METHODS), seed=st.integers(0, 99))
def test_no_step_makes_the_posterior_smaller(puzzle: Any, method: str, seed: int) -> None:
    start = random_start(puzzle, SeededRandomSource(seed))
    settings_of = {"method": method, "tolerance": 1e-300}
    found = [fit(puzzle, start, iterations=steps, **settings_of).objective for steps in range(1, 8)]
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(found))


@settings(max_examples=60)
@given(puzzle=small_puzzles(), seed=st.integers(0, 99))
def test_learned_frequencies_add_up(puzzle: Any, seed: int) -> None:
    found = fit(puzzle, random_start(puzzle, SeededRandomSource(seed)), method="exact", iterations=3).parameters
    assert np.exp(found.prior).sum() == pytest.approx(1)
    first = np.exp(found.conditional[: puzzle.levels[0]])
    np.testing.assert_allclose(first.sum(axis=0), 1)


def test_kinds_of_groups_are_counted_not_repeated() -> None:
    once = puzzle_of([[0], [1], [0], [0]], [[0, 1], [0, 1]])
    often = puzzle_of([[0], [1], [0], [0]] * 50, [[0, 1], [0, 1]] * 50)
    (block,) = often.blocks
    assert (len(block.cells), len(block.kind), block.weights.tolist()) == (2, 100, [50, 50])
    scores = uniform_start(once).scores(once)
    np.testing.assert_allclose(posterior(once.blocks[0], scores, method="exact")[1], 0.5)


def test_groups_of_different_sizes_and_patterns_are_learned_together() -> None:
    puzzle = puzzle_of([[0], [1], [0], [1], [1], [0], [1]], [[0, 1], [0, 1, 2], [1, 1]])
    assert sorted(block.pattern for block in puzzle.blocks) == [(1, 1), (1, 1, 1), (2,)]
    assert (puzzle.rows, puzzle.groups, puzzle.sizes) == (7, 3, (2, 3))
    assert puzzle.largest_share == pytest.approx((1 + 1 + 2) / 7)
    assert fit(puzzle, uniform_start(puzzle), method="exact").converged


@settings(max_examples=100)
@given(drawn=scored_groups())
def test_both_ways_to_assign_are_as_good_as_the_best_of_all(drawn: Any) -> None:
    scores, pattern = drawn
    people = np.arange(sum(pattern))
    for best in (best_assignments(scores, pattern), hungarian(scores, pattern)):
        for group, found in zip(scores, best, strict=True):
            assert np.array_equal(np.bincount(found, minlength=len(pattern)), pattern)
            values = np.repeat(np.arange(len(pattern)), pattern).tolist()
            most = max(group[people, list(each)].sum() for each in itertools.permutations(values))
            assert group[people, found].sum() == pytest.approx(most)


@settings(max_examples=100)
@given(drawn=scored_groups())
def test_calibrated_probabilities_are_the_mean_over_assignments(drawn: Any) -> None:
    scores, pattern = drawn
    single = np.exp(scores)
    shares = single / single.sum(axis=2, keepdims=True)
    slots = np.repeat(np.arange(len(pattern)), pattern)
    for found, share in zip(calibrate(shares, pattern), shares, strict=True):
        expected, total = np.zeros(share.shape), 0.0
        per_slot = share / np.array(pattern)
        for each in itertools.permutations(range(len(slots))):
            weight = sum(per_slot[person, slots[slot]] for person, slot in enumerate(each))
            total += weight
            expected[np.arange(len(slots)), slots[list(each)]] += weight
        np.testing.assert_allclose(found, expected / total, atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), 1)


@settings(max_examples=50)
@given(drawn=scored_groups())
def test_the_product_weighs_assignments_by_all_single_probabilities(drawn: Any) -> None:
    scores, pattern = drawn
    for found, group in zip(product(np.exp(scores), pattern), scores, strict=True):
        np.testing.assert_allclose(found, enumerated(group, pattern)[1], atol=1e-9)


@settings(max_examples=50)
@given(drawn=scored_groups())
def test_joint_probabilities_of_all_assignments_add_up_and_have_the_single_ones_as_marginals(drawn: Any) -> None:
    scores, pattern = drawn
    shares = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    choices = assignments(pattern)
    for find, given_scores, single in (
        (joint, scores, product(np.exp(scores), pattern)),
        (calibrate_joint, shares, calibrate(shares, pattern)),
    ):
        each = np.array([find(given_scores, np.tile(choice, (len(scores), 1)), pattern) for choice in choices])
        np.testing.assert_allclose(each.sum(axis=0), 1, atol=1e-9)
        first = np.array([each[choices[:, 0] == value].sum(axis=0) for value in range(len(pattern))]).T
        np.testing.assert_allclose(first, single[:, 0], atol=1e-9)
