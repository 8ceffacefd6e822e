"""Every service that promises differential privacy, run on hostile rows: no row decides how a run ends.

Services run as a worker runs them, against a ledger that holds what was paid. The second wall is held open, so that a
failure shows: none may need it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from cloister.accounting import show_failures
from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.hub.domain.algorithms import Artifact, VersionState
from cloister.hub.domain.policy import ALL_USES
from cloister.hub.domain.views import ColumnRights
from cloister.hub.sandbox import execution as sandbox_running
from cloister.hub.sandbox.run_plan import Slots
from cloister.hub.services.registry import ServiceOutcome, ServiceWork, service_registry
from cloister.hub.use_cases.algorithms.versions import AlgorithmSources
from cloister.queries.inference_control import Controls
from cloister.testing.hostile import HostileColumn, check_alike, hostile_pairs
from tests.support.foreign import unhurried_k_means
from tests.support.members import gather
from tests.support.thoroughness import examples

COLUMNS = (
    HostileColumn("age", "real", low=0.0, high=110.0),
    HostileColumn("sick", "text", values=("no", "yes")),
)
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 110]},
            "sick": {"role": "sensitive", "kind": "nominal", "categories": ["no", "yes"]},
        }
    }
)
FEW = examples(6, usual=3)
CONTROLS = Controls(min_size=2).to_dict()

DRIVEN: dict[str, dict[str, Any]] = {
    "query.sql": {"sql": "SELECT sick, AVG(age) AS m FROM data GROUP BY sick", "epsilon": "0.000001"},
    "query.build": {"question": {"measures": [{"kind": "median", "column": "age"}]}, "epsilon": "1"},
    "learn.train": {"model": "gaussian_nb", "target": "sick", "epsilon": "0.01"},
    "synth.generate": {"method": "spanning_tree", "epsilon": "0.01", "rows": 2, "bins": 2},
    "learn.evaluate": {"target": "sick", "epsilon": "0.01"},
    "learn.predict": {"epsilon": "0.01"},
    "algo.run": {
        "algorithm": "k-means@1.0.0",
        "inputs": {"features": ["age"]},
        "parameters": {"groups": 1},
        "blocks": 2,
        "epsilon": "0.01",
    },
    **gather("hub/services", "TRIALS"),
}
"""Every private service with parameters for these rows; the test module of a service may name its own in TRIALS."""
FOR_OWNERS = {"attack.release", "risk.assess"}
BY_DESIGN = {
    "query.controlled": "exact answers and refusals depend on the rows, and both are results",
    "release.anonymize": "whether there is a table depends on the rows, and it waits for its owner either way",
}


@functools.cache
def trained() -> str:
    """Return a model to be used, as it is downloaded."""
    rows = pa.table({"age": [20.0, 80.0], "sick": ["no", "yes"]})
    return json.dumps(run_service("learn.train", DRIVEN["learn.train"], rows).document)


@functools.cache
def in_two_blocks() -> AlgorithmSources:
    """Return the example of a foreign algorithm, which may run on fewer blocks here, since each takes a process."""
    files = dict(unhurried_k_means().files)
    files["manifest.yaml"] = files["manifest.yaml"].replace(b"fewest: 10", b"fewest: 2")
    return AlgorithmSources(artifact=Artifact.from_files(files), state=VersionState.PUBLISHED)


def run_service(name: str, given: dict[str, Any], rows: pa.Table, **facts: Any) -> ServiceOutcome:
    service = service_registry.get(name)
    with show_failures(), work_on(name, rows, Budget(epsilon=10), **facts) as work:
        return service.run(work, service.parameters(**given))


@contextmanager
def work_on(name: str, rows: pa.Table, budget: Budget, **facts: Any) -> Iterator[ServiceWork]:
    """Give what a service is run with: these rows, and a ledger that holds so much."""
    with open_ledger("memory:") as ledger:
        ledger.open_account("people", budget=budget, unit="row", adjacency="add_remove")
        yield ServiceWork(
            table=open_table(rows, schema=SCHEMA),
            rights=ColumnRights((("age", ALL_USES), ("sick", ALL_USES))),
            account="people",
            facts={"unit": "row", "adjacency": "add_remove", "mode": "dp"} | facts,
            version="1",
            ledger=ledger,
            material=in_two_blocks() if name == "algo.run" else None,
        )


def given_to(name: str) -> dict[str, Any]:
    return DRIVEN[name] | ({"model": trained()} if name in ("learn.evaluate", "learn.predict") else {})


def test_every_service_is_driven_or_said_why_not() -> None:
    assert {name for name in service_registry if not name.startswith("test.")} == {*DRIVEN, *FOR_OWNERS, *BY_DESIGN}
    assert all(service_registry.get(name).owners_only for name in FOR_OWNERS)
    assert not any(service_registry.get(name).owners_only for name in (*DRIVEN, *BY_DESIGN))
    assert service_registry.get("release.anonymize").needs_approval
    assert not service_registry.get("query.controlled").needs_approval


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIVEN)
def test_no_row_decides_how_a_service_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_running, "Slots", lambda seconds: Slots(0.01))
    given = given_to(name)

    def run(rows: pa.Table) -> str:
        outcome = run_service(name, given, rows)
        return f"{sorted(outcome.document)} {outcome.guarantee} {[file.name for file in outcome.files]}"

    report = check_alike(run, hostile_pairs(COLUMNS, most=FEW))
    assert report.pairs == FEW
    assert not report.refused, report.behavior


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIVEN)
def test_a_run_costs_and_promises_what_was_planned(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_running, "Slots", lambda seconds: Slots(0.01))
    service, rows = service_registry.get(name), pa.table({"age": [20.0, 80.0], "sick": ["no", "yes"]})
    parameters = service.parameters(**given_to(name))
    with work_on(name, rows.slice(0, 0), Budget(epsilon=2**40, delta="0.5")) as work:
        planned = service.plan(work, parameters)
    assert planned.guarantee is not None
    price = Budget(epsilon=1).cost_of(planned.guarantee)
    with show_failures(), work_on(name, rows, price) as work:
        outcome = service.run(work, parameters)
        assert work.ledger.remaining("people") == price.spent_nothing()
    assert outcome.guarantee == planned.guarantee.to_dict()


def test_no_row_makes_a_controlled_question_fail() -> None:
    # Answers and refusals differ, and are told apart by whoever asks; a failure would be a third thing. That there are
    # rows enough is checked when the owner opens the dataset.
    ended = set()

    def run(rows: pa.Table) -> str:
        given = {"sql": "SELECT COUNT(*) AS n FROM data WHERE age >= 50"}
        outcome = run_service("query.controlled", given, rows, mode="sdc", controls=CONTROLS)
        ended.add(str(outcome.document["schema"]))
        return str(outcome.guarantee)

    report = check_alike(run, hostile_pairs(COLUMNS, fewest_rows=6))
    assert report.pairs == 23
    assert not report.refused, report.behavior
    assert len(ended) == 2
