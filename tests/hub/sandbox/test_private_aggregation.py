"""Whatever foreign code does, a run is as private as it says: exactly on small cases, and by audit."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from cloister import attacks
from cloister.accounting.events import DiscreteLaplaceEvent, PureEvent
from cloister.attacks.auditing.exact_check import check_exactly
from cloister.core import exact
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.errors import ParameterError
from cloister.hub.domain.algorithms import Clip, OutputLayout, PrivacyContract
from cloister.hub.sandbox.sample_and_aggregate import BlockMean, BlockMedian, choose_aggregation, scores
from cloister.mechanisms import DiscreteLaplace, Gaussian
from cloister.testing.neighbors import all_neighbors

ANYTHING = st.floats(allow_nan=True, allow_infinity=True)


def box(size: int, *, steps: int = 2**20, low: float = -3.0, high: float = 5.0) -> Clip:
    ends = np.full(size, low), np.full(size, high)
    middle = np.full(size, (low + high) / 2)
    return Clip(name="x", shape=(size,), norm="box", low=ends[0], high=ends[1], default=middle, steps=steps)


def ball(norm: str, size: int, *, steps: int = 2**20) -> Clip:
    return replace(box(size, low=-2.0, high=2.0, steps=steps), norm=norm)


def _mean(layout: OutputLayout, *, blocks: int, epsilon: object) -> BlockMean:
    found = choose_aggregation(
        PrivacyContract(),
        layout,
        blocks=blocks,
        epsilon=exact.number(epsilon),
        delta=Fraction(0),
        adjacency=Adjacency.ADD_REMOVE,
        unit="row",
    )
    assert isinstance(found, BlockMean)
    return found


@given(st.sampled_from(["box", "l1", "l2"]), st.integers(1, 6), st.data())
def test_no_two_results_are_further_apart_than_stated(norm: str, size: int, data: st.DataObject) -> None:
    clip = box(size) if norm == "box" else ball(norm, size)
    pair = [np.array(data.draw(st.lists(ANYTHING, min_size=size, max_size=size))) for _ in range(2)]
    first, second = (clip.to_steps(values) for values in pair)
    assert int(np.abs(first - second).sum()) <= clip.l1
    assert int(((first - second) ** 2).sum()) <= clip.squared_l2
    if norm == "box":
        assert 0 <= first.min() <= first.max() <= clip.steps
    elif norm == "l1":
        assert int(np.abs(first).sum()) <= clip.steps
    else:
        assert int((first**2).sum()) <= clip.steps**2


@pytest.mark.parametrize(("norm", "size"), list(itertools.product(["box", "l1", "l2"], [1, 2, 3])))
def test_the_stated_distances_are_reached(norm: str, size: int) -> None:
    """Noise for less than the diameter would be too little: some pair of results is that far apart."""
    clip = box(size, steps=12) if norm == "box" else ball(norm, size, steps=12)
    corners = [np.array(point) for point in itertools.product([-1e9, 0.0, 1e9], repeat=size)]
    found = [clip.to_steps(point) for point in corners]
    apart = [np.abs(a - b) for a, b in itertools.product(found, repeat=2)]
    squared = max(int((difference**2).sum()) for difference in apart)
    assert squared <= clip.squared_l2
    if norm != "l2" or size == 1:
        assert max(int(difference.sum()) for difference in apart) == clip.l1
        assert squared == clip.squared_l2


@pytest.mark.parametrize("values", [None, np.array([np.nan, np.inf]), np.zeros(3), np.zeros((2, 1))])
def test_nothing_late_undefined_or_misshapen_counts_as_the_default(values: NDArray[np.float64] | None) -> None:
    layout = OutputLayout(clips=(box(2, low=0.0, high=10.0, steps=100),))
    assert layout.to_steps(values).tolist() == [50, 50]


def test_honest_numbers_come_back() -> None:
    layout = OutputLayout(clips=(box(2), ball("l1", 3), ball("l2", 2)))
    values = np.array([-3.0, 1.25, 0.5, -0.25, 0.125, 1.0, -1.0])
    back = layout.from_steps(layout.to_steps(values) * 4, 4)
    np.testing.assert_allclose(np.concatenate([part.ravel() for part in back.values()][-1:]), values[-2:], atol=1e-5)
    assert layout.size == 7


# Exactly, on all small datasets -----------------------------------------------------

EPSILON = Fraction(1)
BLOCKS = 2
STEPS = 2


def _names_the_target(rows: Iterable[int]) -> int:
    return STEPS if 2 in rows else 0


def _counts(rows: Iterable[int]) -> int:
    return min(len(list(rows)), STEPS)


def _remembers_the_first(rows: Iterable[int]) -> int:
    return next(iter(rows), 1)


FOREIGN: list[Callable[[Iterable[int]], int]] = [_names_the_target, _counts, _remembers_the_first]


def _law(foreign: Callable[[Iterable[int]], int], mechanism: DiscreteLaplace) -> Callable[[Any], dict[Any, Any]]:
    """Return the exact law of a run: every way to assign rows to blocks, then discrete Laplace noise on the sum."""
    low, high = exact.exp_bounds(-1 / mechanism.scale, digits=15)
    reach = 6

    def at(distance: int) -> tuple[Fraction, Fraction]:
        return (1 - high) / (1 + high) * low**distance, (1 - low) / (1 + low) * high**distance

    def beyond(distance: int) -> tuple[Fraction, Fraction]:
        return low**distance / (1 + high), high**distance / (1 + low)

    @functools.cache
    def cells(total: int) -> dict[Any, tuple[Fraction, Fraction]]:
        within = {place: at(abs(place - total)) for place in range(-reach, reach + 1)}
        return within | {"above": beyond(reach + 1 - total), "below": beyond(reach + 1 + total)}

    @functools.cache
    def law(dataset: Any) -> dict[Any, Any]:
        totals: Counter[int] = Counter()
        for way in itertools.product(range(BLOCKS), repeat=len(dataset)):
            parts = [
                [row for row, block in zip(dataset, way, strict=True) if block == number] for number in range(BLOCKS)
            ]
            totals[sum(foreign(part) for part in parts)] += 1
        found: dict[Any, list[Fraction]] = {}
        for total, ways in totals.items():
            share = Fraction(ways, totals.total())
            for place, (least, most) in cells(total).items():
                sums = found.setdefault(place, [Fraction(0), Fraction(0)])
                sums[0] += least * share
                sums[1] += most * share
        return {place: (sums[0], sums[1]) for place, sums in found.items()}

    return law


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_a_run_is_exactly_as_private_as_it_says(foreign: Callable[[Iterable[int]], int], adjacency: str) -> None:
    mechanism = _mean(OutputLayout(clips=(box(1, steps=STEPS),)), blocks=BLOCKS, epsilon=EPSILON).mechanism
    assert isinstance(mechanism, DiscreteLaplace)
    pairs = list(all_neighbors([0, 1, 2], max_rows=3, ordered=True, adjacency=Adjacency(adjacency)))
    assert pairs
    assert check_exactly(_law(foreign, mechanism), pairs, epsilon=EPSILON).holds
    halved = replace(mechanism, sensitivity=mechanism.sensitivity / 2)
    if foreign is _names_the_target:
        assert not check_exactly(_law(foreign, halved), pairs, epsilon=EPSILON).holds


@given(st.lists(st.integers(0, 20), min_size=3, max_size=9), st.integers(0, 8), st.integers(0, 20))
def test_one_block_moves_the_scores_of_a_median_by_at_most_one(column: list[int], place: int, value: int) -> None:
    changed = list(column)
    changed[place % len(column)] = value
    places = np.arange(21)
    moved = scores(np.array(column), places) - scores(np.array(changed), places)
    assert np.abs(moved).max() <= 1


def test_the_median_has_the_best_score() -> None:
    column = np.array([1, 2, 3, 4, 100])
    assert int(np.argmax(scores(column, np.arange(101)))) == 3


# By audit, through the same code that a real run uses -----------------------------------------------------


def _steps(layout: OutputLayout, outputs: list[float | None]) -> NDArray[np.int64]:
    arrays = [None if output is None else np.array([output]) for output in outputs]
    return np.array([layout.to_steps(array) for array in arrays])


def _noisy_sums(found: BlockMean, outputs: list[float | None], size: int) -> NDArray[np.float64]:
    """Return many releases at once: the same noise as `BlockMean.release` adds, before the public scaling."""
    total = int(_steps(found.layout, outputs).sum())
    return np.asarray(found.mechanism.release(np.full(size, total)).value, dtype=np.float64)


@pytest.mark.statistical
def test_an_algorithm_that_names_the_target_is_not_refuted_by_an_audit() -> None:
    blocks = 5
    found = _mean(OutputLayout(clips=(box(1),)), blocks=blocks, epsilon=1)
    with_target: list[float | None] = [1e9, -1e9, -1e9, None, float("nan")]
    without: list[float | None] = [-1e9, *with_target[1:]]

    def released(outputs: list[float | None], size: int) -> NDArray[np.float64]:
        return _noisy_sums(found, outputs, size)

    result = attacks.audit_dp(released, (with_target, without), epsilon=1, samples=50_000, confidence=1 - 1e-9)
    assert result.outcome == "not refuted"
    too_little = replace(found, mechanism=replace(found.mechanism, sensitivity=found.layout.l1 / 2))

    def leaky(outputs: list[float | None], size: int) -> NDArray[np.float64]:
        return _noisy_sums(too_little, outputs, size)

    assert attacks.audit_dp(leaky, (with_target, without), epsilon=1, samples=50_000).outcome == "refuted"


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.audit
def test_a_median_is_not_refuted_by_an_audit() -> None:
    found = BlockMedian(
        layout=OutputLayout(clips=(box(1),)), blocks=5, epsilon=Fraction(2), adjacency=Adjacency.ADD_REMOVE, unit="row"
    )
    pair = ([-3.0, -3.0, -3.0, -3.0, -3.0], [-3.0, -3.0, -3.0, -3.0, 5.0])

    def released(outputs: list[float | None], size: int) -> NDArray[np.float64]:
        return np.array([found.release(_steps(found.layout, outputs))["x"][0] for _ in range(size)])

    neighbors = tuple(list(side) for side in pair)
    assert attacks.audit_dp(released, neighbors, epsilon=2, samples=2_000, confidence=1 - 1e-9).outcome == "not refuted"
    assert attacks.audit_dp(released, neighbors, epsilon="1/2", samples=2_000).outcome == "refuted"


# What is promised -----------------------------------------------------


def test_the_promise_is_that_of_the_mechanism() -> None:
    layout = OutputLayout(clips=(box(3), ball("l1", 4)))
    found = _mean(layout, blocks=10, epsilon="1/2")
    assert found.guarantee == PureDP(epsilon=Fraction(1, 2))
    assert isinstance(found.event, DiscreteLaplaceEvent)
    assert found.mechanism.sensitivity == 3 * 2**20 + 2 * 2**20
    assert found.margins()["x"].shape in {(3,), (4,)}


def test_gaussian_noise_is_for_the_distance_in_l2() -> None:
    layout = OutputLayout(clips=(box(4),))
    found = choose_aggregation(
        PrivacyContract(noise="gaussian"),
        layout,
        blocks=10,
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        adjacency=Adjacency.USER,
        unit="patient",
    )
    assert isinstance(found, BlockMean)
    assert isinstance(found.mechanism, Gaussian)
    assert found.mechanism.sensitivity == pytest.approx(2 * 2**20, rel=1e-12)
    assert found.mechanism.sensitivity >= 2 * 2**20
    assert found.guarantee == ApproxDP(epsilon=1, delta="1/1000000", adjacency="user", unit="patient")
    assert found.release(np.zeros((10, 4), dtype=np.int64))["x"].shape == (4,)


def test_a_median_is_pure() -> None:
    found = choose_aggregation(
        PrivacyContract(aggregation="median"),
        OutputLayout(clips=(box(2),)),
        blocks=41,
        epsilon=Fraction(50),
        delta=Fraction(0),
        adjacency=Adjacency.REPLACE,
        unit="row",
    )
    assert found.event == PureEvent(epsilon=Fraction(50))
    assert found.margins() == {}
    steps = np.tile(np.array([2**19, 2**18]), (41, 1))
    np.testing.assert_allclose(found.release(steps)["x"], [1.0, -1.0], atol=0.1)


def test_more_or_fewer_rows_than_blocks_are_refused() -> None:
    with pytest.raises(ParameterError, match="blocks by coordinates"):
        _mean(OutputLayout(clips=(box(1),)), blocks=3, epsilon=1).release(np.zeros((4, 1), dtype=np.int64))
