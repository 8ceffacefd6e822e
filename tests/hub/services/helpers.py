"""What the tests of the hub's services share: people, datasets, policies and a worker."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import (
    ALL_USES,
    ColumnRule,
    ColumnRules,
    Member,
    Members,
    Mode,
    Policy,
    PolicyRole,
    PolicyRule,
    RuleEffect,
)
from cloister.hub.domain.terms import PurposeSet, UsageTerms
from cloister.hub.hub import Hub
from cloister.hub.store.models import PolicyVersion, User
from cloister.hub.use_cases import jobs
from tests.support.hub_datasets import set_policy

API = "/api/v1"
PURPOSE = "research.health"


def user_id(hub: Hub, name: str) -> str:
    with hub.store.reading() as session:
        return str(session.query(User.id).filter_by(name=name).scalar())


def work(hub: Hub) -> int:
    """Do all the work that waits, as a worker would, and return how much there was."""
    done = 0
    while (held := jobs.take(hub, "tests")) is not None:
        jobs.perform(hub, held, lambda share, stage: None)
        done += 1
    return done


def allow(
    hub: Hub,
    dataset: str,
    *users: str,
    operations: tuple[PolicyOperation, ...] = (PolicyOperation.QUERY_AGGREGATE, PolicyOperation.RELEASE_ANONYMIZE),
    hidden: tuple[str, ...] = (),
    narrowed: tuple[tuple[str, ColumnRule], ...] = (),
    mode: Mode = Mode.DP,
    two_person: bool = False,
) -> None:
    """Give a dataset its next policy: some people may do some things with it, for research."""
    named = (*((name, ColumnRule()) for name in hidden), *narrowed)
    with hub.store.reading() as session:
        version = session.query(PolicyVersion).filter_by(object_id=dataset).count() + 1
    policy = Policy(
        object_id=dataset,
        version=version,
        mode=mode,
        two_person=two_person,
        roles=(
            PolicyRole(
                name="analysts",
                members=Members(users=tuple(Member(user_id=user) for user in users)),
                rules=(PolicyRule(effect=RuleEffect.ALLOW, operations=frozenset(operations)),),
            ),
        ),
        columns=ColumnRules(named=named, others=ColumnRule(uses=ALL_USES)),
        terms=UsageTerms(purposes=PurposeSet.of("research"), retention_days=30),
    )
    set_policy(hub, dataset, policy)


def ask(client: TestClient, dataset: str, service: str, **parameters: Any) -> Any:
    """Run a service and return the answer to that request."""
    place = f"{API}/datasets/{dataset}/services/{service}/runs"
    return client.post(place, json={"parameters": parameters, "purpose": PURPOSE})


def job_of(client: TestClient, dataset: str, service: str, **parameters: Any) -> str:
    """Run a service and return its job."""
    answer = ask(client, dataset, service, **parameters)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])
