"""Services and jobs through the API, as programs and pages use it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.core.guarantees import PureDP
from cloister.crypto.certificates import certify
from cloister.crypto.signatures import SigningKey
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.services.registry import service_registry
from cloister.hub.store.models import User
from cloister.hub.workers import Worker
from tests.hub.conftest import ClientFor, sign_in
from tests.support import hub_services
from tests.support.hub_services import PURPOSE, add_dataset

API = "/api/v1"


@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch, hub: Hub) -> None:
    for service in hub_services.SERVICES:
        monkeypatch.setitem(service_registry._members, service.name, service)
    object.__setattr__(hub.settings, "answer_seconds", 0.0)


@pytest.fixture
def ada(client_for: ClientFor) -> TestClient:
    return client_for("ada", AccountRole.DATA_USER, of="south")


@pytest.fixture
def dataset(hub: Hub, ada: TestClient) -> str:
    return add_dataset(hub, users=(_user(hub, "ada"),))


@pytest.fixture
def owner(hub: Hub, dataset: str, client_for: ClientFor) -> TestClient:
    client = client_for()
    sign_in(hub, client, _user(hub, "owner"))
    return client


def _user(hub: Hub, name: str) -> str:
    with hub.store.reading() as session:
        return session.query(User).filter_by(name=name).one().id


def run(client: TestClient, dataset: str, service: str = "test.count", *, key: str = "", **parameters: Any) -> Any:
    return client.post(
        f"{API}/datasets/{dataset}/services/{service}/runs",
        json={"parameters": parameters, "purpose": PURPOSE},
        headers={"Idempotency-Key": key} if key else {},
    )


def work(hub: Hub) -> None:
    assert Worker(hub).work_once()


def test_a_registered_service_is_listed_and_says_what_it_takes(ada: TestClient) -> None:
    names = [item["name"] for item in ada.get(f"{API}/services").json()["items"]]
    assert "test.count" in names
    described = ada.get(f"{API}/services/test.count").json()
    assert described["schema"] == "cloister.service/1"
    assert described["parameters"]["properties"]["epsilon"]["description"] == "What it may cost."
    assert ada.get(f"{API}/services/nothing").status_code == 404


def test_a_registered_service_is_previewed_run_and_read(hub: Hub, ada: TestClient, dataset: str) -> None:
    asked = {"parameters": {"epsilon": "0.25"}, "purpose": PURPOSE}
    shown = ada.post(f"{API}/datasets/{dataset}/services/test.count/preview", json=asked).json()
    assert (shown["schema"], shown["cost"]["epsilon"], shown["left"]["epsilon"]) == ("cloister.preview/1", "1/4", "1")
    made = run(ada, dataset, epsilon="0.25")
    assert (made.status_code, made.json()["state"]) == (202, "queued")
    place = f"{API}/jobs/{made.json()['id']}"
    assert ada.get(f"{place}/result").status_code == 409
    work(hub)
    assert ada.get(place).json()["state"] == "done"
    result = ada.get(f"{place}/result").json()
    assert result["provenance"]["service"] == "test.count"
    assert ada.get(f"{place}/report").status_code == 404
    assert ada.get(f"{place}/files/a.csv").status_code == 404
    listed = ada.get(f"{API}/jobs", params={"limit": 1, "dataset": dataset, "state": "done"}).json()
    assert [item["id"] for item in listed["items"]] == [made.json()["id"]]


def test_an_idempotency_key_is_a_header(ada: TestClient, dataset: str) -> None:
    first, second = (run(ada, dataset, "test.fresh", key="k", epsilon="0.1") for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    other = run(ada, dataset, "test.fresh", key="k", epsilon="0.2")
    assert (other.status_code, other.json()["error"]) == (409, "ConflictError")


@pytest.mark.parametrize(
    ("parameters", "status", "error"),
    [
        ({"epsilon": "2"}, 409, "BudgetExceededError"),
        ({"epsilon": "nothing"}, 422, "ParameterError"),
        ({}, 422, "ParameterError"),
        ({"epsilon": "0.1", "more": 1}, 422, "ParameterError"),
    ],
)
def test_refusals_are_told_as_errors(
    ada: TestClient, dataset: str, parameters: dict[str, Any], status: int, error: str
) -> None:
    answer = run(ada, dataset, **parameters)
    assert (answer.status_code, answer.json()["error"]) == (status, error)


def test_a_release_is_decided_downloaded_and_verified(
    hub: Hub, ada: TestClient, owner: TestClient, dataset: str, client_for: ClientFor
) -> None:
    made = run(ada, dataset, "test.release").json()
    work(hub)
    place = f"{API}/jobs/{made['id']}"
    assert owner.get(f"{place}/result").json()["owner_only"] == {"risk_before": 1.0}
    assert ada.get(f"{place}/files/release.csv").status_code == 409
    assert ada.post(f"{place}/decision", json={"approve": True}).status_code == 403
    decided = owner.post(f"{place}/decision", json={"approve": True, "note": "fine"}).json()
    assert (decided["state"], decided["decision"]["note"]) == ("done", "fine")
    file = ada.get(f"{place}/files/release.csv")
    assert (file.content, file.headers["content-disposition"]) == (
        b"ward\na\n",
        "attachment; filename*=UTF-8''release.csv",
    )
    report = ada.get(f"{place}/report")
    assert report.headers["content-security-policy"].startswith("sandbox;")
    digest = ada.get(f"{place}/result").json()["digest"]
    anybody = client_for()
    assert anybody.get(f"{API}/results/{digest}/verification").json()["is_genuine"]
    assert not anybody.get(f"{API}/results/{'0' * 64}/verification").json()["is_genuine"]


def test_certificates_of_files_and_of_the_hub_are_read(ada: TestClient, client_for: ClientFor, tmp_path: Path) -> None:
    file = tmp_path / "made-up.csv"
    file.write_text("age\n41\n", encoding="utf-8")
    key = SigningKey.generate()
    place = certify([file], kind="synthetic table", guarantee=PureDP(epsilon=1), recipe={}, key=key)
    certificate = json.loads(place.read_text(encoding="utf-8"))
    held = {"certificate": certificate, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    answer = ada.post(f"{API}/certificates/verification", json=held).json()
    assert (answer["kind"], answer["signer"]) == ("synthetic table", key.public)
    assert (answer["is_genuine"], answer["is_of_file"]) == (False, True)
    assert "stated, not proven" in answer["text"]
    other = ada.post(f"{API}/certificates/verification", json={**held, "sha256": "0" * 64}).json()
    assert other["is_of_file"] is False
    certificate["kind"] = "anonymized table"
    changed = ada.post(f"{API}/certificates/verification", json={"certificate": certificate})
    assert 400 <= changed.status_code < 500
    assert "was changed" in changed.text
    assert client_for().post(f"{API}/certificates/verification", json=held).status_code == 401


def test_work_is_canceled(ada: TestClient, dataset: str) -> None:
    made = run(ada, dataset, epsilon="0.1").json()
    canceled = ada.post(f"{API}/jobs/{made['id']}/cancel").json()
    assert (canceled["state"], canceled["is_final"]) == ("canceled", True)
    assert ada.post(f"{API}/jobs/{made['id']}/cancel").status_code == 409


def test_strangers_see_no_work_and_owners_no_answers(
    hub: Hub, ada: TestClient, owner: TestClient, dataset: str, client_for: ClientFor
) -> None:
    made = run(ada, dataset, epsilon="0.1").json()
    work(hub)
    eve = client_for("eve", AccountRole.DATA_USER, AccountRole.DATA_OWNER, of="east")
    for path in ("", "/result", "/report", "/files/a.csv"):
        assert eve.get(f"{API}/jobs/{made['id']}{path}").status_code == 404
    assert eve.get(f"{API}/jobs").json()["items"] == []
    assert run(eve, dataset, epsilon="0.1").status_code == 404
    assert owner.get(f"{API}/jobs/{made['id']}").json()["requester"] == "ada"
    assert owner.get(f"{API}/jobs/{made['id']}/result").status_code == 403
