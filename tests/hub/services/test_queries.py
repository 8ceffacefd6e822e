"""Private questions: in SQL from preview to answer; without SQL, each kind of number is offered and answered."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cloister as cl
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.services.queries import Built, MeasureKind, sql_of
from cloister.hub.web.forms import parts_of
from tests.hub.conftest import ClientFor
from tests.support.hub_datasets import owner_id, ready_dataset, subject, work

API = "/api/v1"
SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM data GROUP BY sex"

SCHEMA = cl.Schema([cl.Column(name="age", kind="numeric", bounds=(0, 110))])
AGE = {"name": "age", "uses": ["measure"], "kind": "numeric", "bounds": [0, 110], "categories": None, "storage": None}


@pytest.mark.parametrize(("unit", "rows"), [("row", None), ("patient", 3)])
def test_a_question_in_sql_from_preview_to_answer(hub: Hub, client_for: ClientFor, unit: str, rows: int | None) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    dataset = ready_dataset(hub, subject(hub, owner_id(hub, "olga")), unit=unit, max_rows_per_unit=rows)
    place = f"{API}/datasets/{dataset}/services/query.sql"
    question = {"parameters": {"sql": SQL, "epsilon": "0.5"}}
    seen = owner.post(f"{place}/preview", json=question)
    assert seen.status_code == 200, seen.text
    run = owner.post(f"{place}/runs", json=question)
    assert run.status_code in (200, 201, 202), run.text
    work(hub)
    job = run.json()["id"]
    assert owner.get(f"{API}/jobs/{job}").json()["state"] == "done", owner.get(f"{API}/jobs/{job}").text
    result = owner.get(f"{API}/jobs/{job}/result")
    assert result.status_code == 200, result.text
    names = [column["name"] for column in result.json()["document"]["columns"]]
    assert names == ["sex", "n", "age"]
    assert owner.get(f"{API}/datasets/{dataset}/ledger").json()["spent"]["epsilon"] == "1/2"
    again = owner.post(f"{place}/runs", json=question).json()
    assert again["state"] == "done"
    assert owner.get(f"{API}/datasets/{dataset}/ledger").json()["spent"]["epsilon"] == "1/2"


@pytest.mark.parametrize("kind", MeasureKind)
def test_what_can_be_found_is_offered_and_answered(kind: MeasureKind) -> None:
    assert parts_of([AGE])["kinds"][kind.value] == kind.words
    question = Built.model_validate(
        {"measures": [{"kind": kind.value, "column": None if kind is MeasureKind.COUNT else "age"}]}
    )
    private = cl.PrivateTable(cl.open_table(pa.table({"age": [30, 40]}), schema=SCHEMA), budget=cl.Budget(epsilon=1))
    frame = private.sql(sql_of(question), epsilon=1)
    assert [str(column.name).split(" ")[0] for column in frame.columns] == [kind.value]


def test_a_stored_question_names_kinds_as_before() -> None:
    names = {"count", "sum", "mean", "median", "minimum", "maximum", "variance", "deviation"}
    assert {kind.value for kind in MeasureKind} == names
    question = Built.model_validate({"measures": [{"kind": "variance", "column": "age"}]})
    assert question.model_dump(mode="json")["measures"] == [{"kind": "variance", "column": "age"}]
