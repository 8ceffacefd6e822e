from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.hub import queue
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.services.registry import service_registry
from cloister.hub.store.models import User
from cloister.hub.use_cases.jobs.work import perform
from tests.hub.conftest import ClientFor
from tests.support.hub_datasets import ready_dataset, subject
from tests.support.hub_services import RowCount

API = "/api/v1"
COUNT = "SELECT COUNT(*) AS n FROM data"
QUERY = ["query.count", "query.aggregate"]


class A1(RowCount):
    name = "a1"
    operation = PolicyOperation.ML_TRAIN


class A2(RowCount):
    name = "a2"
    operation = PolicyOperation.ML_TRAIN


@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch) -> None:
    for service in (A1(), A2()):
        monkeypatch.setitem(service_registry._members, service.name, service)


@dataclass
class Scene:
    """A hub with a dataset of the institution "north", its owner's browser, and browsers of others."""

    hub: Hub
    client_for: ClientFor
    owner: TestClient
    dataset: str
    people: dict[str, TestClient] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{API}/datasets/{self.dataset}"

    def user(self, name: str, *roles: AccountRole, of: str = "south") -> TestClient:
        if name not in self.people:
            self.people[name] = self.client_for(name, *(roles or (AccountRole.DATA_USER,)), of=of)
        return self.people[name]

    def save(self, *, status: int = 200, by: TestClient | None = None, **document: Any) -> Any:
        """Save a policy over the newest version; research is allowed, and all columns are shown, unless stated."""
        whole = {"terms": {"purposes": ["research"]}, "other_columns": ["filter", "group_by", "measure"]} | document
        based_on = self.owner.get(f"{self.place}/policy").json()["version"]
        answer = (by or self.owner).put(f"{self.place}/policy", json={"based_on": based_on, "policy": whole})
        assert answer.status_code == status, answer.text
        return answer.json()

    def run(self, by: TestClient, service: str = "query.sql", *, purpose: str = "research", **parameters: Any) -> Any:
        given = {"sql": COUNT, "epsilon": "0.1"} if service == "query.sql" else {"epsilon": "0.1"}
        asked = {"parameters": given | parameters, "purpose": purpose}
        return by.post(f"{self.place}/services/{service}/runs", json=asked)

    def ask(self, by: TestClient, *, status: int = 201, **body: Any) -> Any:
        whole = {"purpose": "research", "operations": QUERY} | body
        answer = by.post(f"{self.place}/requests", json=whole)
        assert answer.status_code == status, answer.text
        return answer.json()

    def step(self, by: TestClient, request: str, step: str, *, status: int = 200, **body: Any) -> Any:
        answer = by.post(f"{API}/requests/{request}/{step}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def work(self) -> None:
        """Do all work that waits."""
        while True:
            with self.hub.store.writing() as session:
                claim = queue.claim(session, "test", 60)
            if claim is None:
                return
            perform(self.hub, claim, lambda share, stage: None)

    def notices(self, by: TestClient) -> list[str]:
        return [item["text"] for item in by.get(f"{API}/home").json()["notices"]]

    def audit(self) -> list[tuple[str, str]]:
        entries = self.owner.get(f"{self.place}/audit?limit=500").json()["items"]
        return [(entry["action"], entry["outcome"]) for entry in reversed(entries)]

    def version(self) -> int:
        return int(self.owner.get(f"{self.place}/policy").json()["version"])


def role(name: str, *users: Any, operations: Any = None, **rule: Any) -> dict[str, Any]:
    """Return a role of some people, with one rule that allows."""
    allowed = {"effect": "allow", "operations": operations or ["query.*"], **rule}
    return {"name": name, "members": {"users": list(users)}, "rules": [allowed]}


@pytest.fixture
def scene(hub: Hub, client_for: ClientFor) -> Scene:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    with hub.store.reading() as session:
        owner_id = str(session.query(User.id).filter_by(name="olga").scalar())
    dataset = ready_dataset(hub, subject(hub, owner_id))
    return Scene(hub=hub, client_for=client_for, owner=owner, dataset=dataset)
