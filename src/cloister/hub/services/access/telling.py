"""What every step of a request leaves behind: an entry in the audit log, and notices for those whom it concerns."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.errors import ParameterError
from cloister.hub.domain.actions import Action
from cloister.hub.domain.roles import Subject
from cloister.hub.services import auditing
from cloister.hub.services.notices import notify, notify_owners
from cloister.hub.store.models import AccessRequest

__all__ = ["LONGEST_NOTE", "record", "said", "tell_owners", "tell_requester", "title"]

LONGEST_NOTE = 4_000


def record(session: Session, row: AccessRequest, action: Action | str, *, by: Subject | None, **details: Any) -> None:
    """Keep a step in the audit log; what people wrote to each other is not in it."""
    auditing.append(
        session,
        action,
        by=auditing.HUB if by is None else by,
        target=f"request:{row.id}",
        dataset_id=row.dataset_id,
        state=row.state,
        **details,
    )


def tell_requester(session: Session, row: AccessRequest, words: str, *, but: Subject | None = None) -> None:
    """Leave a line for the one who asked."""
    if but is None or but.user_id != row.requester_id:
        notify(session, row.requester_id, words, link=f"/requests/{row.id}")


def tell_owners(session: Session, row: AccessRequest, words: str, *, but: Subject | None = None) -> None:
    """Leave a line for the owners of the dataset, but not for the one who did it."""
    owner = row.dataset.organisation_id
    notify_owners(session, owner, words, link=f"/requests/{row.id}", but="" if but is None else but.user_id)


def title(row: AccessRequest) -> str:
    """Return how the dataset of a request is called."""
    return row.dataset.title or row.dataset.name


def said(note: str) -> str:
    """Return a note that says something."""
    text = note.strip()
    if not text:
        raise ParameterError("There is nothing written.", fix="write a sentence.")
    return text
