from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from cloister.attacks.anatomy._assignments import assignments, group_marginals, lattice_of, marginals, scale_marginals
from tests.attacks.anatomy.puzzles import enumerated, scored_groups


@settings(max_examples=150)
@given(drawn=scored_groups())
def test_sums_over_assignments_are_those_of_enumeration(drawn: Any) -> None:
    scores, pattern = drawn
    totals, shares = marginals(scores, pattern)
    for group, total, share in zip(scores, totals, shares, strict=True):
        expected = enumerated(group, pattern)
        assert total == pytest.approx(expected[0], abs=1e-9)
        np.testing.assert_allclose(share, expected[1], atol=1e-9)


@settings(max_examples=50)
@given(drawn=scored_groups(wide=4000))
def test_nothing_is_lost_where_every_assignment_is_nearly_impossible(drawn: Any) -> None:
    scores, pattern = drawn
    totals, shares = marginals(scores, pattern)
    for group, total, share in zip(scores, totals, shares, strict=True):
        expected = enumerated(group, pattern)
        assert total == pytest.approx(expected[0], rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(share, expected[1], atol=1e-6)


@settings(max_examples=50)
@given(drawn=scored_groups(wide=1))
def test_everybody_has_one_value_and_every_value_as_many_people_as_it_occurs(drawn: Any) -> None:
    scores, pattern = drawn
    for found in (marginals(scores, pattern)[1], scale_marginals(scores, pattern)[1]):
        np.testing.assert_allclose(found.sum(axis=2), 1, atol=1e-6)
        np.testing.assert_allclose(found.sum(axis=1), np.broadcast_to(pattern, found.sum(axis=1).shape), atol=1e-4)


def test_repetitions_need_fewer_states() -> None:
    assert lattice_of((1,) * 6).states == 64
    assert lattice_of((3, 3)).states == 16
    assert len(assignments((3, 3))) == 20


def test_scaling_bounds_the_sum_and_comes_near_in_large_groups() -> None:
    place = np.arange(12)
    scores = np.sin(place[:, None] * 1.7 + np.arange(3) * 2.3)[None]
    pattern = (5, 4, 3)
    totals, shares = marginals(scores, pattern)
    bounds, near = scale_marginals(scores, pattern)
    assert totals[0] < bounds[0]
    assert np.abs(shares - near).max() < 0.05
    lone = marginals(scores[:, :2, :2], (1, 1))[1], scale_marginals(scores[:, :2, :2], (1, 1))[1]
    odds = [found[0, 0, 0] / found[0, 0, 1] for found in lone]
    assert odds[1] == pytest.approx(odds[0] ** 0.5, rel=1e-6)


def test_groups_of_twelve_are_exact_and_larger_ones_scaled() -> None:
    twelve, more = (np.sin(np.arange(size * size) * 1.3).reshape(1, size, size) for size in (12, 13))
    np.testing.assert_array_equal(group_marginals(twelve, (1,) * 12)[1], marginals(twelve, (1,) * 12)[1])
    np.testing.assert_array_equal(group_marginals(more, (1,) * 13)[1], scale_marginals(more, (1,) * 13)[1])


def test_many_groups_at_once_are_as_good_as_one_by_one() -> None:
    scores = np.sin(np.arange(9 * 9 * 1500) * 0.7).reshape(1500, 9, 9)
    totals, shares = marginals(scores, (1,) * 9)
    for place in (0, 700, 1499):
        alone = marginals(scores[place : place + 1], (1,) * 9)
        assert totals[place] == pytest.approx(alone[0][0])
        np.testing.assert_allclose(shares[place], alone[1][0])
