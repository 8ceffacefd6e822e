"""Somebody who attacks a hub through its own API, as an account that may ask questions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from cloister.accounting.budget import Budget
from cloister.core.exact import number
from cloister.hub.domain.policy import BudgetLimits
from tests.support.hub_datasets import ready_dataset, set_policy, subject
from tests.support.hub_world import OWNER, PURPOSE, REQUESTER, ROWS, SCHEMA, World, open_policy, work

API = "/api/v1"

VICTIM = "age = 103 AND sex = 'F'"
"""One row of its own."""
WITHOUT = ROWS
WITH = ROWS + "zzrowmark99,103,F,flu,zzhiddenmarka\n"


@dataclass(frozen=True, slots=True)
class Heard:
    """Everything that an attacker learns of one question: what each step answers, and how it ends."""

    preview: tuple[int, str]
    submitted: tuple[int, str]
    state: str = ""
    error: str = ""
    columns: tuple[tuple[float | str | None, ...], ...] = ()
    margins: tuple[float | None, ...] = ()
    job: str = field(default="", compare=False)

    @property
    def outcome(self) -> tuple[Any, ...]:
        """Return all of it but the noise."""
        return self.preview, self.submitted, self.state, self.error, len(self.columns)


def dataset(world: World, content: str, *, epsilon: str = "1000000", **options: Any) -> str:
    """Make a dataset with other rows but the same description, which the attacker may query without a limit."""
    owner = subject(world.hub, world.people[OWNER])
    name = f"attacked-{len(world.things)}"
    made = ready_dataset(world.hub, owner, name=name, epsilon=epsilon, content=content, schema=SCHEMA, **options)
    world.things[name] = made
    give(world, made)
    return made


def give(world: World, dataset_id: str, *, users: tuple[str, ...] = (REQUESTER,), **changes: Any) -> None:
    """Give a dataset a policy that lets the attacker ask."""
    limits = changes.pop("limits", BudgetLimits(user=Budget(epsilon=number("1000000"))))
    set_policy(world.hub, dataset_id, open_policy(world, users=users, object_id=dataset_id, limits=limits, **changes))


def ask(
    world: World,
    dataset_id: str,
    sql: str,
    *,
    epsilon: str = "0.1",
    who: str = REQUESTER,
    purpose: str = PURPOSE,
    key: str | None = None,
    **more: Any,
) -> Heard:
    """Ask one question, from its preview to its answer."""
    client = world.client(who)
    place = f"{API}/datasets/{dataset_id}/services/query.sql"
    asked = {"parameters": {"sql": sql, "epsilon": epsilon, **more}, "purpose": purpose}
    seen = client.post(f"{place}/preview", json=asked)
    run = client.post(f"{place}/runs", json=asked, headers={} if key is None else {"idempotency-key": key})
    preview = (seen.status_code, told(seen.json(), dataset_id))
    if run.status_code >= 400:
        return Heard(preview, (run.status_code, told(run.json(), dataset_id)))
    work(world.hub, open_table=world.tables)
    job = client.get(f"{API}/jobs/{run.json()['id']}").json()
    found = Heard(preview, (run.status_code, ""), job["state"], told(job["error"] or {}, dataset_id), job=job["id"])
    if job["state"] != "done":
        return found
    columns = client.get(f"{API}/jobs/{job['id']}/result").json()["document"]["columns"]
    margins = tuple(next(iter((column.get("margin") or {}).get("half_widths", ())), None) for column in columns)
    return Heard(
        found.preview,
        found.submitted,
        found.state,
        found.error,
        tuple(tuple(column["values"]) for column in columns),
        margins,
        found.job,
    )


def told(answer: dict[str, Any], dataset_id: str) -> str:
    """Return what an answer says, without ids, which are different for every request."""
    return re.sub(r"(ds|job)_[a-z0-9]{24}", r"\1", str(answer).replace(dataset_id, "the dataset"))


def charges(world: World, dataset_id: str) -> int:
    """Return how often the ledger was charged for a dataset."""
    entries = world.client(OWNER).get(f"{API}/datasets/{dataset_id}/ledger").json()["items"]
    return sum(entry["kind"] == "spend" for entry in entries)
