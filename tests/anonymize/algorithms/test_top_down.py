from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from cloister.anonymize._partition import Partition, verify, whole
from cloister.anonymize.algorithms._base import Task
from cloister.anonymize.algorithms.top_down import SCORES, top_down
from cloister.anonymize.models import all_hold, check_of, classes_of, overall_counts
from cloister.anonymize.models.equivalence_classes import classes_of_cells
from cloister.anonymize.regions import Regions
from cloister.core.guarantees import KAnonymity, LDiversity
from cloister.errors import ParameterError
from tests.support.adult import adult_cells
from tests.support.lattices import MODELS, SmallTable, small_tables

OPTIONS = st.fixed_dictionaries({"score": st.sampled_from(sorted(SCORES)), "keep_rest": st.booleans()})


def is_satisfiable(task: Task) -> bool:
    everything = whole(task.cells, np.zeros(len(task.cells), dtype=np.int64))
    return bool(all_hold(task.checks, classes_of(everything)).all())


def cell_groups(partition: Partition) -> np.ndarray[Any, Any]:
    groups = np.zeros(len(partition.cells), dtype=np.int64)
    groups[partition.line_cells] = partition.groups
    return groups


def steps_left(task: Task, partition: Partition) -> int:
    """Count the specializations of single classes after which every child would still hold."""
    groups, regions, cells, left = cell_groups(partition), Regions(partition=partition), task.cells, 0
    for number in range(partition.size):
        members = np.flatnonzero(groups == number)
        for place, attribute in enumerate(cells.attributes):
            level = int(regions.levels[number, place])
            if level == 0:
                continue
            nodes = attribute.ancestors[level - 1][cells.codes[members, place]]
            children = np.full(len(cells), -1, dtype=np.int64)
            children[members] = np.unique(nodes, return_inverse=True)[1]
            size = int(children.max()) + 1
            classes = classes_of_cells(cells, children, size, overall=overall_counts(cells))
            left += bool(all_hold(task.checks, classes).all())
    return left


@given(small_tables(), st.sampled_from(MODELS), OPTIONS)
def test_every_class_holds_and_none_can_be_specialized_further(
    table: SmallTable, models: tuple[Any, ...], options: dict[str, Any]
) -> None:
    task = table.task(models, options=options)
    assume(is_satisfiable(task))
    partition = top_down(task).partition
    verify(partition)
    assert partition.suppressed == 0
    assert all_hold(task.checks, classes_of(partition)).all()
    assert steps_left(task, partition) == 0


@given(small_tables(), st.sampled_from(MODELS), OPTIONS, st.randoms())
def test_the_order_of_rows_does_not_matter(
    table: SmallTable, models: tuple[Any, ...], options: dict[str, Any], random: Any
) -> None:
    rows = list(table.rows)
    random.shuffle(rows)
    other = replace(table, rows=tuple(rows))
    first, second = (top_down(item.task(models, options=options)).partition for item in (table, other))
    assert np.array_equal(first.groups, second.groups)


def test_models_that_nothing_satisfies_leave_one_class() -> None:
    table = SmallTable(
        trees=(((0, 1), (0, 0)),), weights=(1.0,), rows=(((0,), 0, 0), ((0,), 1, 1), ((1,), 0, 2), ((1,), 1, 3))
    )
    assert top_down(table.task([LDiversity("s", l=3)])).partition.size == 1
    assert top_down(table.task([LDiversity("s", l=2)])).partition.size == 2


def test_rows_that_would_stand_alone_stay_together_under_the_node_above() -> None:
    leaves = (0, 0, 1, 1, 2, 3)
    table = SmallTable(
        trees=(((0, 1, 2, 3), (0, 0, 0, 0)),), weights=(1.0,), rows=tuple(((leaf,), 0, 0) for leaf in leaves)
    )
    with_rest = top_down(table.task([KAnonymity(k=2)])).partition
    assert sorted(Regions(partition=with_rest).labels(0)) == ["q0.0.0", "q0.0.1", "q0.1.0"]
    strict = top_down(table.task([KAnonymity(k=2)], options={"keep_rest": False})).partition
    assert list(Regions(partition=strict).labels(0)) == ["q0.1.0"]


@pytest.mark.parametrize(
    ("settings", "fix"),
    [({"options": {"score": "best"}}, "branching, anonymity, children"), ({"loss": "pain"}, "ncp, precision, entropy")],
)
def test_an_unknown_score_or_loss_is_refused(settings: dict[str, Any], fix: str) -> None:
    table = SmallTable(trees=(((0, 1), (0, 0)),), weights=(1.0,), rows=(((0,), 0, 0),))
    with pytest.raises(ParameterError, match=fix):
        top_down(table.task([KAnonymity(k=1)], **settings))


def test_progress_is_told_up_to_the_end() -> None:
    table = SmallTable(trees=(((0, 1), (0, 0)),), weights=(1.0,), rows=(((0,), 0, 0), ((1,), 0, 1)))
    shares: list[float] = []
    top_down(table.task([KAnonymity(k=1)], progress=lambda share, _: shares.append(share)))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_adult_is_specialized_to_a_small_loss(shared_data: Path) -> None:
    cells = adult_cells(shared_data)
    partition = top_down(Task(cells=cells, checks=(check_of(KAnonymity(k=5)),))).partition
    assert Regions(partition=partition).loss() < 0.066
