from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import special

from cloister.accounting.events import PureEvent
from cloister.attacks.auditing.exact_check import Bounds
from cloister.core import exact
from cloister.core.guarantees import Adjacency, PureDP
from cloister.core.random import SeededRandomSource
from cloister.errors import CloisterError, ParameterError, ParameterTypeError
from cloister.mechanisms import Mechanism
from cloister.queries.ranks import RankSelection, rank_sensitivity
from cloister.testing import all_neighbors, check_exactly, distributions, normalize, statistics

MEDIAN, MINIMUM, MAXIMUM = {"fraction": 0.5}, {"offset": 1}, {"fraction": 1, "offset": -1}
TARGETS = [
    MEDIAN,
    MINIMUM,
    MAXIMUM,
    {"fraction": Fraction(9, 10)},
    {"fraction": "1/3", "offset": "1/2"},
    {"offset": 40},
]


def _selection(**changes: Any) -> RankSelection:
    return RankSelection(**({"low": 0, "high": 4, "score_sensitivity": 1, "epsilon": 1} | changes))


def _grouped(rows: Sequence[int]) -> tuple[list[int], list[int]]:
    counts = sorted(Counter(rows).items())
    return [position for position, _ in counts], [weight for _, weight in counts]


def _score(rows: Sequence[int], point: int, *, fraction: object = 0, offset: object = 0) -> Fraction:
    """Score a point by the definition, row by row."""
    target = exact.number(fraction) * len(rows) + exact.number(offset)
    below, upto = sum(row < point for row in rows), sum(row <= point for row in rows)
    return -max(Fraction(0), below - target, target - upto)


def _law(mechanism: RankSelection, rows: Sequence[int]) -> dict[int, Bounds]:
    """Return certified probabilities of all points from the runs that the mechanism draws from."""
    runs = mechanism._runs(*_grouped(rows))
    scores = {
        start + place: Fraction(score)
        for start, length, score in zip(runs.starts.tolist(), runs.lengths.tolist(), runs.scores.tolist(), strict=True)
        for place in range(length)
    }
    return normalize({point: exact.exp_bounds(mechanism._rate * score) for point, score in scores.items()})


def _datasets(points: int, most: int) -> Iterator[tuple[int, ...]]:
    for size in range(most + 1):
        yield from combinations_with_replacement(range(points), size)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_runs_score_every_point_by_the_definition(target: dict[str, Any]) -> None:
    mechanism = _selection(**target)
    for rows in _datasets(5, 4):
        runs = mechanism._runs(*_grouped(rows))
        assert runs.starts.tolist() == sorted(set(runs.starts.tolist()))
        found = np.repeat(runs.scores, runs.lengths).tolist()
        assert [score / Fraction(mechanism._parts) for score in map(Fraction, found)] == [
            _score(rows, point, **target) for point in range(5)
        ]


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_exact_law_is_private_for_all_small_neighbors(target: dict[str, Any], adjacency: Adjacency) -> None:
    sensitivity = rank_sensitivity(target.get("fraction", 0), adjacency=adjacency)
    mechanism = _selection(**target, score_sensitivity=sensitivity, high=3)
    neighbors = list(all_neighbors(range(4), max_rows=4, adjacency=adjacency))
    check_exactly(cache(partial(_law, mechanism)), neighbors, epsilon=1).verify()


def test_a_sensitivity_that_is_too_small_is_refuted() -> None:
    mechanism = _selection(**MINIMUM, score_sensitivity="1/2")
    report = check_exactly(cache(partial(_law, mechanism)), all_neighbors(range(5), max_rows=4), epsilon=1)
    assert report.refuted


@given(
    st.lists(st.integers(0, 4), max_size=5),
    st.lists(st.integers(0, 4), max_size=3),
    st.lists(st.integers(0, 4), max_size=3),
    st.fractions(min_value=0, max_value=1, max_denominator=20),
    st.fractions(min_value=-5, max_value=5, max_denominator=6),
)
def test_no_unit_moves_a_score_further_than_the_sensitivity(
    rows: list[int], unit: list[int], other: list[int], fraction: Fraction, offset: Fraction
) -> None:
    """A unit has at most three rows: it joins, or it replaces another."""
    for point in range(5):
        before, joined, instead = (
            _score(data, point, fraction=fraction, offset=offset) for data in (rows, rows + unit, rows + other)
        )
        assert abs(joined - before) <= rank_sensitivity(fraction, weight_per_unit=3)
        assert abs(joined - instead) <= rank_sensitivity(fraction, weight_per_unit=3, adjacency=Adjacency.REPLACE)


@pytest.mark.parametrize("fraction", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
@pytest.mark.parametrize("weight", [1, 2])
def test_the_sensitivity_is_attained(fraction: Fraction, weight: int) -> None:
    units = [weight * (point,) for point in range(3)] + [()]
    moves = {Adjacency.ADD_REMOVE: Fraction(0), Adjacency.REPLACE: Fraction(0)}
    for rows, unit, other, point in product(_datasets(3, 4), units, units, range(3)):
        scores = [_score(rows + part, point, fraction=fraction, offset=1) for part in (unit, other, ())]
        moves[Adjacency.ADD_REMOVE] = max(moves[Adjacency.ADD_REMOVE], abs(scores[0] - scores[2]))
        moves[Adjacency.REPLACE] = max(moves[Adjacency.REPLACE], abs(scores[0] - scores[1]))
    for adjacency, move in moves.items():
        assert move == rank_sensitivity(fraction, weight_per_unit=weight, adjacency=adjacency)


def test_cdp_12_median_interval_probabilities() -> None:
    expected = [0.23046, 0.04071, 0.24611, 0.01357, 0.46915]
    assert median_intervals(ages=[28, 31, 42, 43], bounds=[0, 100], epsilon=1) == pytest.approx(expected, abs=6e-6)


def median_intervals(*, ages: list[int], bounds: list[int], epsilon: float) -> list[float]:
    """Return the probabilities of the gaps between ages on a grid of a million steps to the year."""
    steps = 10**6
    mechanism = RankSelection(
        low=bounds[0] * steps, high=bounds[1] * steps, fraction=0.5, score_sensitivity=1, epsilon=epsilon
    )
    _, lengths, chances = mechanism.probabilities([age * steps for age in ages], [1] * len(ages))
    return [float(chance) for chance in chances[lengths > 1]]


@pytest.mark.statistical
@pytest.mark.parametrize("target", [MEDIAN, MAXIMUM], ids=str)
def test_releases_follow_the_exact_law(target: dict[str, Any]) -> None:
    mechanism, rows = _selection(**target, high=9), (2, 2, 5, 6, 6, 6)
    sample = [mechanism.release(*_grouped(rows)) for _ in range(3000)]
    law = {point: float(low) for point, (low, _) in _law(mechanism, rows).items()}
    statistics.check_distribution(sample, distributions.categorical(law))
    for wrong in (0.5, 2):
        other = _law(_selection(**target, high=9, epsilon=wrong), rows)
        other_law = distributions.categorical({point: float(low) for point, (low, _) in other.items()})
        assert statistics.fit(sample, other_law).p_value < 1e-9


def test_probabilities_are_those_of_the_exact_law() -> None:
    mechanism, rows = _selection(fraction="1/3", high=9), (2, 2, 5, 6, 6, 6)
    _, lengths, chances = mechanism.probabilities(*_grouped(rows))
    by_point = np.repeat(chances / lengths, lengths)
    assert by_point == pytest.approx([float(low) for low, _ in _law(mechanism, rows).values()], rel=1e-12)


def test_without_data_every_point_is_as_likely() -> None:
    starts, lengths, chances = _selection(**MEDIAN).probabilities([], [])
    assert (starts.tolist(), lengths.tolist(), chances.tolist()) == ([0], [5], [1.0])
    assert {_selection(**MEDIAN).release([], []) for _ in range(200)} == {0, 1, 2, 3, 4}


def test_a_grid_of_one_point_has_one_answer() -> None:
    assert _selection(low=7, high=np.int64(7), **MEDIAN).release([7], [3]) == 7


@pytest.mark.parametrize("target", [MEDIAN, {"offset": 30}, {"fraction": 1, "offset": -30}], ids=str)
def test_huge_grids_and_weights_are_answered_near_the_data(target: dict[str, Any]) -> None:
    mechanism = _selection(**target, low=-(2**40), high=2**40, epsilon=5)
    heavy = mechanism.release([-5, 0, 5], [2**40, 2**40, 2**60])
    assert -5 <= heavy <= 5
    assert -5 <= mechanism.release([-5, 0, 5], [2**20, 2**20, 2**20]) <= 5


def test_weights_beyond_exact_floats_give_the_same_law() -> None:
    """Scores are multiples of the weight; a sensitivity that grows with it leaves the law as it is."""
    light, heavy = (
        _selection(**MEDIAN, score_sensitivity=factor).probabilities([1, 3], [2 * factor, factor])[2]
        for factor in (1, 2**55)
    )
    assert light == pytest.approx(heavy, rel=1e-12)


@pytest.mark.statistical
def test_the_rank_margin_covers() -> None:
    mechanism = _selection(**MEDIAN, high=999, score_sensitivity="1/2")
    assert mechanism.rank_margin(0.95) == pytest.approx(math.log(1000 / 0.05))
    rows = range(0, 1000, 2)
    answers = [mechanism.release(list(rows), [1] * 500) for _ in range(300)]
    missed = sum(-_score(rows, answer, **MEDIAN) > mechanism.rank_margin(0.95) for answer in answers)
    assert special.bdtrc(missed - 1, 300, 0.05) > statistics.FALSE_ALARM


def test_the_promise_and_the_event() -> None:
    mechanism = _selection(**MEDIAN, adjacency="user", unit="patient")
    assert mechanism.guarantee == PureDP(epsilon=1, adjacency=Adjacency.USER, unit="patient")
    assert mechanism.event == PureEvent(epsilon=Fraction(1))
    assert isinstance(mechanism, Mechanism)
    assert mechanism.points == 5


def test_the_same_source_gives_the_same_answer() -> None:
    first, second = (
        [mechanism.release([1, 3], [1, 1], random_state=source) for _ in range(20)]
        for mechanism, source in ((_selection(), SeededRandomSource(1)) for _ in range(2))
    )
    assert first == second


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"low": 5}, "low <= high"),
        ({"low": 0.5}, "whole steps"),
        ({"high": True}, "whole steps"),
        ({"high": 2**61}, "larger steps"),
        ({"fraction": 1.5}, "as a probability"),
        ({"offset": math.nan}, "finite number"),
        ({"score_sensitivity": 0}, "positive score_sensitivity"),
        ({"epsilon": 0}, "epsilon=0.5"),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(changes: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        _selection(**changes)


@pytest.mark.parametrize(
    ("positions", "weights", "fix"),
    [
        ([1, 2], [1], "group by position"),
        ([2, 1], [1, 1], "sort"),
        ([1, 1], [1, 1], "sort"),
        ([4711], [1], r"clamp positions to 0 \.\. 4"),
        ([1], [0], "leave positions without weight out"),
        ([1, 2], [2**61, 2**61], "coarser units"),
    ],
)
def test_bad_data_is_refused_without_quoting_it(positions: list[int], weights: list[int], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix) as caught:
        _selection().release(positions, weights)
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize("bad", [[0.5], [[1]], ["a"], 3, np.array([1], dtype=np.uint64)], ids=str)
def test_positions_must_be_a_row_of_whole_numbers(bad: object) -> None:
    with pytest.raises(ParameterTypeError, match="integer arrays"):
        _selection().release(bad, [1])
