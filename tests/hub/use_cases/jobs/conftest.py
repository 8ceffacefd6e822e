"""The services of the tests in the registry, and helpers to ask for them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.queue import Claim
from cloister.hub.services.registry import service_registry
from cloister.hub.store.models import Job, ResultRecord, User
from cloister.hub.use_cases import jobs
from cloister.hub.use_cases.authorization import Access, authorize
from cloister.hub.use_cases.sessions import subject_of
from tests.hub.conftest import add_user
from tests.support import hub_services
from tests.support.hub_services import PURPOSE


@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the services of the tests, for one test."""
    for service in hub_services.SERVICES:
        monkeypatch.setitem(service_registry._members, service.name, service)


@pytest.fixture
def ada(any_hub: Hub) -> str:
    return add_user(any_hub, "ada", AccountRole.DATA_USER, of="south")


AccessFor = Callable[..., Access]


def access(hub: Hub, user_id: str, action: actions.Action, target_id: str) -> Access:
    """Return the access of a person to an object, as the gateway would."""
    with hub.store.reading() as session:
        user = session.get(User, user_id)
        assert user is not None
        return authorize(session, action, subject=subject_of(user), target_id=target_id)


def submit(
    hub: Hub, user_id: str, dataset_id: str, service: str = "test.count", *, key: str | None = None, **parameters: Any
) -> Job:
    return jobs.submit(
        hub,
        access(hub, user_id, actions.RUN_SERVICE, dataset_id),
        service=service,
        parameters=parameters,
        purpose=hub_services.PURPOSE,
        idempotency_key=key,
    )


def work(hub: Hub, **options: Any) -> Claim | None:
    """Do one piece of work as a worker would, and return its claim."""
    held = jobs.take(hub, "tests")
    if held is not None:
        jobs.perform(hub, held, lambda share, stage: None, **options)
    return held


def job(hub: Hub, job_id: str) -> Job:
    with hub.store.reading() as session:
        found = session.get(Job, job_id)
        assert found is not None
        session.expunge_all()
        return found


def spent(hub: Hub, dataset: str) -> Fraction:
    with hub.store.reading() as session:
        return hub.store.ledger(session).spent(dataset).amount


def spends(hub: Hub, dataset: str) -> int:
    with hub.store.reading() as session:
        return sum(entry.kind == "spend" for entry in hub.store.ledger(session).entries(dataset))


def results(hub: Hub, job_id: str) -> int:
    with hub.store.reading() as session:
        return session.query(ResultRecord).filter_by(job_id=job_id).count()


def read(hub: Hub, user: str, job_id: str) -> dict[str, Any]:
    return jobs.read_result(hub, access(hub, user, actions.SEE_RESULT, job_id), job_id).to_dict()


def see(hub: Hub, user: str, job_id: str) -> dict[str, Any]:
    return jobs.see_job(hub, access(hub, user, actions.SEE_JOB, job_id), job_id)


def preview(hub: Hub, user: str, dataset: str, service: str = "test.count", **parameters: Any) -> jobs.RunPreview:
    asked = access(hub, user, actions.PREVIEW_SERVICE, dataset)
    return jobs.preview(hub, asked, service, parameters, PURPOSE)


def owner_of(hub: Hub) -> str:
    with hub.store.reading() as session:
        return session.query(User).filter_by(name="owner").one().id


def disable(hub: Hub, user_id: str) -> None:
    with hub.store.writing() as session:
        user = session.get(User, user_id)
        assert user is not None
        user.is_disabled = True


def decide(hub: Hub, job_id: str, *, approve: bool) -> None:
    owner = owner_of(hub)
    granted = access(hub, owner, actions.DECIDE_RELEASE, job_id)
    jobs.decide_release(hub, granted, job_id, approve=approve, note="fine")
