from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from cloister.anonymize._partition import verify
from cloister.anonymize.algorithms.lattice import GeneralizationLattice, optimal
from cloister.anonymize.algorithms.lattice._losses import LOSSES
from cloister.anonymize.models import all_hold, check_of, classes_of
from cloister.core.guarantees import KAnonymity, LDiversity
from cloister.errors import LatticeTooLargeError, ParameterError
from tests.anonymize.tables import full_domain
from tests.support.lattices import MODELS, SmallTable, best_of, exhaustive, released, small_tables

LIMITS = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1)])


def levels(outcome: Any) -> tuple[int, ...]:
    return tuple(outcome.facts["levels"].values())


@given(small_tables(), st.sampled_from(MODELS), LIMITS, st.sampled_from(sorted(LOSSES)))
def test_the_best_node_is_the_one_that_exhaustive_search_finds(
    table: SmallTable, models: tuple[Any, ...], limit: Fraction, loss: str
) -> None:
    task = table.task(models, suppression_limit=limit, loss=loss)
    losses = exhaustive(table, models, loss=loss, allowed=task.allowed)
    outcome = optimal(task)
    if losses:
        assert levels(outcome) == best_of(losses)
        assert outcome.facts["is_optimal"] is True
    else:
        assert outcome.partition.suppressed > task.allowed


@given(small_tables(), st.sampled_from(MODELS), LIMITS)
def test_what_is_released_satisfies_every_model_and_loses_no_row(
    table: SmallTable, models: tuple[Any, ...], limit: Fraction
) -> None:
    partition = optimal(table.task(models, suppression_limit=limit)).partition
    verify(partition)
    assert all_hold([check_of(model) for model in models], classes_of(partition)).all()


@given(small_tables(), st.sampled_from(MODELS), LIMITS)
def test_a_heuristic_search_with_enough_budget_is_never_better_than_the_best_and_says_what_it_proved(
    table: SmallTable, models: tuple[Any, ...], limit: Fraction
) -> None:
    task = table.task(models, suppression_limit=limit, options={"search": "heuristic", "budget": 3})
    losses = exhaustive(table, models, loss="ncp", allowed=task.allowed)
    outcome = optimal(task)
    assert outcome.facts["evaluated"] <= 3
    assert outcome.facts["is_optimal"] == (outcome.notes == ())
    if levels(outcome) in losses and outcome.facts["is_optimal"]:
        assert levels(outcome) == best_of(losses)


@given(small_tables(), LIMITS)
def test_a_heuristic_search_without_end_finds_the_best_node_of_small_lattices(
    table: SmallTable, limit: Fraction
) -> None:
    task = table.task(
        [KAnonymity(k=2)], suppression_limit=limit, options={"search": "heuristic", "budget": len(table.nodes())}
    )
    losses = exhaustive(table, [KAnonymity(k=2)], loss="ncp", allowed=task.allowed)
    assume(losses)
    assert losses[levels(optimal(task))] == pytest.approx(min(losses.values()), abs=1e-9)


@given(small_tables(), st.sampled_from(MODELS), LIMITS, st.randoms())
def test_the_order_of_rows_does_not_matter(
    table: SmallTable, models: tuple[Any, ...], limit: Fraction, random: Any
) -> None:
    rows = list(table.rows)
    random.shuffle(rows)
    other = replace(table, rows=tuple(rows))
    first = optimal(table.task(models, suppression_limit=limit))
    second = optimal(other.task(models, suppression_limit=limit))
    assert first.facts == second.facts
    assert np.array_equal(first.partition.groups, second.partition.groups)


@given(small_tables(), st.sampled_from(MODELS))
def test_rows_that_a_node_suppresses_for_a_hereditary_check_are_suppressed_at_every_finer_node(
    table: SmallTable, models: tuple[Any, ...]
) -> None:
    hereditary = [model for model in models if check_of(model).is_hereditary]
    kept = {node: {id(row) for rows in released(table, node, hereditary) for row in rows} for node in table.nodes()}
    for node, rows in kept.items():
        for parent in GeneralizationLattice(table.top).parents(node):
            assert rows <= kept[parent]


def test_the_lattice_of_the_worked_example_has_twelve_nodes() -> None:
    lattice = GeneralizationLattice((2, 1, 1))
    assert lattice.size == 12
    heights = [sum(node) for node in itertools.product(*map(range, lattice.shape))]
    assert np.bincount(heights).tolist() == [1, 3, 4, 3, 1]


TWO = SmallTable(
    trees=(((0, 1, 2, 3), (0, 0, 1, 1), (0, 0, 0, 0)), ((0, 1), (0, 0))),
    weights=(1.0, 1.0),
    rows=tuple(((leaf, leaf % 2), leaf % 3, leaf) for leaf in (0, 0, 1, 1, 2, 3, 3)),
)


def test_more_nodes_than_the_limit_are_refused_with_the_way_out() -> None:
    task = TWO.task([KAnonymity(k=2)], options={"node_limit": 5})
    with pytest.raises(LatticeTooLargeError, match='search="heuristic"') as raised:
        optimal(task)
    assert (raised.value.nodes, raised.value.limit) == (6, 5)


def test_a_heuristic_search_does_not_mind_the_limit_and_admits_that_nothing_is_proven() -> None:
    outcome = optimal(TWO.task([KAnonymity(k=2)], options={"node_limit": 5, "search": "heuristic", "budget": 4}))
    assert outcome.facts["is_optimal"] is False
    assert "A better generalization may exist" in outcome.notes[0]


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        ({"loss": "nothing"}, "ncp, precision"),
        ({"options": {"search": "quick"}}, "exact, heuristic"),
        ({"options": {"node_limit": 0}}, "node_limit=1"),
        ({"options": {"search": "heuristic", "budget": 0}}, "budget=1"),
    ],
)
def test_odd_settings_are_refused(settings: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        optimal(TWO.task([KAnonymity(k=2)], **settings))


@pytest.mark.parametrize("search", ["exact", "heuristic"])
def test_progress_is_told_as_a_growing_share(search: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.anonymize.algorithms.lattice._search._REPORT_EVERY", 1)
    shares = []
    task = TWO.task(
        [KAnonymity(k=2)],
        options={"search": search, "budget": 4},
        progress=lambda share, what: shares.append((share, what)),
    )
    optimal(task)
    assert [share for share, _ in shares] == sorted(share for share, _ in shares)
    assert all(0 <= share <= 1 for share, _ in shares)
    assert {what for _, what in shares} == {"searching generalizations"}


def test_models_that_nothing_satisfies_leave_nothing_but_suppressed_rows() -> None:
    outcome = optimal(TWO.task([LDiversity("s", l=4)]))
    assert outcome.partition.suppressed == len(TWO.rows)


def test_classes_are_those_of_a_full_domain_recoding() -> None:
    outcome = optimal(TWO.task([KAnonymity(k=2)]))
    assert outcome.partition.levels == levels(outcome)
    again = full_domain(outcome.partition.cells, levels(outcome))
    assert np.array_equal(again.groups, outcome.partition.groups)
