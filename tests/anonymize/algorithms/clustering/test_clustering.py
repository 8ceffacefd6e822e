from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from cloister.anonymize._partition import verify, whole
from cloister.anonymize._suppression import suppress_failing
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.algorithms.clustering import clustering
from cloister.anonymize.algorithms.lattice import optimal
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import all_hold, all_hold_together, check_of, classes_of
from cloister.anonymize.regions import Regions, Values
from cloister.core.guarantees import KAnonymity, LDiversity, TCloseness
from cloister.data.columns import Column, Kind
from cloister.data.hierarchy import Hierarchy
from cloister.errors import CloisterError
from tests.anonymize.tables import coded
from tests.support.adult import adult_cells
from tests.support.clusters import greedy_clustering, loss_row_by_row, mixed_cells
from tests.support.lattices import MODELS, SmallTable, small_tables

WAYS = st.sampled_from([Values.HIERARCHY, Values.SETS, Values.CENTERS])
LIMITS = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1)])


def task_of(cells: CodedCells, *models: Any, values: Values = Values.HIERARCHY, **options: Any) -> Task:
    return Task(cells=cells, checks=tuple(map(check_of, models)), values=values, options=options)


def loss_of(outcome: AlgorithmOutcome, values: Values) -> float:
    return Regions(partition=outcome.partition, values=values).loss()


@given(mixed_cells(), st.integers(1, 7), WAYS, st.integers(0, 3))
def test_every_class_has_k_rows_and_no_row_is_lost(cells: CodedCells, k: int, values: Values, passes: int) -> None:
    outcome = clustering(task_of(cells, KAnonymity(k=k), values=values, passes=passes))
    verify(outcome.partition)
    rows = classes_of(outcome.partition).rows
    assert outcome.partition.suppressed == 0
    assert (rows >= min(k, cells.total)).all()


@given(mixed_cells(), st.integers(2, 7), st.sampled_from([Values.HIERARCHY, Values.SETS]), st.integers(0, 2))
def test_the_loss_is_the_loss_of_a_plain_evaluation(cells: CodedCells, k: int, values: Values, passes: int) -> None:
    partition = clustering(task_of(cells, KAnonymity(k=k), values=values, passes=passes)).partition
    assert Regions(partition=partition, values=values).loss() == pytest.approx(loss_row_by_row(partition, values))


@given(mixed_cells(), st.integers(2, 5), st.sampled_from([Values.HIERARCHY, Values.SETS]))
def test_exchanging_rows_never_raises_the_loss(cells: CodedCells, k: int, values: Values) -> None:
    losses = [
        loss_of(clustering(task_of(cells, KAnonymity(k=k), values=values, passes=passes)), values)
        for passes in range(4)
    ]
    assert all(later <= earlier + 1e-6 for earlier, later in pairwise(losses))


@given(small_tables(), st.sampled_from(MODELS), st.sampled_from([Values.HIERARCHY, Values.SETS]), LIMITS)
def test_all_models_hold_within_the_suppression_limit(
    table: SmallTable, models: tuple[Any, ...], values: Values, limit: Fraction
) -> None:
    task = table.task(models, values=values, suppression_limit=limit)
    everything = whole(task.cells, np.zeros(len(task.cells), dtype=np.int64))
    assume(all_hold_together(task.checks, classes_of(everything, values=values)).all())
    outcome = clustering(task)
    partition = suppress_failing(outcome.partition, task.checks, values=outcome.values, allowed=task.allowed)
    assert all_hold_together(task.checks, classes_of(partition, values=values)).all()
    assert partition.suppressed <= task.allowed


@given(mixed_cells(), st.integers(2, 5), st.sampled_from([Values.HIERARCHY, Values.SETS]))
def test_the_same_table_gives_the_same_classes(cells: CodedCells, k: int, values: Values) -> None:
    first, second = (clustering(task_of(cells, KAnonymity(k=k), values=values)).partition for _ in range(2))
    assert np.array_equal(first.records, second.records)
    assert np.array_equal(first.groups, second.groups)
    assert np.array_equal(first.counts, second.counts)


@pytest.mark.parametrize("values", [Values.HIERARCHY, Values.SETS])
@pytest.mark.parametrize(("k", "step"), [(2, 7), (3, 11), (4, 13), (5, 17)])
def test_the_loss_is_below_that_of_textbook_clustering(values: Values, k: int, step: int) -> None:
    colors = ["red", "green", "blue", "gray", "pink", "teal"]
    rows = [
        [20 + number * number % 41, colors[number * step % 6], "fm"[number // 5 % 2], colors[number**3 % 5]]
        for number in range(120)
    ]
    columns = [Column(name="age", kind=Kind.NUMERIC), *(Column(name=name) for name in ("color", "sex", "shade"))]
    cells = coded(rows, columns)
    found = loss_of(clustering(task_of(cells, KAnonymity(k=k), values=values)), values)
    assert found <= greedy_clustering(cells, k=k, values=values)


def test_cells_that_are_large_enough_stay_exact() -> None:
    cells = coded([[30], [30], [30], [40], [40], [40]], [Column(name="age", kind=Kind.NUMERIC)])
    outcome = clustering(task_of(cells, KAnonymity(k=3)))
    assert outcome.partition.size == 2
    assert loss_of(outcome, Values.HIERARCHY) == 0


def test_a_large_cell_lends_rows_instead_of_being_generalized() -> None:
    columns = [Column(name="age", kind=Kind.NUMERIC), Column(name="sex")]
    cells = coded([*[[30, "f"]] * 20, [31, "f"], *[[60, "m"]] * 20], columns)
    outcome = clustering(task_of(cells, KAnonymity(k=5), values=Values.SETS))
    assert sorted(classes_of(outcome.partition).rows.tolist()) == [5, 16, 20]
    assert outcome.partition.is_split


def test_a_lone_row_takes_the_whole_cell_when_none_can_lend() -> None:
    cells = coded([*[[30]] * 5, [31], *[[60]] * 5], [Column(name="age", kind=Kind.NUMERIC)])
    outcome = clustering(task_of(cells, KAnonymity(k=5), values=Values.SETS))
    assert sorted(classes_of(outcome.partition).rows.tolist()) == [5, 6]


def test_fewer_rows_than_k_are_refused_by_the_last_check() -> None:
    task = task_of(coded([[1], [2]], [Column(name="age", kind=Kind.NUMERIC)]), KAnonymity(k=5))
    outcome = clustering(task)
    assert outcome.partition.size == 1
    with pytest.raises(CloisterError):
        suppress_failing(outcome.partition, task.checks, values=task.values, allowed=0)


def test_rows_are_suppressed_where_that_is_allowed_and_loses_less() -> None:
    columns = [Column(name="place"), Column(name="ill", role="sensitive")]
    rows = [[place, ill] for place in "abcdefgh" for ill in ("yes", "no") for _ in range(4)] + [["z", "yes"]] * 4
    cells = coded(rows, columns)
    task = Task(
        cells=cells,
        checks=(check_of(LDiversity("ill", l=2, kind="entropy")),),
        suppression_limit=Fraction(1, 10),
    )
    partition = suppress_failing(clustering(task).partition, task.checks, values=task.values, allowed=task.allowed)
    assert partition.suppressed == 4
    assert Regions(partition=partition).losses.sum() == 0


def test_a_heavier_column_is_kept_more_precise() -> None:
    rows = [[age, place] for age in range(20) for place in "abcdefghij"]
    columns = [Column(name="age", kind=Kind.NUMERIC), Column(name="place")]
    cells = coded(rows, columns)
    losses = []
    for weight in (1.0, 20.0):
        task = task_of(cells.with_weights({"place": weight}), KAnonymity(k=4), values=Values.SETS)
        losses.append(Regions(partition=clustering(task).partition, values=Values.SETS).attribute_losses())
    assert losses[1][1] <= losses[0][1]
    assert losses[1][1] == 0


@pytest.mark.slow
def test_many_columns_climb_together() -> None:
    rows = [[(row >> place) % 2 for place in range(18)] for row in range(0, 2**18, 2999)]
    cells = coded(rows, [Column(name=f"c{place}") for place in range(18)])
    for values in (Values.HIERARCHY, Values.SETS):
        outcome = clustering(task_of(cells, KAnonymity(k=3), values=values))
        assert (classes_of(outcome.partition).rows >= 3).all()
        assert loss_of(outcome, values) < 0.6


def test_a_long_list_of_names_is_grouped_by_its_hierarchy() -> None:
    names = Hierarchy.masking(3)
    rows = [[f"{number:03}"] for number in range(0, 1000, 3)]
    cells = coded(rows, [Column(name="zip", hierarchy=names)])
    for values, most in ((Values.HIERARCHY, 0.02), (Values.SETS, 0.01)):
        assert loss_of(clustering(task_of(cells, KAnonymity(k=3), values=values)), values) < most


@pytest.mark.slow
@pytest.mark.parametrize(("values", "most"), [(Values.HIERARCHY, 0.0490), (Values.SETS, 0.0180)])
def test_adult_loses_less_than_the_best_known(shared_data: Path, values: Values, most: float) -> None:
    cells = adult_cells(shared_data)
    outcome = clustering(task_of(cells, KAnonymity(k=5), values=values))
    assert (classes_of(outcome.partition).rows >= 5).all()
    assert loss_of(outcome, values) < most


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [LDiversity("salary-class", l=2), TCloseness("salary-class", t=Fraction(1, 5))], ids=["diverse", "close"]
)
def test_adult_loses_less_than_after_the_optimal_node_with_other_models_too(shared_data: Path, model: Any) -> None:
    quasi = ("sex", "age", "race", "education")
    cells = adult_cells(shared_data, quasi=quasi)
    task = task_of(cells, KAnonymity(k=5), model)
    outcome = clustering(task)
    assert all_hold(task.checks, classes_of(outcome.partition)).all()
    other = optimal(task_of(cells, KAnonymity(k=5), model, recoding="local"))
    assert loss_of(outcome, Values.HIERARCHY) < loss_of(other, Values.HIERARCHY)
