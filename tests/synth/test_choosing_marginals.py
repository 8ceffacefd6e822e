"""The private choices of marginals: how far a row moves their scores, and that they move in different directions."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.random import SeededRandomSource, SystemRandomSource
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import InternalError, ParameterError, ParameterTypeError
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.synth import AdaptiveMarginals, SpanningTree
from cloister.synth._cell_counts import CellCounts
from cloister.synth.adaptive import _Picking
from cloister.synth.inference._estimation import Estimator
from cloister.synth.marginal_based import MarginalFit, PrivacyFilter
from cloister.synth.spanning_tree import _dependence
from tests.support.thoroughness import examples

NAMES = ("a", "b", "c")
SCHEMA = Schema.from_dict({"columns": {name: {"kind": "numeric", "bounds": [0, 2]} for name in NAMES}})
ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=8)
ROW = st.tuples(*[st.integers(0, 2)] * 3)


def work(rows: list[tuple[int, ...]], like: MarginalFit | None = None, *, epsilon: int = 1) -> MarginalFit:
    """Return a fit under way on some rows; the released numbers are those of another where there is one."""
    table = open_table(pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))), schema=SCHEMA)
    facts = AdaptiveMarginals(complete=True).declared(table)
    made = MarginalFit(
        facts,
        CellCounts(table, facts.domain),
        PrivacyFilter(NoiseCalibration.of(epsilon=epsilon)),
        SystemRandomSource(),
    )
    if like is None:
        made.measure_columns(Fraction(1, 2))
    else:
        made.seen = like.seen
    return made


@given(rows=ROWS, added=ROW)
@settings(max_examples=examples(40, usual=16), deadline=None)
def test_an_added_row_moves_no_score_of_a_pair_by_more_than_one(
    rows: list[tuple[int, ...]], added: tuple[int, ...]
) -> None:
    here = work(rows)
    there = work([*rows, added], like=here)
    for pair in ((0, 1), (0, 2), (1, 2)):
        assert abs(_dependence(here, pair) - _dependence(there, pair)) <= 1


@given(rows=ROWS, added=ROW, seed=st.integers(0, 1000))
@settings(max_examples=examples(25, usual=10), deadline=None)
def test_an_added_row_moves_no_score_of_a_marginal_by_more_than_its_weight(
    rows: list[tuple[int, ...]], added: tuple[int, ...], seed: int
) -> None:
    here = work(rows)
    there = work([*rows, added], like=here)
    model = here.estimate(Estimator(iterations=3))
    weights = AdaptiveMarginals(degree=3)._weights(here.facts)
    scores = []
    for one in (here, there):
        one.source = SeededRandomSource(seed)
        scores.append(_Picking(one, weights, 10**6)._scores(model, list(weights), 2.0))
    for part, first, second in zip(weights, *scores, strict=True):
        assert abs(first - second) <= weights[part]


def test_scores_of_a_choice_can_move_in_different_directions() -> None:
    """So no choice here is monotone, and the factor 2 in the exponent must stay."""
    rows = [(0, 0, 0)] * 2 + [(1, 1, 1)] * 2
    here = work(rows, epsilon=10**4)
    moves = set()
    for added in ((0, 0, 0), (0, 1, 0)):
        there = work([*rows, added], like=here)
        moves |= {_dependence(there, pair) - _dependence(here, pair) for pair in ((0, 1), (0, 2), (1, 2))}
    assert {-1, 1} <= moves


def test_scores_that_are_not_whole_are_a_bug() -> None:
    with pytest.raises(InternalError, match="whole numbers"):
        work([(0, 0, 0)]).choose([0.5, 1.0], ["x", "y"], Fraction(1, 4), label="x")  # type: ignore[list-item]


def test_the_center_is_paired_with_every_column() -> None:
    table = open_table(pa.table({name: [0, 1, 2] * 5 for name in NAMES}), schema=SCHEMA)
    made = SpanningTree(epsilon=5, center="b", complete=True).fit(table)
    pairs = [item.columns for item in made.measurements_ if len(item.columns) == 2]
    assert pairs == [(0, 1), (1, 2)]
    with pytest.raises(Exception, match='Did you mean|no column "d"'):
        SpanningTree(center="d").fit(table)


def test_one_column_is_measured_with_everything() -> None:
    table = open_table(pa.table({name: [0, 1, 2] * 5 for name in NAMES}), schema=SCHEMA)
    for kind in (SpanningTree, AdaptiveMarginals):
        made = kind(epsilon=1, columns=["a"]).fit(table)
        assert [step.label for step in made.steps_] == ["a"]


def test_only_what_the_workload_asks_for_is_measured() -> None:
    table = open_table(pa.table({name: [0, 1, 2] * 50 for name in NAMES}), schema=SCHEMA)
    made = AdaptiveMarginals(epsilon=1, complete=True, workload=[["a", "c"]]).fit(table)
    assert {item.columns for item in made.measurements_} == {(0,), (1,), (2,), (0, 2)}


@pytest.mark.parametrize(
    ("options", "error", "fix"),
    [
        ({"workload": "a"}, ParameterTypeError, "write workload="),
        ({"workload": [["a"]]}, ParameterError, "write workload="),
        ({"workload": []}, ParameterError, "write workload="),
        ({"degree": 1}, ParameterError, "degree"),
        ({"max_cells": 0}, ParameterError, "max_cells"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_paid(
    options: dict[str, object], error: type[Exception], fix: str
) -> None:
    table = open_table(pa.table({name: [0, 1, 2] for name in NAMES}), schema=SCHEMA)
    with pytest.raises(error, match=fix):
        AdaptiveMarginals(**options).fit(table)


def test_a_model_stays_below_its_limit_of_cells() -> None:
    table = open_table(pa.table({name: [0, 1, 2] * 50 for name in NAMES}), schema=SCHEMA)
    made = AdaptiveMarginals(epsilon=10, complete=True, degree=3, max_cells=20).fit(table)
    assert made.model_.tree.cells <= 20
