"""A dataset in a hub, for tests: uploaded, described, with a budget, open for questions."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any
from unittest.mock import patch

from cloister.accounting.budget import Budget
from cloister.core.exact import number
from cloister.crypto.keys import MasterKey
from cloister.data.schema_file import dump_yaml
from cloister.hub import queue
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.policy_file import policy_to_dict
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.store import upload_process
from cloister.hub.store.blobs import BlobStore
from cloister.hub.store.models import Dataset, PolicyVersion, User, new_id
from cloister.hub.use_cases import datasets
from cloister.hub.use_cases.datasets.versions import newest_version
from cloister.hub.use_cases.jobs.work import perform
from cloister.hub.use_cases.sessions import subject_of

VISITS = "patient,age,sex,diagnosis\n" + "".join(
    f"p{n % 40},{20 + n % 60},{'FM'[n % 2]},{('asthma', 'flu', 'none')[n % 3]}\n" for n in range(120)
)
VISITS_SCHEMA = {
    "columns": {
        "patient": {"role": "identifier", "kind": "nominal", "storage": "text", "subject": True},
        "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 110], "storage": "integer"},
        "sex": {"role": "quasi", "kind": "nominal", "categories": ["F", "M"], "storage": "text"},
        "diagnosis": {
            "role": "sensitive",
            "kind": "nominal",
            "categories": ["asthma", "flu", "none"],
            "storage": "text",
        },
    }
}


def owner_id(hub: Hub, name: str) -> str:
    """Return the id of somebody by name."""
    with hub.store.reading() as session:
        return str(session.query(User.id).filter_by(name=name).scalar())


def subject(hub: Hub, user_id: str) -> AccessSubject:
    """Return an account as somebody who asks."""
    with hub.store.reading() as session:
        user = session.get(User, user_id)
        assert user is not None
        return subject_of(user)


@contextmanager
def read_uploads_here() -> Iterator[None]:
    """Read rows that a test made itself without the process of their own that uploads are read in otherwise.

    Equal uploads are read once: hundreds of tests begin with the same rows.
    """

    def parse(work: Any, task: Any, seconds: float) -> dict[str, Any]:
        return _parse_once(task)

    with patch.object(upload_process, "_answer", parse):
        yield


_parsed: dict[tuple[object, ...], tuple[dict[str, Any], bytes]] = {}
"""What was found in an upload, and the table that was made of it, by everything that decides about them."""


def _parse_once(task: Any) -> dict[str, Any]:
    store = BlobStore(task.folder, MasterKey.from_text(task.key))
    with store.open(task.upload) as upload:
        key = (upload.read(), task.format, task.schema, task.missing, task.memory_bytes)
    if key in _parsed:
        found, table = _parsed[key]
        kept = store.write(io.BytesIO(table), limit_bytes=len(table))
        return found | {"blob": asdict(kept) | {"wrapped_key": kept.wrapped_key.hex()}}
    found = dict(json.loads(json.dumps(upload_process._parse(task))))
    with store.open(upload_process._blob(found["blob"])) as table:
        _parsed[key] = found, table.read()
    return found


def ready_dataset(
    hub: Hub,
    owner: AccessSubject,
    *,
    name: str = "visits",
    epsilon: str = "3",
    content: str = VISITS,
    schema: object = None,
    unit: str | None = "row",
    max_rows_per_unit: int | None = None,
) -> str:
    """Return the id of a dataset with rows, a confirmed schema and a budget."""
    with hub.store.writing() as session:
        made = datasets.create_dataset(session, owner, name=name, title="Visits", description="Made up.")
    with read_uploads_here():
        datasets.upload_version(hub, owner, made.id, io.BytesIO(content.encode()), kind="csv")
    with hub.store.writing() as session:
        stored, version = session.get(Dataset, made.id), newest_version(session, made.id)
        assert stored is not None
        assert version is not None
        datasets.save_schema(hub.blobs, session, owner, version, dump_yaml(schema or VISITS_SCHEMA), confirm=True)
        datasets.open_for_questions(
            hub.store,
            session,
            owner,
            stored,
            budget=Budget(epsilon=number(epsilon)),
            unit=unit,
            max_rows_per_unit=max_rows_per_unit,
        )
    return made.id


def set_policy(hub: Hub, dataset_id: str, policy: Policy) -> None:
    """Make a policy the newest of a dataset."""
    with hub.store.writing() as session:
        numbers: Sequence[int] = [
            number for (number,) in session.query(PolicyVersion.number).filter_by(object_id=dataset_id)
        ]
        session.add(
            PolicyVersion(
                id=new_id("pol"),
                object_kind="dataset",
                object_id=dataset_id,
                number=max(numbers, default=0) + 1,
                document=policy_to_dict(policy),
            )
        )


def work(hub: Hub) -> None:
    """Do all work that waits."""
    while True:
        with hub.store.writing() as session:
            claim = queue.claim(session, "test", 60)
        if claim is None:
            return
        perform(hub, claim, lambda share, stage: None)
