"""The audit log: who did or was refused what (often refused: counted), hash-chained, without data or query texts.

Entries are written at the end of the transaction that they are part of: they are kept if and only if it is, and the
lock that keeps the chain in order is always the last one taken. Refusals are written in a transaction of their own;
so that they cannot fill the disk, each person has ten of them a minute, everybody who is not signed in has one
together, and the rest of a minute is counted in one entry.

The log is read and verified here, too: all of it for auditors, the part about a dataset for its owner.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import event, insert, select, text
from sqlalchemy.orm import Session

from cloister.core.digests import GENESIS, chain_text
from cloister.errors import CloisterError, InternalError
from cloister.hub.domain import actions
from cloister.hub.domain.actions import Action
from cloister.hub.domain.audit_chain import AuditHead, AuditOutcome, AuditRecord, check_chain
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.store.database import Store
from cloister.hub.store.models import AuditEntry, User, now
from cloister.hub.use_cases.authorization import Access

ANONYMOUS = "anonymous"
WINDOW = 60.0
ALLOWANCE = 10
"""How many refusals of one person in one window have an entry of their own."""

Counts = dict[str, dict[str, int]]
"""Actor to kind of refusal to how often."""


@dataclass(slots=True)
class _Window:
    ends: float
    kept: int = 0
    more: Counter[str] = field(default_factory=Counter)


class RefusalCounts:
    """Counts in memory, for each database; a crash forgets at most what was counted in the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: WeakKeyDictionary[Store, dict[str, _Window]] = WeakKeyDictionary()

    def note(self, store: Store, actor: str, kind: str) -> tuple[Counts, bool]:
        """Count a refusal; return the counts of windows that are over, and whether this one gets its own entry."""
        moment = self._clock()
        with self._lock:
            windows = self._windows.setdefault(store, {})
            finished = _take(windows, [name for name, window in windows.items() if window.ends <= moment])
            window = windows.setdefault(actor, _Window(ends=moment + WINDOW))
            is_kept = window.kept < (1 if actor == ANONYMOUS else ALLOWANCE)
            if is_kept:
                window.kept += 1
            else:
                window.more[kind] += 1
            return finished, is_kept

    def take_all(self, store: Store) -> Counts:
        """Return what was counted, of unfinished windows too; those keep their allowance used."""
        with self._lock:
            windows = self._windows.get(store, {})
            counts = {actor: dict(window.more) for actor, window in windows.items() if window.more}
            for window in windows.values():
                window.more.clear()
            return counts


def _take(windows: dict[str, _Window], names: list[str]) -> Counts:
    taken = {name: windows.pop(name) for name in names}
    return {name: dict(window.more) for name, window in taken.items() if window.more}


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
    by: AccessSubject | str | None,
    target: str = "",
    dataset_id: str | None = None,
    outcome: AuditOutcome = AuditOutcome.DONE,
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
    text_of_details = chain_text(details)
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
            outcome=AuditOutcome.ALLOWED,
            reason=access.reason,
        )


def record_refusal(
    store: Store, action: Action, *, subject: AccessSubject | None, target_id: str | None, problem: CloisterError
) -> None:
    """Keep a refused decision, or count it where there were many in this minute."""
    actor = _actor(subject)
    finished, is_kept = _counts.note(store, actor, f"{action.name} {type(problem).__name__}")
    if not finished and not is_kept:
        return
    # Only what looks like an identifier of ours is kept: an address may hold anything that somebody typed.
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
                outcome=AuditOutcome.REFUSED,
                problem=type(problem).__name__,
                reason=problem.problem[:300],
            )


def write_counts(store: Store) -> None:
    """Write what was only counted until now; called before the log is read and when the hub stops."""
    finished = _counts.take_all(store)
    if finished:
        with store.writing() as session:
            _append_counts(session, finished)


def head_of(session: Session) -> AuditHead:
    """Return the newest entry's number and digest."""
    newest = session.execute(
        select(AuditEntry.number, AuditEntry.digest).order_by(AuditEntry.number.desc()).limit(1)
    ).first()
    return (
        AuditHead(number=0, digest=GENESIS) if newest is None else AuditHead(number=newest.number, digest=newest.digest)
    )


def _append_counts(session: Session, finished: dict[str, dict[str, int]]) -> None:
    for actor, more in finished.items():
        append(session, "audit.count", by=actor, outcome=AuditOutcome.REFUSED, more=more)


def _write(session: Session) -> None:
    waiting = session.info[_WAITING]
    if not waiting or session.in_nested_transaction():
        return
    # Everything else is written before: whoever holds the lock of the chain has nothing left to wait for.
    session.flush()
    # Writers of SQLite stand in line already.
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    head = head_of(session)
    for values in waiting:
        record = AuditRecord(number=head.number + 1, previous=head.digest, **values).sealed()
        session.execute(insert(AuditEntry), asdict(record))
        head = AuditHead(number=record.number, digest=record.digest)
    waiting.clear()


def _forget(session: Session) -> None:
    session.info[_WAITING].clear()


def _actor(by: AccessSubject | str | None) -> str:
    if by is None:
        return ANONYMOUS
    return by.user_id if isinstance(by, AccessSubject) else by


def dataset_of(kind: str, identifier: str, item: Any) -> str | None:
    """Return the dataset that an object is or belongs to, or None."""
    if kind == "dataset":
        return identifier
    found: str | None = getattr(item, "dataset_id", None)
    return found


PAGE = 100
LONGEST_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries: of one actor (by name or id), action, outcome or dataset; None for all."""

    actor: str | None = None
    action: str | None = None
    outcome: str | None = None
    dataset_id: str | None = None


def read_entries(
    session: Session, wanted: AuditFilter, *, before: int | None = None, limit: int = PAGE
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
    return [_describe_entry(entry, names) for entry in page], page[-1].number if len(found) > len(page) else None


def verify(session: Session, *, known: AuditHead | None = None) -> AuditHead:
    """Return the head of the log, or raise where it is not what was written; ``known`` is a head noted before."""
    return check_chain(_records(session), known=known)


def _records(session: Session) -> Iterator[AuditRecord]:
    columns = AuditEntry.__table__.columns
    rows = session.execute(select(*columns).order_by(AuditEntry.number).execution_options(yield_per=1_000))
    for row in rows.mappings():
        yield AuditRecord(**row)


def _names(session: Session, actors: set[str]) -> dict[str, str]:
    return {row.id: row.name for row in session.execute(select(User.id, User.name).where(User.id.in_(actors)))}


def _describe_entry(entry: AuditEntry, names: dict[str, str]) -> dict[str, Any]:
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
