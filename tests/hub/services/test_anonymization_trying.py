from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, PURPOSE, allow, ask, job_of, user_id, work
from tests.support.hub_datasets import ready_dataset, subject

SERVICE = "attack.release"


@pytest.fixture
def owner(client_for: ClientFor) -> TestClient:
    return client_for("olga", AccountRole.DATA_OWNER)


@pytest.fixture
def dataset(hub: Hub, owner: TestClient) -> str:
    return ready_dataset(hub, subject(hub, user_id(hub, "olga")))


def test_an_owner_attacks_a_table_that_nobody_gets(hub: Hub, owner: TestClient, dataset: str) -> None:
    place = f"{API}/datasets/{dataset}/services/{SERVICE}"
    preview = owner.post(f"{place}/preview", json={"parameters": {"k": 3}, "purpose": PURPOSE}).json()
    assert preview["cost"] is None
    assert "No table is kept." in " ".join(preview["warnings"])
    job = job_of(owner, dataset, SERVICE, k=3)
    work(hub)
    seen = owner.get(f"{API}/jobs/{job}/result").json()
    assert seen["document"]["schema"] == "cloister.gate/1"
    assert seen["files"] == []
    assert "The gate" in owner.get(f"{API}/jobs/{job}/report").text
    assert "linkage" in owner.get(f"/jobs/{job}").text


def test_what_attacks_find_is_for_owners_only(hub: Hub, owner: TestClient, dataset: str, client_for: ClientFor) -> None:
    ada = client_for("ada", AccountRole.DATA_USER, of="south")
    allow(hub, dataset, user_id(hub, "ada"), operations=tuple(PolicyOperation))
    assert ask(ada, dataset, SERVICE, k=3).status_code == 403
    job = job_of(owner, dataset, SERVICE, k=3)
    work(hub)
    for path in ("", "/result", "/report"):
        assert ada.get(f"{API}/jobs/{job}{path}").status_code == 404, path
