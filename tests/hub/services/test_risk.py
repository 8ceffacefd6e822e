from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import User
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, PURPOSE, allow, ask, job_of, user_id, work
from tests.support.hub_datasets import ready_dataset, subject

SERVICE = "risk.assess"


@pytest.fixture
def owner(client_for: ClientFor) -> TestClient:
    return client_for("olga", AccountRole.DATA_OWNER)


@pytest.fixture
def dataset(hub: Hub, owner: TestClient) -> str:
    return ready_dataset(hub, subject(hub, user_id(hub, "olga")))


def test_an_owner_measures_the_risk_for_nothing(hub: Hub, owner: TestClient, dataset: str) -> None:
    place = f"{API}/datasets/{dataset}/services/{SERVICE}"
    preview = owner.post(f"{place}/preview", json={"parameters": {}, "purpose": PURPOSE}).json()
    assert preview["cost"] is None
    assert preview["preview"]["quasi_identifiers"] == ["age", "sex"]
    job = job_of(owner, dataset, SERVICE, population=10_000)
    work(hub)
    seen = owner.get(f"{API}/jobs/{job}/result").json()
    found = seen["document"]["risk"]
    assert found["quasi_identifiers"] == ["age", "sex"]
    assert found["reidentification"]["rows"] == 120
    assert seen["figure"].startswith("<svg")
    assert "for its custodian" in owner.get(f"{API}/jobs/{job}/report").text
    assert owner.get(f"{API}/datasets/{dataset}/ledger").json()["spent"]["epsilon"] == "0"
    page = owner.get(f"/jobs/{job}").text
    assert "k-anonymity" in page
    assert f"/api/v1/jobs/{job}/report" in page


def test_it_is_for_owners_only(hub: Hub, owner: TestClient, dataset: str, client_for: ClientFor) -> None:
    ada, colleague = client_for("ada", AccountRole.DATA_USER, of="south"), client_for("otto", AccountRole.DATA_OWNER)
    member = client_for("mia", AccountRole.DATA_USER)
    everything = tuple(PolicyOperation)
    allow(hub, dataset, user_id(hub, "ada"), user_id(hub, "mia"), operations=everything)
    for other in (ada, member):
        refused = ask(other, dataset, SERVICE)
        assert refused.status_code == 403
        assert "ask the owner" in refused.json()["fix"]
    job = job_of(owner, dataset, SERVICE)
    work(hub)
    for path in ("", "/result", "/report"):
        assert ada.get(f"{API}/jobs/{job}{path}").status_code == 404, path
        assert member.get(f"{API}/jobs/{job}{path}").status_code == 404, path
    assert colleague.get(f"{API}/jobs/{job}/result").status_code == 200
    with hub.store.writing() as session:
        session.get_one(User, user_id(hub, "olga")).roles = [str(AccountRole.DATA_USER)]
    assert owner.get(f"{API}/jobs/{job}").json()["may_read_result"] is False
    for path in ("/result", "/report"):
        assert owner.get(f"{API}/jobs/{job}{path}").status_code == 403, path


@pytest.mark.parametrize(
    "parameters", [{"quasi_identifiers": ["nothing"]}, {"k": 0}, {"threshold": 2}, {"population": 0}]
)
def test_what_cannot_be_measured_is_refused_before_any_row_is_read(
    owner: TestClient, dataset: str, parameters: dict[str, object]
) -> None:
    assert ask(owner, dataset, SERVICE, **parameters).status_code in (400, 404, 422)
    assert owner.get(f"{API}/jobs").json()["items"] == []


def test_the_form_can_be_filled_in(owner: TestClient, dataset: str) -> None:
    page = owner.get(f"/datasets/{dataset}/services/{SERVICE}").text
    assert "What others may know" in page
    assert "Pay and run" not in page
