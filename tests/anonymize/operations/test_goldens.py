from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.operations import (
    Generalize,
    Recipe,
    SuppressRecords,
    estimate_shares,
    estimate_yes_share,
    matrix_epsilon,
    response_matrix,
    two_coin_matrix,
)
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


def _diagonal(*, categories: int, epsilon: object) -> list[float]:
    first = response_matrix(categories, epsilon=epsilon)[0]
    assert sum(first) == 1
    assert len(set(first[1:])) == 1
    return [float(first[0]), float(first[1])]


def _told(*, share: str, truth: str, second: str) -> Fraction:
    matrix = two_coin_matrix(truth=truth, second=second)
    return (1 - Fraction(share)) * matrix[0][1] + Fraction(share) * matrix[1][1]


def _epsilon(*, matrix: Any) -> float:
    epsilon = matrix_epsilon(matrix)
    return math.inf if epsilon is None else float(epsilon)


FUNCTIONS: dict[str, Any] = {
    "corrected_shares": estimate_shares,
    "generalized_values": _generalized,
    "matrix_epsilon": _epsilon,
    "refused_interval": _refusal,
    "response_matrix": _diagonal,
    "response_matrix_of_one": _diagonal,
    "suppressed_table": _suppressed,
    "told_yes": _told,
    "yes_share": estimate_yes_share,
}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
