"""One row that is far from all others is left out where that may be done and loses less than keeping it."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize._partition import Partition, whole
from cloister.anonymize.algorithms import _outliers as outliers
from cloister.anonymize.cells import read_cells
from cloister.anonymize.regions import Regions, Values
from cloister.core.random import SeededRandomSource, integers_below
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import UnsatisfiableError

AGES = Hierarchy.intervals((0, 128), widths=[8, 16, 32, 64])
SCHEMA = Schema(
    [
        Column(name="age", kind="numeric", hierarchy=AGES),
        Column(name="town", hierarchy=Hierarchy.taxonomy({"coast": ["kiel", "emden"], "hills": ["ulm", "celle"]})),
        Column(name="disease", role="sensitive"),
    ]
)
WAYS = [
    ("mondrian", "hierarchy"),
    ("mondrian", "sets"),
    ("mondrian", "centers"),
    ("top_down", "hierarchy"),
    ("clustering", "hierarchy"),
    ("clustering", "sets"),
]


def crowd(ages: list[int], towns: list[str], diseases: list[str] | None = None) -> Table:
    diseases = diseases or [("flu", "cold", "angina")[place % 3] for place in range(len(ages))]
    return cl.open_table(pa.table({"age": ages, "town": towns, "disease": diseases}), schema=SCHEMA)


@cache
def with_outlier() -> Table:
    """Return 40 rows in two towns and narrow ages, and one that shares neither."""
    towns = [("kiel", "emden")[place % 2] for place in range(40)]
    return crowd([*(place // 8 for place in range(40)), 127], [*towns, "ulm"])


@pytest.mark.parametrize(("algorithm", "values"), WAYS)
@pytest.mark.parametrize("models", [(cl.KAnonymity(k=4),), (cl.KAnonymity(k=4), cl.LDiversity("disease", l=2))])
def test_one_far_outlier_is_left_out(algorithm: str, values: str, models: Any) -> None:
    settings: dict[str, Any] = {"models": models, "algorithm": algorithm, "values": values}
    kept = cl.anonymize(with_outlier(), **settings)
    freed = cl.anonymize(with_outlier(), **settings, suppression_limit="0.05")
    assert (kept.suppressed, freed.suppressed) == (0, 1)
    assert freed.ncp < kept.ncp
    assert all(check.holds(freed.classes).all() for check in freed.checks)
    shown = freed.table.to_arrow()
    assert shown.num_rows == 40
    assert "ulm" not in shown.column("town").to_pylist()


@pytest.mark.parametrize(("algorithm", "values"), WAYS)
def test_the_same_rows_are_left_out_every_time(algorithm: str, values: str) -> None:
    settings: dict[str, Any] = {"models": [cl.KAnonymity(k=4)], "algorithm": algorithm, "values": values}
    made = [cl.anonymize(with_outlier(), **settings, suppression_limit="0.1") for _ in range(2)]
    assert made[0].table.to_arrow().equals(made[1].table.to_arrow())


@pytest.mark.parametrize("algorithm", ["mondrian", "top_down", "clustering"])
def test_a_limit_without_room_for_a_row_changes_nothing(algorithm: str) -> None:
    for limit in (0, "0.02"):
        release = cl.anonymize(
            with_outlier(), models=[cl.KAnonymity(k=4)], algorithm=algorithm, suppression_limit=limit
        )
        assert release.suppressed == 0


@pytest.mark.parametrize("algorithm", ["mondrian", "top_down", "clustering"])
def test_nothing_is_left_out_where_that_would_lose_more(algorithm: str) -> None:
    table = crowd([place // 8 for place in range(40)], ["kiel"] * 40)
    release = cl.anonymize(table, models=[cl.KAnonymity(k=4)], algorithm=algorithm, suppression_limit="0.5")
    assert release.suppressed == 0


@pytest.mark.parametrize("algorithm", ["mondrian", "top_down", "clustering"])
def test_models_that_the_whole_table_fails_are_met_by_leaving_rows_out(algorithm: str) -> None:
    # In one town everybody has the flu, and in all rows together two in three: only without that town it holds.
    models = [cl.LDiversity("disease", l=2, kind="frequency")]
    table = crowd([1] * 24, ["kiel"] * 8 + ["emden"] * 8 + ["ulm"] * 8, ["flu", "cold"] * 8 + ["flu"] * 8)
    with pytest.raises(UnsatisfiableError):
        cl.anonymize(table, models=models, algorithm=algorithm)
    release = cl.anonymize(table, models=models, algorithm=algorithm, suppression_limit="0.4")
    assert release.suppressed == 8
    assert all(check.holds(release.classes).all() for check in release.checks)


def test_too_many_levels_leave_the_refusal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        importlib.import_module("cloister.anonymize.algorithms.lattice.optimal"), "DEFAULT_NODE_LIMIT", 1
    )
    table = crowd([1] * 24, ["kiel"] * 8 + ["emden"] * 8 + ["ulm"] * 8, ["flu", "cold"] * 8 + ["flu"] * 8)
    models = [cl.LDiversity("disease", l=2, kind="frequency")]
    with pytest.raises(UnsatisfiableError):
        cl.anonymize(table, models=models, algorithm="mondrian", suppression_limit="0.4")


def test_models_that_no_part_satisfies_within_the_limit_are_refused() -> None:
    table = crowd([1] * 24, ["kiel"] * 8 + ["emden"] * 8 + ["ulm"] * 8, ["flu", "cold"] * 8 + ["flu"] * 8)
    models = [cl.LDiversity("disease", l=2, kind="frequency")]
    with pytest.raises(UnsatisfiableError):
        cl.anonymize(table, models=models, algorithm="top_down", suppression_limit="0.1")


@pytest.mark.parametrize("values", [Values.HIERARCHY, Values.SETS])
def test_the_loss_without_a_member_is_that_of_the_class_without_it(values: Values) -> None:
    """The arrays agree with the plain way: take each member out and measure its class again."""
    source = SeededRandomSource(5)
    ages = integers_below(source, 128, 60)
    towns = [("kiel", "emden", "ulm", "celle")[code] for code in integers_below(source, 4, 60)]
    held = [None if place % 9 == 0 else int(age) for place, age in enumerate(ages)]
    cells = read_cells(crowd(held, towns), SCHEMA, quasi=("age", "town"))  # type: ignore[arg-type]  # missing ages
    groups = np.arange(len(cells)) * 7 % 11
    partition = whole(cells, groups)
    regions = Regions(partition=partition, values=values)
    classes, owners = groups[np.argsort(groups, kind="stable")], np.argsort(groups, kind="stable")
    found = outliers._losses_without(regions, classes, owners)
    for number, owner in enumerate(owners):
        rest = np.where((groups == classes[number]) & (np.arange(len(cells)) != owner), 0, -1)
        alone = Regions(partition=whole(cells, rest), values=values)
        expected = float((alone.losses @ cells.weights_of_attributes)[0]) if (rest == 0).any() else 0.0
        assert found[number] == pytest.approx(expected, abs=1e-12)


def test_rows_that_were_set_aside_come_back_as_suppressed() -> None:
    cells = read_cells(with_outlier(), SCHEMA, quasi=("age", "town"))
    kept = cells.record_weights.copy()
    kept[0] = 0
    kept[1] -= 1
    records = np.flatnonzero(kept)
    part = outliers._restrict_cells(cells, records, kept)
    assert part.total == kept.sum()
    lifted: Partition = outliers._lift_partition(whole(part, np.zeros(len(part), np.int64)), cells, records, kept)
    assert lifted.suppressed == cells.total - kept.sum()
    assert np.array_equal(outliers._count_kept(lifted), kept)


def test_clustering_keeps_rows_without_which_presence_would_fail() -> None:
    """Each class by itself may be present enough, and all of them together not: then nothing is left out."""
    table = cl.open_table(pa.table({"town": ["kiel", "ulm"]}), schema=SCHEMA.without("age", "disease"))
    population = cl.open_table(pa.table({"town": ["kiel", "ulm", "kiel"]}), schema=SCHEMA.without("age", "disease"))
    model = cl.DeltaPresence(delta_min="1/4", delta_max="3/4")
    release = cl.anonymize(table, models=[model], algorithm="clustering", suppression_limit=1, population=population)
    assert release.suppressed == 0
