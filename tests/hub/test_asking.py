from __future__ import annotations

import pytest

from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import User
from tests.hub.conftest import ClientFor
from tests.support.hub_datasets import ready_dataset, subject, work

API = "/api/v1"
SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM data GROUP BY sex"


def owner_id(hub: Hub, name: str) -> str:
    with hub.store.reading() as session:
        return str(session.query(User.id).filter_by(name=name).scalar())


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
