"""The audit log: who did or was refused what, hash-chained, without data, query texts or addresses.

Entries are written at the end of the transaction that they are part of: they are kept if and only if it is, and the
lock that keeps the chain in order is always the last one taken. Refusals are written in a transaction of their own;
so that they cannot fill the disk, each person has ten of them a minute, everybody who is not signed in has one
together, and the rest of a minute is counted in one entry.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from sqlalchemy import event, insert, select, text
from sqlalchemy.orm import Session

from cloister.errors import CloisterError, InternalError
from cloister.hub.domain.actions import Action
from cloister.hub.domain.audit import GENESIS, AuditRecord, Head, Outcome, canonical
from cloister.hub.domain.roles import Subject
from cloister.hub.services.authorizing import Access
from cloister.hub.services.refusal_counts import ANONYMOUS, RefusalCounts
from cloister.hub.store.database import Store
from cloister.hub.store.models import AuditEntry, now

HUB = "hub"
"""The actor of what the hub does by itself."""

LONGEST_DETAILS = 4_000
_LOCK = 0x636C_6F69_7374_6572
_WAITING = "cloister.audit.waiting"
_IDENTIFIER = re.compile(r"[a-z]{2,12}_[a-z0-9]{1,64}")
_counts = RefusalCounts()


def append(
    session: Session,
    action: Action | str,
    *,
    by: Subject | str | None,
    target: str = "",
    dataset_id: str | None = None,
    outcome: Outcome = Outcome.DONE,
    **details: Any,
) -> None:
    """Add an entry that is written when the session's transaction commits.

    Args:
        session: a writing session.
        action: what was done.
        by: who did it: a person, the id of an account, ``HUB``, or None for somebody who is not signed in.
        target: what it was done to, as "kind:id".
        dataset_id: whose data it is about; its owner reads the entry too.
        outcome: how it went.
        details: short JSON values; never data, and no text that the dataset's owner may not read.
    """
    text_of_details = canonical(details)
    if len(text_of_details) > LONGEST_DETAILS:
        raise InternalError("an entry of the audit log is too long")
    if session.in_nested_transaction():
        raise InternalError("an entry of the audit log belongs to a whole transaction, not to a part of one")
    waiting = session.info.get(_WAITING)
    if waiting is None:
        waiting = session.info[_WAITING] = []
        event.listen(session, "before_commit", _write)
        event.listen(session, "after_rollback", _forget)
    if not session.in_transaction():
        session.begin()
    waiting.append(
        {
            "time": now().isoformat(),
            "actor": _actor(by),
            "action": action.name if isinstance(action, Action) else action,
            "target": target,
            "dataset_id": dataset_id,
            "outcome": str(outcome),
            "details": text_of_details,
        }
    )


def record_access(store: Store, access: Access) -> None:
    """Keep an allowed decision."""
    target = access.target
    with store.writing() as session:
        append(
            session,
            access.action,
            by=access.subject,
            target="" if target is None else f"{target.kind}:{target.id}",
            dataset_id=None if target is None else dataset_of(target.kind, target.id, target.item),
            outcome=Outcome.ALLOWED,
            reason=access.reason,
        )


def record_refusal(
    store: Store, action: Action, *, subject: Subject | None, target_id: str | None, problem: CloisterError
) -> None:
    """Keep a refused decision, or count it where there were many in this minute."""
    actor = _actor(subject)
    finished, is_kept = _counts.note(store, actor, f"{action.name} {type(problem).__name__}")
    if not finished and not is_kept:
        return
    known = target_id if target_id is not None and _IDENTIFIER.fullmatch(target_id) else None
    with store.writing() as session:
        _append_counts(session, finished)
        if is_kept:
            append(
                session,
                action,
                by=actor,
                target=f"{action.target}:{known}" if action.target is not None and known else "",
                dataset_id=known if action.target == "dataset" else None,
                outcome=Outcome.REFUSED,
                problem=type(problem).__name__,
                reason=problem.problem[:300],
            )


def write_counts(store: Store) -> None:
    """Write what was only counted until now; called before the log is read and when the hub stops."""
    finished = _counts.take_all(store)
    if finished:
        with store.writing() as session:
            _append_counts(session, finished)


def head_of(session: Session) -> Head:
    """Return the newest entry's number and digest."""
    newest = session.execute(
        select(AuditEntry.number, AuditEntry.digest).order_by(AuditEntry.number.desc()).limit(1)
    ).first()
    return Head(number=0, digest=GENESIS) if newest is None else Head(number=newest.number, digest=newest.digest)


def _append_counts(session: Session, finished: dict[str, dict[str, int]]) -> None:
    for actor, more in finished.items():
        append(session, "audit.count", by=actor, outcome=Outcome.REFUSED, more=more)


def _write(session: Session) -> None:
    waiting = session.info[_WAITING]
    if not waiting or session.in_nested_transaction():
        return
    session.flush()
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    head = head_of(session)
    for values in waiting:
        record = AuditRecord(number=head.number + 1, previous=head.digest, **values).sealed()
        session.execute(insert(AuditEntry), asdict(record))
        head = Head(number=record.number, digest=record.digest)
    waiting.clear()


def _forget(session: Session) -> None:
    session.info[_WAITING].clear()


def _actor(by: Subject | str | None) -> str:
    if by is None:
        return ANONYMOUS
    return by.user_id if isinstance(by, Subject) else by


def dataset_of(kind: str, identifier: str, item: Any) -> str | None:
    """Return the dataset that an object is or belongs to, or None."""
    if kind == "dataset":
        return identifier
    found: str | None = getattr(item, "dataset_id", None)
    return found
