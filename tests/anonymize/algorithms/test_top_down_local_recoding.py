from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from cloister.anonymize._partition import verify, whole
from cloister.anonymize.algorithms._base import Task
from cloister.anonymize.algorithms.lattice import optimal
from cloister.anonymize.models import all_hold, check_of, classes_of
from cloister.anonymize.regions import Regions
from cloister.core.guarantees import KAnonymity, LDiversity, TCloseness
from cloister.errors import ParameterError
from tests.support.adult import adult_cells
from tests.support.lattices import MODELS, SmallTable, small_tables

LIMITS = st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(1, 4), Fraction(1)])


@given(small_tables(), st.sampled_from(MODELS), LIMITS)
def test_local_recoding_holds_and_never_loses_more_than_the_optimum(
    table: SmallTable, models: tuple[Any, ...], limit: Fraction
) -> None:
    task = table.task(models, suppression_limit=limit)
    everything = whole(task.cells, np.zeros(len(task.cells), dtype=np.int64))
    assume(all_hold(task.checks, classes_of(everything)).all())
    plain = optimal(task).partition
    local = optimal(table.task(models, suppression_limit=limit, options={"recoding": "local"})).partition
    verify(local)
    assert all_hold(task.checks, classes_of(local)).all()
    assert local.suppressed <= task.allowed
    assert Regions(partition=local).loss() <= Regions(partition=plain).loss() + 1e-12


def test_models_that_nothing_satisfies_suppress_everything() -> None:
    table = SmallTable(trees=(((0, 1), (0, 0)),), weights=(1.0,), rows=(((0,), 0, 0), ((1,), 1, 1)))
    task = table.task([LDiversity("s", l=3)], options={"recoding": "local"})
    assert optimal(task).partition.suppressed == 2


def test_another_recoding_is_refused() -> None:
    table = SmallTable(trees=(((0, 1), (0, 0)),), weights=(1.0,), rows=(((0,), 0, 0),))
    with pytest.raises(ParameterError, match="full_domain, local"):
        optimal(table.task([KAnonymity(k=1)], options={"recoding": "global"}))


@pytest.mark.parametrize(
    ("models", "most"),
    [
        ((KAnonymity(k=5),), 0.0605),
        ((KAnonymity(k=5), LDiversity("salary-class", l=2)), 0.14),
        ((KAnonymity(k=5), TCloseness("salary-class", t="0.2")), 0.36),
    ],
)
def test_adult_is_recoded_to_a_much_smaller_loss_than_the_optimum(
    shared_data: Path, models: tuple[Any, ...], most: float
) -> None:
    checks = tuple(map(check_of, models))
    cells = adult_cells(shared_data)
    outcome = optimal(Task(cells=cells, checks=checks, options={"recoding": "local"}))
    assert outcome.facts["recoding"] == "local"
    assert all_hold(checks, classes_of(outcome.partition)).all()
    assert Regions(partition=outcome.partition).loss() < most
