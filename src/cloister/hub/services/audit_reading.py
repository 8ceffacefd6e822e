"""Reading and verifying the audit log: all of it for auditors, the part about a dataset for its owner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.hub.domain import actions
from cloister.hub.domain.audit import AuditRecord, Head, check_chain
from cloister.hub.store.models import AuditEntry, User

PAGE = 100
LONGEST_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which entries: of one actor (by name or id), action, outcome or dataset; None for all."""

    actor: str | None = None
    action: str | None = None
    outcome: str | None = None
    dataset_id: str | None = None


def read_entries(
    session: Session, wanted: Filter, *, before: int | None = None, limit: int = PAGE
) -> tuple[list[dict[str, Any]], int | None]:
    """Return entries, the newest first, and the number to go on before, or None at the end."""
    asked = select(AuditEntry).order_by(AuditEntry.number.desc()).limit(min(limit, LONGEST_PAGE) + 1)
    if before is not None:
        asked = asked.where(AuditEntry.number < before)
    if wanted.actor is not None:
        named = session.scalar(select(User.id).where(User.name == wanted.actor))
        asked = asked.where(AuditEntry.actor == (named or wanted.actor))
    if wanted.action is not None:
        asked = asked.where(AuditEntry.action == wanted.action)
    if wanted.outcome is not None:
        asked = asked.where(AuditEntry.outcome == wanted.outcome)
    if wanted.dataset_id is not None:
        asked = asked.where(AuditEntry.dataset_id == wanted.dataset_id)
    found = list(session.scalars(asked))
    page = found[: min(limit, LONGEST_PAGE)]
    names = _names(session, {entry.actor for entry in page})
    return [_described(entry, names) for entry in page], page[-1].number if len(found) > len(page) else None


def verify(session: Session, *, known: Head | None = None) -> Head:
    """Return the head of the log, or raise where it is not what was written; ``known`` is a head noted before."""
    return check_chain(_records(session), known=known)


def _records(session: Session) -> Iterator[AuditRecord]:
    columns = AuditEntry.__table__.columns
    rows = session.execute(select(*columns).order_by(AuditEntry.number).execution_options(yield_per=1_000))
    for row in rows.mappings():
        yield AuditRecord(**row)


def _names(session: Session, actors: set[str]) -> dict[str, str]:
    return {row.id: row.name for row in session.execute(select(User.id, User.name).where(User.id.in_(actors)))}


def _described(entry: AuditEntry, names: dict[str, str]) -> dict[str, Any]:
    known = {action.name: action.sentence for action in actions.all_actions()}
    return {
        "number": entry.number,
        "time": entry.time,
        "actor": {"id": entry.actor, "name": names.get(entry.actor, entry.actor)},
        "action": entry.action,
        "sentence": known.get(entry.action, ""),
        "target": entry.target,
        "dataset_id": entry.dataset_id,
        "outcome": entry.outcome,
        "details": json.loads(entry.details),
        "digest": entry.digest,
    }
