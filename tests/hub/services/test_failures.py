"""How often paid work failed is read by operators, and by nobody else."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.services.registry import service_registry
from tests.hub.conftest import ClientFor
from tests.hub.services.helpers import API, allow, job_of, user_id, work
from tests.support import hub_services
from tests.support.hub_datasets import ready_dataset, subject


def failures(client: TestClient, address: str) -> float:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    [found] = re.findall(r"^cloister_hub_failures_total (\S+)$", answer.text, flags=re.MULTILINE)
    return float(found)


@pytest.mark.hidden_failures
@pytest.mark.parametrize("address", ["/metrics", f"{API}/metrics"])
def test_an_operator_reads_how_often_paid_work_failed(
    hub: Hub, client_for: ClientFor, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    for service in hub_services.SERVICES:
        monkeypatch.setitem(service_registry._members, service.name, service)
    operator, owner = client_for("otto", AccountRole.OPERATOR), client_for("olga", AccountRole.DATA_OWNER)
    ada = client_for("ada", AccountRole.DATA_USER, of="south")
    dataset = ready_dataset(hub, subject(hub, user_id(hub, "olga")))
    allow(hub, dataset, user_id(hub, "ada"), operations=(PolicyOperation.QUERY_COUNT,))
    assert failures(operator, address) == 0
    for number, service in enumerate(("test.fail", "test.count", "test.fail")):
        job = job_of(ada, dataset, service, epsilon=f"0.{number + 1}")
        work(hub)
        assert ada.get(f"{API}/jobs/{job}").json()["state"] == "done"
    assert failures(operator, address) == 2
    assert {client.get(address).status_code for client in (owner, ada)} == {403}
    # Neither whose work it was nor what it was.
    text = operator.get(address).text
    assert not any(word in text for word in (dataset, "test.fail", "ada", "ZeroDivision"))
