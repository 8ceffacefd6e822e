from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import cloister as cl
from cloister.anonymize.algorithms._base import Task
from cloister.anonymize.algorithms.mdav import mdav
from cloister.anonymize.algorithms.mondrian import mondrian
from cloister.anonymize.anatomy import anatomize
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import check_of, classes_of
from cloister.anonymize.regions import Regions, Values
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.testing import check_golden, load_goldens
from tests.anonymize.tables import attained, cells_of, classes_from_counts, full_domain
from tests.support import tools

FOLDER = Path(__file__).parents[1] / "golden" / "anonymize"


def _k_of_rows(*, rows: list[list[str]]) -> dict[str, int]:
    table = {f"q{place}": list(column) for place, column in enumerate(zip(*rows, strict=True))}
    cells = cells_of(table, quasi=list(table))
    sizes = attained(cl.KAnonymity(k=1), classes_of(full_domain(cells, (0,) * len(table))))
    return {"k": int(min(sizes)), "unique": sizes.count(1)}


def _diversity(*, counts: list[list[int]]) -> dict[str, list[float]]:
    classes = classes_from_counts(counts)
    return {
        kind: attained(cl.LDiversity("s", l=2, kind=kind), classes) for kind in ("distinct", "frequency", "entropy")
    }


def _recursive(*, counts: list[list[int]], l: int) -> dict[str, list[float]]:  # noqa: E741
    classes = classes_from_counts(counts)
    models = [cl.LDiversity("s", l=l, kind="recursive", c=c) for c in range(1, 6)]
    holds = np.array([check_of(model).holds(classes) for model in models])
    smallest = [int(line.argmax()) + 1 if line.any() else -1 for line in holds.T]
    return {"above": attained(models[0], classes), "smallest_whole": smallest}


def _closeness(
    *, counts: list[list[int]], kinds: list[str], overall: list[int] | None = None
) -> dict[str, list[float]]:
    classes = classes_from_counts(counts, overall=overall)
    return {kind: attained(cl.TCloseness("s", t=1, kind=kind), classes, len(counts)) for kind in kinds}


def _diseases(*, classes: list[list[str]], tree: dict[str, list[str]]) -> dict[str, list[float]]:
    disease = Column(name="disease", role="sensitive", hierarchy=Hierarchy.taxonomy(tree))
    rows = {
        "class": np.repeat(np.arange(len(classes)), [len(line) for line in classes]).tolist(),
        "disease": [name for line in classes for name in line],
    }
    found = classes_of(full_domain(cells_of(rows, [disease], quasi=["class"], sensitive=["disease"]), (0,)))
    return {kind: attained(cl.TCloseness("disease", t=1, kind=kind), found) for kind in ("equal", "hierarchical")}


@cache
def adult_cells() -> CodedCells:
    folder = tools.shared_data() / "adult"
    rows = pa.concat_tables([pyarrow.csv.read_csv(folder / name) for name in ("adult.csv", "adult_test.csv")])
    columns = [Column(name="age", kind="numeric"), Column(name="education-num", kind="numeric")]
    chosen = rows.select(["age", "education-num", "salary-class"])
    return cells_of(chosen, columns, quasi=["age", "education-num"], sensitive=["salary-class"])


MODELS: dict[str, Sequence[Any]] = {
    "none": (),
    "diversity": (cl.LDiversity("salary-class", l=2),),
    "closeness": (cl.TCloseness("salary-class", t=0.2, kind="variational"),),
}


def _mondrian(*, k: int, model: str) -> dict[str, Any]:
    checks = tuple(map(check_of, (cl.KAnonymity(k=k), *MODELS[model])))
    task = Task(cells=adult_cells(), checks=checks, values=Values.CENTERS)
    regions = Regions(partition=mondrian(task).partition, values=Values.CENTERS)
    counts = classes_of(regions.partition).histogram("salary-class").dense(0, 3)
    first = zip(regions.labels(0), regions.labels(1), *counts.T, strict=False)
    return {
        "classes": regions.partition.size,
        "first": [[float(number) for number in line] for line in first],
        "discernibility": int((regions.rows**2).sum()),
        "loss": round(regions.loss(), 4),
    }


def _mdav(*, values: list[int], k: int) -> dict[str, Any]:
    cells = cells_of({"x": values}, [Column(name="x", kind="numeric")], quasi=["x"])
    partition = mdav(Task(cells=cells, checks=(check_of(cl.KAnonymity(k=k)),), values=Values.CENTERS)).partition
    means = Regions(partition=partition, values=Values.CENTERS).labels(0).astype(float)
    numbers = np.repeat(np.array(sorted(set(values)), dtype=float)[partition.line_cells], partition.counts)
    groups = np.repeat(partition.groups, partition.counts)
    error, total = ((numbers - means[groups]) ** 2).sum(), ((numbers - numbers.mean()) ** 2).sum()
    return {
        "groups": [sorted(numbers[groups == group].tolist()) for group in range(partition.size)],
        "means": means,
        "squared_error": error,
        "total": total,
        "loss": round(error / total, 4),
    }


def _anatomy(*, l: int) -> dict[str, Any]:  # noqa: E741
    rows = pyarrow.csv.read_csv(tools.shared_data() / "adult" / "adult_complete_9.csv")
    tables = anatomize(rows, quasi=["age", "sex"], sensitive="occupation", l=l)
    return {"groups": tables.groups, "sizes": Counter(tables.sizes.tolist())}


FUNCTIONS: dict[str, Any] = {
    "k_of_released_tables": _k_of_rows,
    "diversity_of_counts": _diversity,
    "recursive_diversity_of_counts": _recursive,
    "closeness_of_counts": _closeness,
    "diseases_of_nine_patients": _diseases,
    "mondrian_adult": _mondrian,
    "mdav_ten_numbers": _mdav,
    "anatomy_adult": _anatomy,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
