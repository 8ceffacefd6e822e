from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.operations import Generalize, Recipe, SuppressRecords
from cloister.errors import HierarchyError, ParameterError
from cloister.testing import check_golden, load_goldens

FOLDER = Path(__file__).parents[2] / "golden" / "anonymize" / "operations"


def _generalized(
    *, values: list[Any], intervals: Any = (), tree: Any = None, level: int | None = None
) -> list[str | None]:
    hierarchy = None if tree is None else cl.Hierarchy.taxonomy(tree)
    operation = Generalize("v", intervals=intervals, hierarchy=hierarchy, level=level)
    return operation.apply(pa.table({"v": values})).to_arrow()["v"].to_pylist()


def _suppressed(*, rows: Any, suppress: str, labels: Any, intervals: Any) -> dict[str, Any]:
    zips, ages = zip(*rows, strict=True)
    hierarchy = cl.Hierarchy.masking(["33617", "23620", "23622"])
    recipe = Recipe(
        (
            SuppressRecords(where=suppress),
            Generalize("zip", labels=labels, hierarchy=hierarchy),
            Generalize("age", intervals=intervals),
        )
    )
    prepared = recipe.run(pa.table({"zip": zips, "age": ages}))
    found = prepared.table.to_arrow()
    pairs = zip(found["zip"].to_pylist(), found["age"].to_pylist(), strict=True)
    return {"rows": [list(pair) for pair in pairs], "suppression_rate": prepared.log[0].suppression_rate}


def _refusal(*, ages: list[int], intervals: list[str]) -> Any:
    try:
        return _generalized(values=ages, intervals=intervals)
    except (HierarchyError, ParameterError):
        return "refused"


FUNCTIONS: dict[str, Any] = {
    "generalized_values": _generalized,
    "refused_interval": _refusal,
    "suppressed_table": _suppressed,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
