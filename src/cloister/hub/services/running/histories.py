"""What an organisation was answered under inference control: read before a run, and kept with its result or not at all.

A history has a revision. A run decides on the one that it read; its result is kept only while that is still the newest,
under a lock on the history's row, in the transaction that keeps the result. So of two runs at once one is decided again
after the other, and a killed worker has neither told nor remembered anything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.core.digests import canonical
from cloister.crypto.keys import DataKey
from cloister.crypto.sealing import seal, unseal
from cloister.errors import ConflictError
from cloister.hub.domain.policy import Mode
from cloister.hub.hub import Hub
from cloister.hub.services.running.considering import Case
from cloister.hub.store.models import AnswerHistory

__all__ = ["Recalled", "keep", "recall"]

_PURPOSE = "history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A history as it was read: whose, which revision, and what it holds; nothing before the first answer."""

    asker: str
    revision: int
    values: dict[str, Any] | None


def recall(hub: Hub, case: Case) -> Recalled | None:
    """Return what the asker's organisation was answered; None for datasets that are not under inference control."""
    if case.dataset.mode != Mode.SDC:
        return None
    asker = case.subject.organisation_id or case.subject.user_id
    found = _read(hub, case.dataset.id, asker)
    if found is None:
        _begin(hub, case.dataset.id, asker)
        found = _read(hub, case.dataset.id, asker)
    if found is None:
        raise ConflictError("The dataset was deleted.", fix="use another one.")
    return found


def keep(hub: Hub, session: Session, case: Case, before: Recalled, values: dict[str, Any]) -> bool:
    """Keep what a history has become, unless somebody else was answered since; return whether it was kept."""
    statement = (
        select(AnswerHistory)
        .where(AnswerHistory.dataset_id == case.dataset.id, AnswerHistory.asker == before.asker)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    row = session.scalars(statement).first()
    if row is None or row.revision != before.revision:
        return False
    key = DataKey.generate()
    row.revision += 1
    row.sealed = seal(canonical(values).encode(), key=key, associated=_bound(row))
    row.wrapped_key = hub.key.wrap(key, purpose=_PURPOSE, object_id=_name(row))
    session.flush()
    return True


def _read(hub: Hub, dataset_id: str, asker: str) -> Recalled | None:
    with hub.store.reading() as session:
        row = session.get(AnswerHistory, (dataset_id, asker))
        if row is None:
            return None
        values = None
        if row.sealed is not None and row.wrapped_key is not None:
            key = hub.key.unwrap(row.wrapped_key, purpose=_PURPOSE, object_id=_name(row))
            values = json.loads(unseal(row.sealed, key=key, associated=_bound(row)))
        return Recalled(asker=asker, revision=row.revision, values=values)


def _begin(hub: Hub, dataset_id: str, asker: str) -> None:
    """Make the row that later runs lock; another run may have made it at the same moment."""
    try:
        with hub.store.writing() as session:
            session.add(AnswerHistory(dataset_id=dataset_id, asker=asker, revision=0))
    except ConflictError:
        return


def _name(row: AnswerHistory) -> str:
    return f"{row.dataset_id} {row.asker}"


def _bound(row: AnswerHistory) -> bytes:
    return f"history of {_name(row)}, revision {row.revision}".encode()
