"""What every operation keeps, whatever it does: a new one is added to EXAMPLES, or the first test fails."""

from __future__ import annotations

import datetime as dt
import json
import warnings
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.operations import (
    AddNoise,
    BottomCode,
    DropColumn,
    Generalize,
    Operation,
    PostRandomize,
    Pseudonymize,
    RandomTokens,
    ReplaceByModel,
    Round,
    Secret,
    ShiftDates,
    SuppressCells,
    SuppressRecords,
    Swap,
    SwapRecords,
    TopCode,
    operations,
)
from cloister.anonymize.operations.base import OperationContext
from cloister.core.random import random_source
from cloister.errors import CloisterError, PrivacyParameterWarning, UnknownColumnError

KEY = Secret(env="LAWS_KEY")
TABLE = pa.table(
    {
        "n": pa.array([*range(1, 600), 777_000_777]),
        "r": pa.array([0.25 * row for row in range(600)]),
        "t": pa.array(["a", "b", "canary"] * 200),
        "b": pa.array([True, None, False] * 200),
        "d": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=row) for row in range(600)]),
        "who": pa.array([f"person-{row // 2}" for row in range(600)]),
    }
)
EXAMPLES: list[Operation] = [
    AddNoise("r", variance_ratio=0.5),
    AddNoise(["n", "r"], kind="correlated", variance_ratio=0.5),
    AddNoise("r", kind="multiplicative", deviation=0.5),
    BottomCode("d", limit="2020-06-01"),
    DropColumn(["who", "b"]),
    Generalize("n", intervals=["<=100", ">100"]),
    Generalize("t", level=1, hierarchy=cl.Hierarchy.taxonomy({"x": ["a", "b"], "y": ["canary"]})),
    PostRandomize("t", categories=["a", "b", "canary"], epsilon=1),
    PostRandomize("b", categories=[True, False], epsilon=1, invariant=True, include_missing=True),
    Pseudonymize("who", key=KEY, domain="law"),
    Pseudonymize("n", key=KEY, domain="law", reversible=True),
    RandomTokens("who"),
    ReplaceByModel(["r", "t"]),
    Round("r", base=5),
    ShiftDates("d", subject="who", key=KEY, domain="law"),
    SuppressCells(["t", "n"], where="n > 500"),
    SuppressCells("b", marker="*"),
    SuppressRecords(where="t = 'canary'"),
    Swap("n", percent=10, within=["t"]),
    SwapRecords(["t"], fraction=0.5, near=["n", "d"]),
    TopCode("n", limit=100, label="many"),
]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LAWS_KEY", "0123456789abcdef" * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyParameterWarning)
        yield


def _transformed(operation: Operation, table: pa.Table) -> pa.Table:
    return operation.transform(table, OperationContext(schema=None, source=random_source(None)))


def _attempt(operation: Operation, table: pa.Table) -> CloisterError | None:
    """Return why an operation refuses a table, or None when it takes it; other exceptions are bugs."""
    try:
        assert _transformed(operation, table).num_rows <= table.num_rows
    except CloisterError as error:
        return error
    return None


def test_every_operation_has_an_example() -> None:
    assert {example.name for example in EXAMPLES} == set(operations)
    assert all(operations.get(example.name) is type(example) for example in EXAMPLES)


@pytest.mark.parametrize("operation", EXAMPLES, ids=repr)
def test_only_the_named_columns_change(operation: Operation) -> None:
    outcome = operation.run(TABLE)
    after = outcome.table.to_arrow()
    for name in set(TABLE.column_names) - set(operation.affected):
        if outcome.log.rows_removed == 0:
            assert after[name].equals(TABLE[name])
    assert set(outcome.log.cells_changed) <= set(operation.affected)
    assert after.num_rows == TABLE.num_rows - outcome.log.rows_removed
    assert outcome.log.truthful == operation.truthful
    assert json.dumps(outcome.log.to_dict())


@pytest.mark.parametrize("operation", EXAMPLES, ids=repr)
def test_missing_cells_are_not_invented_away(operation: Operation) -> None:
    after = _transformed(operation, TABLE)
    assert isinstance(operation, PostRandomize | SuppressCells | DropColumn | SuppressRecords) or all(
        after[name].null_count == TABLE[name].null_count for name in after.column_names
    )


@pytest.mark.parametrize("operation", EXAMPLES, ids=repr)
def test_no_rows_are_no_problem_or_a_clear_one(operation: Operation) -> None:
    error = _attempt(operation, TABLE.slice(0, 0))
    assert error is None or "no spread" in error.problem


@pytest.mark.parametrize("operation", EXAMPLES, ids=repr)
def test_columns_that_are_missing_throughout(operation: Operation) -> None:
    empty = pa.table([pa.nulls(5, field.type) for field in TABLE.schema], names=TABLE.column_names)
    error = _attempt(operation, empty)
    assert error is None or error.fix


@pytest.mark.parametrize("operation", EXAMPLES, ids=repr)
def test_wrong_types_and_columns_are_refused_without_quoting_cells(operation: Operation) -> None:
    shuffled = TABLE.select(["t", "who", "b", "d", "r", "n"]).rename_columns(TABLE.column_names)
    message = str(_attempt(operation, shuffled)).replace("t = 'canary'", "")
    assert not any(cell in message for cell in ("canary", "person-", "777"))
    column = next(iter(operation.affected), None)
    if column is not None:
        with pytest.raises(UnknownColumnError):
            _transformed(operation, TABLE.drop_columns([column]))


@pytest.mark.parametrize("operation", EXAMPLES, ids=repr)
def test_random_operations_draw_anew_and_others_repeat(operation: Operation) -> None:
    first, second = (_transformed(operation, TABLE) for _ in range(2))
    assert first.equals(second) != operation.is_random


@pytest.mark.parametrize("operation", EXAMPLES, ids=repr)
def test_operations_are_frozen_values_that_survive_plain_form(operation: Operation) -> None:
    plain = json.loads(json.dumps(operation.to_dict()))
    again = operations.get(plain["operation"]).from_dict(plain)
    assert again == operation
    assert replace(again) == operation  # type: ignore[type-var]  # every operation is a dataclass
    with pytest.raises(FrozenInstanceError):
        setattr(operation, next(iter(plain.keys() - {"operation"})), None)


@pytest.mark.parametrize("operation", EXAMPLES, ids=repr)
def test_a_schema_stays_true(operation: Operation) -> None:
    """Opening the result with the restated schema warns when they contradict, and warnings are errors."""
    facts: dict[str, Any] = {
        "n": {"kind": "numeric", "bounds": (0, 10**9)},
        "r": {"kind": "numeric", "storage": "real"},
        "t": {"categories": ["a", "b", "canary"]},
        "b": {"kind": "nominal"},
        "d": {"kind": "datetime", "bounds": ("2020-01-01", "2026-01-01")},
        "who": {"kind": "text", "role": "identifier", "subject": True},
    }
    schema = cl.Schema([cl.Column(name=name, **given) for name, given in facts.items()])
    after = operation.apply(cl.open_table(TABLE, schema=schema))
    assert after.schema.names == after.columns
    assert all(after.schema[name].role == schema[name].role for name in after.columns)
