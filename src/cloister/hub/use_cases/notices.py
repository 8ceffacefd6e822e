"""Notices, the lines on people's start pages, kept and delivered, and the incidents that they tell of.

Whoever does the work decides who gets a notice: for the end of a job that is `cloister.hub.use_cases.jobs.keep`.

An incident is that something which the hub has sealed is not as it was kept, or is gone. Nothing is answered from it.
The audit log keeps when it was found, and owners, auditors and operators are told once.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import DecryptionError, SourceNotFoundError
from cloister.hub.domain.audit_chain import AuditOutcome
from cloister.hub.domain.roles import AccountRole
from cloister.hub.store.models import Dataset, NoticeRecord, User, new_id
from cloister.hub.use_cases import audit_log

__all__ = ["ACTION", "DAMAGED", "is_damage", "notify", "notify_owners", "record_damage"]


def notify(session: Session, user_id: str, text: str, *, link: str = "") -> None:
    """Leave a line for one person."""
    session.add(NoticeRecord(id=new_id("notice"), user_id=user_id, text=text, link=link))


def notify_owners(session: Session, organisation_id: str, text: str, *, link: str = "", but: str = "") -> None:
    """Leave a line for every data owner of an institution, but not for the one who knows already."""
    members = session.scalars(
        select(User).where(User.organisation_id == organisation_id, User.is_disabled.is_(False)).order_by(User.id)
    )
    for user in members:
        if AccountRole.DATA_OWNER in user.roles and user.id != but:
            notify(session, user.id, text, link=link)


ACTION = "hub.integrity"
"""The name of incidents in the audit log."""

DAMAGED = {
    "problem": "What the hub has stored is not as it was kept, so nothing is answered from it.",
    "fix": "tell the owner and the operator, who were told, too; what was paid stays paid.",
}
"""What the person is told whose work found it."""

_TOLD_ROLES = {AccountRole.AUDITOR, AccountRole.OPERATOR}


def is_damage(error: BaseException) -> bool:
    """Return whether an error says that something stored was changed or is gone."""
    return isinstance(error, (DecryptionError, SourceNotFoundError))


def record_damage(session: Session, *, target: str, dataset_id: str | None) -> None:
    """Keep an incident in the audit log, and tell those who can do something about it, once for each target."""
    dataset = None if dataset_id is None else session.get(Dataset, dataset_id)
    about = "" if dataset is None else f" of {dataset.title or dataset.name}"
    words = f"Stored data{about} is damaged ({target}): restore it from a backup, and find out who changed it."
    if session.scalars(select(NoticeRecord.id).where(NoticeRecord.text == words).limit(1)).first() is not None:
        return
    audit_log.append(
        session,
        ACTION,
        by=audit_log.HUB,
        target=target,
        dataset_id=dataset_id,
        outcome=AuditOutcome.REFUSED,
        problem="not as it was kept",
    )
    for user in session.scalars(select(User).where(User.is_disabled.is_(False)).order_by(User.id)):
        if _TOLD_ROLES & {AccountRole(role) for role in user.roles}:
            notify(session, user.id, words, link="/audit" if AccountRole.AUDITOR in user.roles else "")
    if dataset is not None:
        notify_owners(session, dataset.organisation_id, words, link=f"/datasets/{dataset.id}/audit")
