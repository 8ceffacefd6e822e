from __future__ import annotations

import pytest

from cloister.data.schema_file import dump_yaml
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from tests.hub.conftest import ClientFor
from tests.support.hub_datasets import VISITS, VISITS_SCHEMA, owner_id, ready_dataset, subject, work

API = "/api/v1"


def test_from_upload_to_open(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    made = owner.post(f"{API}/datasets", json={"name": "visits", "title": "Visits"})
    assert made.status_code == 201, made.text
    place = f"{API}/datasets/{made.json()['id']}"

    uploaded = owner.post(f"{place}/versions", content=VISITS, headers={"Content-Type": "text/csv"})
    assert uploaded.status_code == 201, uploaded.text
    assert [column["name"] for column in uploaded.json()["columns"]] == ["patient", "age", "sex", "diagnosis"]

    assert owner.get(f"{place}/schema").json()["is_confirmed"] is False
    early = owner.post(f"{place}/opening", json={"budget": {"epsilon": "3"}, "unit": "row"})
    assert early.status_code == 422

    saved = owner.put(f"{place}/schema", json={"text": dump_yaml(VISITS_SCHEMA), "confirm": True})
    assert saved.json()["is_confirmed"] is True, saved.text
    person = owner.post(f"{place}/opening", json={"budget": {"epsilon": "3"}})
    assert "how many of them count" in person.json()["problem"]
    opened = owner.post(f"{place}/opening", json={"budget": {"epsilon": "3"}, "max_rows_per_unit": 3})
    assert opened.json()["state"] == "ready", opened.text

    ledger = owner.get(f"{place}/ledger").json()
    assert ledger["budget"]["epsilon"] == "3"
    assert ledger["unit"] == "patient"


def test_nobody_else_sees_a_new_dataset(hub: Hub, client_for: ClientFor) -> None:
    owner, other = (
        client_for("olga", AccountRole.DATA_OWNER),
        client_for("uma", AccountRole.DATA_USER, AccountRole.DATA_OWNER, of="south"),
    )
    made = owner.post(f"{API}/datasets", json={"name": "visits"}).json()["id"]
    missing = other.get(f"{API}/datasets/ds_nothing")
    for path in ("", "/ledger", "/schema", "/versions"):
        hidden = other.get(f"{API}/datasets/{made}{path}")
        assert (hidden.status_code, hidden.json()) == (404, missing.json())
    assert other.delete(f"{API}/datasets/{made}").status_code == 404
    assert other.get(f"{API}/catalogue").json()["items"] == []


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        ("", "text/csv", 422),
        ("a,b\n1,2,3\n", "text/csv", 422),
        ("a,a\n1,2\n", "text/csv", 422),
        ("PAR1", "application/vnd.apache.parquet", 422),
        ("a\n1\n", "application/json", 422),
    ],
)
def test_what_is_no_table_is_refused_without_a_trace(
    hub: Hub, client_for: ClientFor, content: str, kind: str, status: int
) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    made = owner.post(f"{API}/datasets", json={"name": "visits"}).json()["id"]
    refused = owner.post(f"{API}/datasets/{made}/versions", content=content, headers={"Content-Type": kind})
    assert refused.status_code == status, refused.text
    assert owner.get(f"{API}/datasets/{made}/versions").json()["items"] == []
    assert list(hub.blobs.path("0" * 32).parent.iterdir()) == []


def test_a_schema_is_saved_as_json_too(client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    place = f"{API}/datasets/{owner.post(f'{API}/datasets', json={'name': 'visits'}).json()['id']}"
    owner.post(f"{place}/versions", content=VISITS, headers={"Content-Type": "text/csv"})
    found = owner.get(f"{place}/schema").json()
    assert found["types"] == {"patient": "text", "age": "integer", "sex": "text", "diagnosis": "text"}
    saved = owner.put(f"{place}/schema", json={"document": VISITS_SCHEMA, "confirm": True})
    assert saved.status_code == 200, saved.text
    assert saved.json()["is_confirmed"] is True
    assert saved.json()["document"]["columns"]["age"]["bounds"] == [0, 110]
    for wrong in ({}, {"document": VISITS_SCHEMA, "text": "columns: {}"}):
        refused = owner.put(f"{place}/schema", json=wrong)
        assert refused.status_code == 422
        assert "one of them" in refused.json()["problem"]


def test_types_that_the_owner_confirmed_are_public(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    told = {}
    for stated in (True, False):
        columns = {
            name: facts if stated else {key: value for key, value in facts.items() if key != "storage"}
            for name, facts in VISITS_SCHEMA["columns"].items()
        }
        dataset = ready_dataset(
            hub, subject(hub, owner_id(hub, "olga")), name=f"visits-{stated}", schema={"columns": columns}
        )
        place = f"{API}/datasets/{dataset}/services/query.sql"
        question = {"parameters": {"sql": "SELECT COUNT(*) AS n FROM data", "epsilon": "1"}}
        preview = owner.post(f"{place}/preview", json=question).json()
        job = owner.post(f"{place}/runs", json=question).json()["id"]
        work(hub)
        result = owner.get(f"{API}/jobs/{job}/result").json()
        told[stated] = [
            "types of columns are public" in str(one["guarantee"]["assumptions"]) for one in (preview, result)
        ]
    assert told == {True: [False, False], False: [True, True]}
