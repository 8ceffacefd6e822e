"""Multiplicative weights: what it pays, and that it comes closer."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister.accounting.events import DiscreteLaplaceEvent, PureEvent
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError, UnknownColumnError
from cloister.synth import Impossible, IndependentMarginals, MultiplicativeWeights, multiplicative_weights
from cloister.synth._cell_counts import CellCounts
from cloister.synth.inference._estimation import NoisyMarginal
from tests.synth.toys import ACCOUNT, book, people

LINE = Schema.from_dict({"columns": {"x": {"role": "quasi", "kind": "numeric", "bounds": [0, 7]}}})


def line() -> Table:
    values = np.repeat(np.arange(8), [400, 10, 30, 0, 5, 90, 250, 15])
    return open_table(pa.table({"x": values}), schema=LINE)


def cost(event: Any) -> Fraction:
    match event:
        case PureEvent(epsilon=epsilon):
            return Fraction(epsilon)
        case DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity):
            return Fraction(sensitivity) / scale
    raise TypeError


@pytest.mark.parametrize("rounds", [1, 3, 7])
def test_syn_13_rounds_cost_exactly_epsilon(rounds: int) -> None:
    ledger = book()
    made = MultiplicativeWeights(epsilon=Fraction(3, 5), rounds=rounds, bins=3, ledger=ledger, dataset=ACCOUNT)
    made.fit(people())
    assert ledger.spent(ACCOUNT).amount == Fraction(3, 5)
    costs = [cost(step.event) for step in made.steps_]
    assert sum(costs) == Fraction(3, 5)
    assert len(costs) == 1 + 2 * rounds
    assert set(costs[1:]) == {(Fraction(3, 5) - costs[0]) / (2 * rounds)}


def test_syn_13_a_public_number_of_rows_is_not_paid_for() -> None:
    made = MultiplicativeWeights(epsilon=1, rounds=4, rows=60, adjacency="replace", bins=3).fit(people())
    assert [cost(step.event) for step in made.steps_] == [Fraction(1, 8)] * 8
    assert sum(cost(step.event) for step in made.steps_) == 4 * (2 * Fraction(1, 8)) == 1
    assert made.rows_ == 60


def test_syn_13_the_worst_query_becomes_better_with_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplicative_weights, "_MOST_PASSES", 2)
    table, errors = line(), []
    for rounds in (1, 2, 4, 8, 16):
        made = MultiplicativeWeights(epsilon=10_000, rounds=rounds, complete=True).fit(table)
        exact = CellCounts(table, made.facts_.domain).marginal((0,))
        errors.append(np.abs(made.marginal(["x"]) - exact).max())
    assert all(later < earlier for earlier, later in pairwise(errors))
    assert errors[-1] < errors[0] / 4


def test_each_update_moves_towards_the_measurement_and_keeps_the_sum() -> None:
    weights = np.full((2, 3), 10.0)
    seen = NoisyMarginal((0,), np.array([45.0, 15.0]), 1.0)
    last = 15.0
    for _ in range(20):
        multiplicative_weights.update(weights, [seen], 60.0)
        gap = abs(weights.sum(axis=1)[0] - 45.0)
        assert gap < last
        last = gap
        assert weights.sum() == pytest.approx(60.0)
        assert np.ptp(weights, axis=1) == pytest.approx([0.0, 0.0])  # what was not measured stays even


def test_connections_are_kept() -> None:
    table = people(3000)
    columns: dict[str, Any] = {"columns": ["color", "age"], "bins": 4, "epsilon": 2}
    made, plain = MultiplicativeWeights(**columns).fit(table), IndependentMarginals(**columns).fit(table)
    exact = CellCounts(table, made.facts_.domain).marginal((0, 1))
    gaps = [np.abs(item.marginal(["color", "age"]) - exact).sum() / 6000 for item in (made, plain)]
    assert gaps[0] < 0.1 < 0.3 < gaps[1]


def test_the_average_lags_behind_the_last_round() -> None:
    exact = CellCounts(line(), MultiplicativeWeights(complete=True).declared(line()).domain).marginal((0,))
    gaps = [
        np.abs(
            MultiplicativeWeights(epsilon=10_000, rounds=3, average=average, complete=True).fit(line()).marginal(["x"])
            - exact
        ).sum()
        for average in (False, True)
    ]
    assert gaps[0] < gaps[1]


def test_only_what_the_workload_names_is_measured() -> None:
    workload = [["color", "age"], ["age"]]
    made = MultiplicativeWeights(workload=workload, bins=3, rounds=5).fit(people())
    assert {item.columns for item in made.measurements_} <= {(0, 1), (1,)}


def test_impossible_combinations_have_no_weight() -> None:
    rule = Impossible({"color": "red", "age": [0, 1]})
    made = MultiplicativeWeights(columns=["color", "age"], bins=100, constraints=[rule]).fit(people())
    assert made.marginal(["color", "age"])[2, :2].sum() == 0


@pytest.mark.parametrize(
    ("options", "error", "fix"),
    [
        ({"rows": 60}, ParameterError, 'use adjacency="replace"'),
        ({"rows": 0, "adjacency": "replace"}, ParameterError, "Fix: "),
        ({"rounds": 0}, ParameterError, "Fix: "),
        ({"bins": {"age": 100, "weight": 100, "seen": 100}}, ParameterError, "use AdaptiveMarginals"),
        ({"workload": "age"}, ParameterTypeError, "write workload="),
        ({"workload": [["age", "age"]]}, ParameterError, "write workload="),
        ({"workload": [["height"]]}, UnknownColumnError, "Fix: "),
    ],
)
def test_what_cannot_be_done_is_refused_before_paying(options: Any, error: type[Exception], fix: str) -> None:
    ledger = book(adjacency=options.get("adjacency", "add_remove"))
    with pytest.raises(error, match=fix):
        MultiplicativeWeights(**{"bins": 3, "ledger": ledger, "dataset": ACCOUNT, **options}).fit(people())
    assert not ledger.spent(ACCOUNT).amount
