"""A provider, an owner with a dataset, a user of it, and the k-means example in versions that take no time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.hub import queue
from cloister.hub.domain.algorithms import Artifact
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import (
    ALL_USES,
    ColumnRule,
    ColumnRules,
    Member,
    Members,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
)
from cloister.hub.domain.roles import AccountRole
from cloister.hub.domain.terms import PurposeSet, UsageTerms
from cloister.hub.hub import Hub
from cloister.hub.sandbox import execution as sandbox_running
from cloister.hub.sandbox.review import CheckReport
from cloister.hub.sandbox.run_plan import Slots
from cloister.hub.store.models import User
from cloister.hub.use_cases.algorithms import sandbox_checks
from cloister.hub.use_cases.jobs.work import perform
from tests.hub.conftest import ClientFor
from tests.support.foreign import unhurried_k_means
from tests.support.hub_datasets import ready_dataset, set_policy, subject

API = "/api/v1"
PURPOSE = "research.health"


@functools.cache
def k_means_version(version: str = "1.0.0", *, title: str = "Centers of groups") -> Artifact:
    """Return the example in some version, with a minute for each block."""
    files = dict(unhurried_k_means().files)
    text = files["manifest.yaml"].decode()
    text = text.replace("version: 1.0.0", f"version: {version}").replace("title: Centers of groups", f"title: {title}")
    return Artifact.from_files({**files, "manifest.yaml": text.encode()})


def raw_rows() -> Artifact:
    """Return an algorithm that declares epsilon 1 and gives out its input."""
    files = dict(k_means_version().files)
    files["clustering.py"] = b"def fit(inputs, parameters, bounds):\n    return {'centers': inputs['features']}\n"
    files["manifest.yaml"] = files["manifest.yaml"].replace(b"epsilon: asked", b"epsilon: 1")
    return Artifact.from_files(files)


@pytest.fixture
def instant_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots as short as the blocks themselves: these tests are about what surrounds them."""
    monkeypatch.setattr(sandbox_running, "Slots", lambda seconds: Slots(0.01))


@pytest.fixture
def passing_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that run nothing and find nothing."""

    def check(artifact: Artifact) -> CheckReport:
        manifest = artifact.manifest
        return CheckReport(
            algorithm=manifest.id, version=str(manifest.version), digest=artifact.digest, findings=(), isolation=()
        )

    monkeypatch.setattr(sandbox_checks, "check_artifact", check)


@dataclass(frozen=True, kw_only=True)
class World:
    """Everybody who has a part in it, each with their browser."""

    hub: Hub
    client_for: ClientFor
    provider: TestClient
    owner: TestClient
    user: TestClient
    dataset: str

    def upload(self, artifact: Artifact, *, to: str | None = None, by: TestClient | None = None) -> dict[str, Any]:
        path = f"{API}/algorithms" if to is None else f"{API}/algorithms/{to}/versions"
        sent = send_zip(by or self.provider, path, artifact.to_zip())
        assert sent.status_code == 201, sent.text
        found: dict[str, Any] = sent.json()
        return found

    def step(self, made: dict[str, Any], step: str) -> Any:
        return self.provider.post(
            f"{API}/algorithms/{made['id']}/versions/{made['version']}/steps", json={"step": step}
        )

    def publish(self, artifact: Artifact, *, to: str | None = None) -> dict[str, Any]:
        made = self.upload(artifact, to=to)
        self.work()
        moved = self.step(made, "publish")
        assert moved.status_code == 200, moved.text
        return made

    def allow(self, made: dict[str, Any], **changes: Any) -> Any:
        name = f"{made['name']}@{made['version']}"
        body = {"algorithm": name, "digest": made["digest"], "has_read": True} | changes
        return self.owner.post(f"{API}/datasets/{self.dataset}/algorithms", json=body)

    def ask(
        self,
        algorithm: str = "k-means@1.0.0",
        *,
        verb: str = "runs",
        by: TestClient | None = None,
        columns: tuple[str, ...] = ("age",),
        **changes: Any,
    ) -> Any:
        parameters = {
            "algorithm": algorithm,
            "inputs": {"features": columns},
            "parameters": {"groups": 2, "rounds": 3},
            "blocks": 10,
            "epsilon": "1",
        } | changes
        return (by or self.user).post(
            f"{API}/datasets/{self.dataset}/services/algo.run/{verb}",
            json={"parameters": parameters, "purpose": PURPOSE},
        )

    def spent(self) -> str:
        return str(self.owner.get(f"{API}/datasets/{self.dataset}/ledger").json()["spent"]["epsilon"])

    def work(self, progress: Callable[[float, str], None] = lambda share, stage: None) -> None:
        while True:
            with self.hub.store.writing() as session:
                claim = queue.claim(session, "test", 60)
            if claim is None:
                return
            perform(self.hub, claim, progress)


def send_zip(client: TestClient, path: str, content: bytes, kind: str = "application/zip") -> Any:
    return client.post(path, content=content, headers={"content-type": kind})


def user_id(hub: Hub, name: str) -> str:
    with hub.store.reading() as session:
        return str(session.query(User.id).filter_by(name=name).scalar())


def policy(dataset: str, *users: str, hidden: tuple[str, ...] = (), **rule: Any) -> Policy:
    """Return a policy that lets some people run algorithms for research."""
    allowed = PolicyRule(
        effect=RuleEffect.ALLOW, operations=frozenset({PolicyOperation.DESCRIBE, PolicyOperation.ALGO_RUN}), **rule
    )
    role = PolicyRole(
        name="analysts", members=Members(users=tuple(Member(user_id=user) for user in users)), rules=(allowed,)
    )
    return Policy(
        object_id=dataset,
        roles=(role,),
        columns=ColumnRules(named=tuple((name, ColumnRule()) for name in hidden), others=ColumnRule(uses=ALL_USES)),
        terms=UsageTerms(purposes=PurposeSet.of("research")),
    )


@pytest.fixture
def world(hub: Hub, client_for: ClientFor) -> World:
    fast = replace(hub, settings=replace(hub.settings, answer_seconds=0.0))
    provider = client_for("petra", AccountRole.ALGORITHM_PROVIDER, of="methods")
    owner = client_for("olga", AccountRole.DATA_OWNER, of="north")
    user = client_for("ada", AccountRole.DATA_USER, of="south")
    dataset = ready_dataset(hub, subject(hub, user_id(hub, "olga")), epsilon="3")
    set_policy(hub, dataset, policy(dataset, user_id(hub, "ada")))
    return World(hub=fast, client_for=client_for, provider=provider, owner=owner, user=user, dataset=dataset)
