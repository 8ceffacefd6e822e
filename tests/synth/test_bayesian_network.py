"""The Bayesian network: its scores, its families, its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.random import SeededRandomSource, integers_below
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import ParameterError
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.synth import BayesianNetwork, IndependentMarginals
from cloister.synth._cell_counts import CellCounts
from cloister.synth.bayesian_network import NetworkFamily, _Growth
from cloister.synth.inference._estimation import NoisyMarginal
from cloister.synth.marginal_based import MarginalFit, PrivacyFilter
from tests.synth.toys import people

NAMES = ("a", "b", "c", "d")
SCHEMA = Schema.from_dict({"columns": {name: {"role": "quasi", "kind": "numeric", "bounds": [0, 2]} for name in NAMES}})


def exclusive(rows: int = 6000) -> Table:
    """Return rows in which c is a plus b, and any two of the three tell nothing about d."""
    draws = integers_below(SeededRandomSource(1), 3, 3 * rows).reshape(3, rows)
    a, b, d = draws
    return open_table(pa.table({"a": a, "b": b, "c": (a + b) % 3, "d": d}), schema=SCHEMA)


FACTS = BayesianNetwork(columns=["a", "b", "c"], complete=True).declared(exclusive(5))


@settings(max_examples=60)
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=12),
    extra=st.tuples(*[st.integers(0, 2)] * 3),
    noise=st.lists(st.integers(-6, 6), min_size=18, max_size=18),
)
def test_a_row_moves_a_score_by_at_most_one(rows: Any, extra: Any, noise: Any) -> None:
    class Exact:
        def __init__(self, rows: Any) -> None:
            self.rows = rows

        def marginal(self, columns: Any) -> Any:
            counts = np.zeros((3,) * len(columns), dtype=np.int64)
            for row in self.rows:
                counts[tuple(row[column] for column in columns)] += 1
            return counts

    counts = [Exact(rows), Exact([*rows, extra])]
    seen = [
        NoisyMarginal((0, 1), counts[0].marginal((0, 1)) + np.reshape(noise[:9], (3, 3)), 2.0),
        *(
            NoisyMarginal((place,), np.array(noise[9 + 3 * place : 12 + 3 * place], dtype=float), 1.0)
            for place in range(3)
        ),
    ]
    for family in (NetworkFamily(2, (0, 1)), NetworkFamily(1, (0,)), NetworkFamily(0, (2,)), NetworkFamily(1, (0, 2))):
        if family.parents == (0, 2):
            seen.append(NoisyMarginal((0, 2), np.reshape(noise[:9], (3, 3)).astype(float), 1.0))
        scores = [
            _Growth(
                MarginalFit(FACTS, item, PrivacyFilter(NoiseCalibration.of(epsilon=1)), SeededRandomSource(1), seen),
                100,
                3,
                1.0,
            ).score(  # type: ignore[arg-type]
                family
            )
            for item in counts
        ]
        assert abs(scores[0] - scores[1]) <= 1 + 1e-9


def test_a_column_finds_both_of_its_parents() -> None:
    made = BayesianNetwork(epsilon=20, complete=True).fit(exclusive())
    (deep,) = [item for item in made.network_ if set(item.members) >= {0, 1, 2} and len(item.parents) >= 2][:1]
    assert set(deep.members) >= {0, 1, 2}
    rows = made.sample(2000).to_arrow()
    a, b, c = (rows[name].to_numpy() for name in "abc")
    assert ((a + b) % 3 == c).mean() > 0.95


def test_families_are_a_network_whose_parents_lie_in_one_earlier_family() -> None:
    made = BayesianNetwork(epsilon=10, bins=4).fit(people(800))
    seen: list[int] = []
    families: list[set[int]] = []
    for item in made.network_:
        assert item.column not in seen
        assert not item.parents or any(set(item.parents) <= known for known in families) or len(item.parents) == 1
        assert set(item.parents) <= set(seen)
        seen.append(item.column)
        families.append(set(item.members))
    assert sorted(seen) == [0, 1, 2, 3]


@pytest.mark.parametrize("degree", [1, 2])
def test_no_column_has_more_parents_than_the_degree(degree: int) -> None:
    made = BayesianNetwork(epsilon=50, degree=degree, complete=True).fit(exclusive())
    assert max(len(item.parents) for item in made.network_) == degree


def test_families_are_useful_for_the_number_of_rows() -> None:
    table = exclusive()
    made = BayesianNetwork(epsilon=1, complete=True).fit(table)
    noise = made._family_noise(made.facts_)
    sizes = [3 ** len(item.members) for item in made.network_ if item.parents]
    assert all(made.rows_ / size >= 4 * noise * 0.99 for size in sizes)
    alone = BayesianNetwork(epsilon=0.001, complete=True, expected_rows=50)
    with pytest.warns(UserWarning, match="Noise will drown"):
        alone.fit(table)
    assert all(not item.parents for item in alone.network_)
    assert sum(len(item.columns) == 1 for item in alone.measurements_) == 8  # all columns twice, for all of the budget
    few = replace(alone, epsilon=1, expected_rows=200).fit(table)
    assert max(3 ** len(item.members) for item in few.network_) < max(sizes)


def test_it_is_closer_than_columns_by_themselves() -> None:
    table = people(3000)
    made, plain = (kind(epsilon=2, bins=4).fit(table) for kind in (BayesianNetwork, IndependentMarginals))
    counts = CellCounts(table, made.facts_.domain)
    for pair in (("color", "age"), ("color", "weight"), ("age", "weight")):
        exact = counts.marginal(made.facts_.domain.positions(pair))
        gaps = [np.abs(item.marginal(pair) - exact).sum() for item in (made, plain)]
        assert gaps[0] < gaps[1] / 2


def test_conditions_are_met_exactly() -> None:
    made = BayesianNetwork(epsilon=20, complete=True).fit(exclusive())
    rows = made.sample(500, conditions={"a": 2, "b": (0, 1)}).to_arrow()
    assert set(rows["a"].to_pylist()) == {2}
    assert set(rows["b"].to_pylist()) == {0, 1}
    assert ((rows["a"].to_numpy() + rows["b"].to_numpy()) % 3 == rows["c"].to_numpy()).mean() > 0.9


def test_one_column_has_no_network() -> None:
    made = BayesianNetwork(columns=["a"], complete=True, epsilon=1).fit(exclusive(100))
    assert made.network_ == (NetworkFamily(0, ()),)
    assert len(made.steps_) == 1


@pytest.mark.parametrize("options", [{"degree": 0}, {"theta": 0}, {"theta": float("nan")}, {"max_cells": 0}])
def test_odd_parameters_are_refused(options: Any) -> None:
    with pytest.raises(ParameterError, match="Fix: "):
        BayesianNetwork(**options).fit(exclusive(5))
