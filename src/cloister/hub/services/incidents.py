"""Incidents: something that the hub has sealed is not as it was kept, or is gone.

Nothing is answered from it. The audit log keeps when it was found, and owners, auditors and operators are told once.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import DecryptionError, SourceNotFoundError
from cloister.hub.domain.audit import Outcome
from cloister.hub.domain.roles import Role
from cloister.hub.services import auditing
from cloister.hub.services.notices import notify, notify_owners
from cloister.hub.store.models import Dataset, Notice, User

__all__ = ["ACTION", "DAMAGED", "is_damage", "record_damage"]

ACTION = "hub.integrity"
"""The name of incidents in the audit log."""

DAMAGED = {
    "problem": "What the hub has stored is not as it was kept, so nothing is answered from it.",
    "fix": "tell the owner and the operator, who were told, too; what was paid stays paid.",
}
"""What the person is told whose work found it."""

_TOLD_ROLES = {Role.AUDITOR, Role.OPERATOR}


def is_damage(error: BaseException) -> bool:
    """Return whether an error says that something stored was changed or is gone."""
    return isinstance(error, (DecryptionError, SourceNotFoundError))


def record_damage(session: Session, *, target: str, dataset_id: str | None) -> None:
    """Keep an incident in the audit log, and tell those who can do something about it, once for each target."""
    dataset = None if dataset_id is None else session.get(Dataset, dataset_id)
    about = "" if dataset is None else f" of {dataset.title or dataset.name}"
    words = f"Stored data{about} is damaged ({target}): restore it from a backup, and find out who changed it."
    if session.scalars(select(Notice.id).where(Notice.text == words).limit(1)).first() is not None:
        return
    auditing.append(
        session,
        ACTION,
        by=auditing.HUB,
        target=target,
        dataset_id=dataset_id,
        outcome=Outcome.REFUSED,
        problem="not as it was kept",
    )
    for user in session.scalars(select(User).where(User.is_disabled.is_(False)).order_by(User.id)):
        if _TOLD_ROLES & {Role(role) for role in user.roles}:
            notify(session, user.id, words, link="/audit" if Role.AUDITOR in user.roles else "")
    if dataset is not None:
        notify_owners(session, dataset.organisation_id, words, link=f"/datasets/{dataset.id}/audit")
