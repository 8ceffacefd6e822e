"""Marginals chosen where they are needed: what is refused before anything is paid."""

from __future__ import annotations

import time
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import ParameterError
from cloister.synth import AdaptiveMarginals, load
from tests.synth.toys import ACCOUNT, book, people


def wide_table(columns: int) -> Table:
    names = [f"c{place}" for place in range(columns)]
    described = {name: {"kind": "numeric", "bounds": [0, 9]} for name in names}
    return open_table(pa.table({name: [1, 2] for name in names}), schema=Schema.from_dict({"columns": described}))


@pytest.mark.parametrize("workload", [[["age", "age"]], [["age", "color", "age"]], [["age"]], []])
def test_sets_that_are_no_sets_of_columns_are_refused_before_paying(workload: Any) -> None:
    ledger = book()
    with pytest.raises(ParameterError, match="Fix: "):
        AdaptiveMarginals(workload=workload, bins=3, ledger=ledger, dataset=ACCOUNT).fit(people())
    assert not ledger.spent(ACCOUNT).amount


@pytest.mark.parametrize(("columns", "degree"), [(60, 20), (60, 6), (40, 4)])
def test_a_workload_that_no_computer_could_count_is_refused_at_once(columns: int, degree: int) -> None:
    start = time.process_time()
    with pytest.raises(ParameterError, match=r"Fix: .*degree"):
        AdaptiveMarginals(degree=degree).expected(wide_table(columns))
    assert time.process_time() - start < 10


def test_candidates_weigh_as_much_as_the_workload_overlaps_them() -> None:
    made = AdaptiveMarginals(workload=[["c0", "c1", "c2"], ["c1", "c2"], ["c3", "c1"], ["c1", "c2"]])
    asked = [(0, 1, 2), (1, 2), (1, 3), (1, 2)]
    weights = made._weights(made.declared(wide_table(4)))
    parts = {part for item in asked for size in (2, 3) for part in combinations(item, size)}
    assert weights == {part: sum(len({*part} & {*item}) for item in asked) for part in parts}


@pytest.mark.slow
def test_sixty_columns_are_modeled(tmp_path: Path) -> None:
    names = [f"c{place}" for place in range(60)]
    far = [["c0", "c59"], ["c59", "c30"], ["c30", "c58"], ["c0", "c30", "c58"]]
    ledger = book()
    made = AdaptiveMarginals(epsilon=1, bins=2, complete=True, workload=far, ledger=ledger, dataset=ACCOUNT)
    made.fit(wide_table(60))
    assert ledger.spent(ACCOUNT).amount == 1
    assert made.sample(5).columns == tuple(names)
    made.save(tmp_path / "wide.cloister")
    assert load(tmp_path / "wide.cloister").marginal(["c2", "c57", "c59"]).shape == (2, 2, 2)
