"""Worker processes of a hub for tests, which know the tests' services; some die at a chosen point.

One asks for work as the server does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from cloister.errors import BudgetExceededError, HubUnavailableError
from cloister.hub import queue, workers
from cloister.hub.domain import actions
from cloister.hub.hub import open_hub
from cloister.hub.services.registry import service_registry
from cloister.hub.settings import Settings, read_settings
from cloister.hub.store.models import User
from cloister.hub.use_cases import jobs
from cloister.hub.use_cases.authorization import authorize
from cloister.hub.use_cases.jobs import keep, work
from cloister.hub.use_cases.sessions import subject_of
from tests.support.hub_services import PURPOSE, SERVICES

DEAD = 9
POINTS: dict[str, tuple[Any, str, bool]] = {
    "after the claim": (work, "_prepare", True),
    "after deciding": (work, "_prepare", False),
    "before the run": (work, "_run", True),
    "after the run": (work, "_run", False),
    "after waiting": (work, "_wait", False),
    "with the claim held": (queue, "hold", False),
    "after the result": (keep, "keep_result", False),
    "after the end": (queue, "end", False),
    "before the commit": (work, "tell_end", False),
    "after the commit": (work, "_keep", False),
}
"""Where a worker can die: a module, a function in it, and whether before or after it."""


def register() -> None:
    """Add the services of the tests to this process."""
    for service in SERVICES:
        if service.name not in service_registry:
            service_registry.register(service.name)(service)


def main(settings: Settings) -> None:
    """Be a worker."""
    register()
    workers.run_worker(settings)


def serve(settings: Settings, dataset_id: str, user_id: str, keys: Sequence[str], log: str) -> None:
    """Ask for work with each key, many at once; each answer is one line in the log, written whole."""
    register()
    hub = open_hub(settings)
    with hub.store.reading() as session:
        user = session.get(User, user_id)
        assert user is not None
        access = authorize(session, actions.RUN_SERVICE, subject=subject_of(user), target_id=dataset_id)
    told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def ask(key: str) -> None:
        try:
            job = jobs.submit(
                hub,
                access,
                service="test.count",
                parameters={"epsilon": "0.01", "where": f"age > {key}"},
                purpose=PURPOSE,
                idempotency_key=key,
            )
        except BudgetExceededError:
            os.write(told, f"{key} refused\n".encode())
        else:
            os.write(told, f"{key} {job.id}\n".encode())

    with ThreadPoolExecutor(8) as pool:
        for asked in [pool.submit(ask, key) for key in keys]:
            with suppress(HubUnavailableError):
                asked.result()
    hub.close()


def dying(module: Any, name: str, *, before: bool) -> Callable[..., Any]:
    """Return a function that is killed with its process before or after it has done its work."""
    original = getattr(module, name)

    def die(*arguments: Any, **options: Any) -> None:
        if not before:
            original(*arguments, **options)
        os._exit(DEAD)

    return die


def die_at(point: str, folder: str, database: str) -> None:
    """Be a worker that does one piece of work and dies at a point of it."""
    register()
    module, name, before = POINTS[point]
    setattr(module, name, dying(module, name, before=before))
    settings = read_settings(folder=Path(folder), database=database, lease_seconds=0.2, answer_seconds=0.0)
    hub = open_hub(settings)
    workers.Worker(hub).work_once()
