"""The second wall in every family: a failure that a row decides, injected where rows are looked at, shows nowhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister import Budget, PrivateTable, open_ledger, open_table
from cloister.accounting import failure_count, show_failures
from cloister.accounting.ledger import Ledger
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import CloisterError, DataError
from cloister.learn import PrivateGaussianNB, PrivateLogisticRegression, PrivateSearch, evaluate_privately
from cloister.protocols import distributed_dp_pca
from cloister.protocols.pca import _moments as moments
from cloister.synth import SpanningTree
from cloister.synth.evaluation import evaluate_privately as evaluate_rows_privately
from cloister.testing.hostile import Behavior, observe

# Warnings are compared where they matter; that a few rows are too few to learn from is told for all alike.
pytestmark = [pytest.mark.hidden_failures, pytest.mark.filterwarnings("ignore")]

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 110]},
            "sick": {"role": "sensitive", "kind": "nominal", "categories": ["no", "yes"]},
        }
    }
)
SAFE = pa.table({"age": [31.0, 47.0, 52.0, 28.0], "sick": ["no", "yes", "no", "yes"]})
DEADLY = pa.table({"age": [31.0, 47.0, 52.0, 28.0, 99.0], "sick": ["no", "yes", "no", "yes", "no"]})
"""The same people and Ada, who is 99: whatever looks at her fails."""


def book() -> Ledger:
    ledger = open_ledger("memory:")
    ledger.open_account("people", budget=Budget(epsilon=10), unit="row", adjacency="add_remove")
    return ledger


def opened(rows: pa.Table, schema: Schema | None = SCHEMA) -> Table:
    """Return a table whose engine fails as soon as it looks at Ada's age, as a cast or a function may."""
    connection = duckdb.connect()
    connection.register("people", rows)
    reading = "CASE WHEN age = 99 THEN CAST(error('Ada is 99') AS DOUBLE) ELSE age END"
    return open_table(connection.sql(f"SELECT {reading} AS age, sick FROM people"), schema=schema)


def private(table: Table) -> PrivateTable:
    return PrivateTable(table, ledger=book(), dataset="people")


def model(**options: Any) -> PrivateGaussianNB:
    return PrivateGaussianNB(epsilon=1, bounds={"age": (0, 110)}, classes=["no", "yes"], **options)


def fitted() -> PrivateGaussianNB:
    return model().fit(SAFE.select(["age"]).to_pandas(), SAFE["sick"].to_pylist())


def ask(question: Callable[[PrivateTable], Any]) -> Callable[[Table], str]:
    def run(table: Table) -> str:
        held = private(table)
        answer = question(held)
        repeated = question(held)
        assert not repeated.cost.amount, "it is kept like any other answer"
        return f"{type(answer).__name__} {answer.guarantee.brief()} {held.remaining}"

    return run


def fit_model(table: Table) -> str:
    ledger = book()
    made = model(ledger=ledger, dataset="people").fit(table, "sick")
    return f"{made.guarantee_.brief()} {made.predict([[40.0]]).shape} {ledger.remaining('people')}"


def search(table: Table) -> str:
    ledger = book()
    tried = PrivateSearch(
        estimator=model(ledger=ledger, dataset="people"), grid={"variance_floor": [0.01, 0.1]}, epsilon=1
    ).fit(table, "sick")
    return f"{tried.guarantee_.brief()} {tried.predict([[40.0]]).shape} {ledger.remaining('people')}"


def evaluate(table: Table) -> str:
    ledger = book()
    found = evaluate_privately(fitted(), table, "sick", epsilon=1, ledger=ledger, dataset="people")
    return f"{type(found).__name__} {found.guarantee.brief()} {ledger.remaining('people')}"


def synthesize(table: Table) -> str:
    ledger = book()
    made = SpanningTree(epsilon=1, bins=2, ledger=ledger, dataset="people").fit(table)
    return f"{made.guarantee_.brief()} {made.sample(3).columns} {ledger.remaining('people')}"


def compare(table: Table) -> str:
    ledger = book()
    found = evaluate_rows_privately(table, SAFE, epsilon=1, bins=2, ledger=ledger, dataset="people")
    return f"{type(found).__name__} {found.guarantee.brief()} {ledger.remaining('people')}"


RELEASES: dict[str, Callable[[Table], str]] = {
    "count": ask(lambda t: t.count("age > 30", epsilon=1)),
    "sum": ask(lambda t: t.sum("age", epsilon=1)),
    "quantile": ask(lambda t: t.median("age", epsilon=1)),
    "groups": ask(lambda t: t.sql("SELECT sick, AVG(age) AS m FROM data GROUP BY sick", epsilon=1)),
    "choice": ask(lambda t: t.top_k("sick", 1, where="age > 1", epsilon=1)),
    "fit": fit_model,
    "search": search,
    "evaluation": evaluate,
    "synthesis": synthesize,
    "comparison": compare,
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_row_that_makes_the_engine_fail_shows_nowhere(name: str) -> None:
    seen: list[Behavior] = []
    failures = []
    for rows in (SAFE, DEADLY):
        before = failure_count()
        seen.append(observe(lambda _, rows=rows: RELEASES[name](opened(rows)), rows))
        failures.append(failure_count() - before)
    assert seen[0] == seen[1]
    assert seen[0].error is None
    assert failures[0] == 0
    assert failures[1] >= 1, "the row did no harm, so nothing was tried"


@pytest.mark.parametrize("name", RELEASES)
def test_the_owner_can_see_what_failed(name: str) -> None:
    with show_failures(), pytest.raises(CloisterError) as shown:
        RELEASES[name](opened(DEADLY))
    assert "99" not in str(shown.value), "engines withhold their words from owners, too"


def test_a_source_that_is_gone_is_told_and_not_taken_for_nobody(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    for run in RELEASES.values():
        pq.write_table(SAFE, path)
        table = open_table(path, schema=SCHEMA)
        path.unlink()
        with pytest.raises(DataError, match="Fix: "):
            run(table)


def test_an_owner_of_several_whose_rows_cannot_be_added_up_takes_part_without_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    products = moments.second_moments

    def deadly(steps: Any, whole: Any) -> Any:
        if len(steps) == 3:
            raise ZeroDivisionError("three rows")
        return products(steps, whole)

    monkeypatch.setattr(moments, "second_moments", deadly)
    rows = {"east": np.full((3, 2), 0.5), "west": np.full((2, 2), 0.5)}
    before = failure_count()
    found = distributed_dp_pca(rows, epsilon=1, data_norm=1, key_bits=2048)
    assert found.components.shape == (2, 2)
    assert failure_count() == before + 1


@pytest.mark.parametrize("rows", [0, 1])
def test_a_column_that_is_zero_for_everybody_gives_a_model_as_one_that_is_not(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a solver does that fails on some rows: the state of the fit is the leaked bit."""

    made = PrivateLogisticRegression(epsilon=0.01, bounds={"hiv": (0, 1)}, classes=[0, 1], features=["hiv"])
    table = open_table(
        pa.table({"hiv": [0.0] * 9 + [float(rows)], "sick": [0, 1] * 5}),
        schema=Schema.from_dict(
            {"columns": {"hiv": {"kind": "numeric", "bounds": [0, 1]}, "sick": {"kind": "nominal"}}}
        ),
    )
    learn, calls = PrivateLogisticRegression._learn, []

    def failing(self: Any, facts: Any, given: Any, *rest: Any) -> None:
        calls.append(len(given.weights))
        if len(given.weights) and not np.asarray(given.features).any():
            raise np.linalg.LinAlgError("singular")
        learn(self, facts, given, *rest)

    monkeypatch.setattr(PrivateLogisticRegression, "_learn", failing)
    made.fit(table, "sick")
    assert made.predict([[1.0]]).shape == (1,)
    assert len(calls) == (1 if rows else 2)
