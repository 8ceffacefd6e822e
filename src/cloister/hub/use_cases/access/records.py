"""What is kept of a request for access, and what every step of it leaves behind.

A request is a row on one side, a value with all its steps on the other. Each step leaves an entry in the audit log, and
notices for those whom it concerns.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.errors import NotFoundError, ParameterError
from cloister.hub.domain.actions import Action
from cloister.hub.domain.requests import AccessRequest, history_to_list, request_from_dict, request_to_dict
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.store import models
from cloister.hub.store.models import AccessRequestRecord
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.notices import notify, notify_owners

__all__ = [
    "LONGEST_NOTE",
    "lock_request",
    "record",
    "require_note",
    "store_request",
    "tell_owners",
    "tell_requester",
    "title",
    "value_of",
]


def lock_request(session: Session, request_id: str) -> models.AccessRequestRecord:
    """Return the row of a request, locked until the transaction ends, so that two who decide at once take turns."""
    row = session.get(models.AccessRequestRecord, request_id, with_for_update={"of": models.AccessRequestRecord})
    if row is None:
        raise NotFoundError("There is no such request, or you may not see it.", fix="check the address.")
    return row


def value_of(row: models.AccessRequestRecord) -> AccessRequest:
    """Return a stored request as a value."""
    return request_from_dict(row.document, row.history, request_id=row.id, requester=row.requester_id, state=row.state)


def store_request(row: models.AccessRequestRecord, request: AccessRequest) -> None:
    """Keep what a step has made of a request."""
    row.document, row.history = request_to_dict(request), history_to_list(request)
    row.state, row.expires = str(request.state), request.ends


LONGEST_NOTE = 4_000


def record(
    session: Session, row: AccessRequestRecord, action: Action | str, *, by: AccessSubject | None, **details: Any
) -> None:
    """Keep a step in the audit log; what people wrote to each other is not in it."""
    audit_log.append(
        session,
        action,
        by=audit_log.HUB if by is None else by,
        target=f"request:{row.id}",
        dataset_id=row.dataset_id,
        state=row.state,
        **details,
    )


def tell_requester(session: Session, row: AccessRequestRecord, words: str, *, but: AccessSubject | None = None) -> None:
    """Leave a line for the one who asked."""
    if but is None or but.user_id != row.requester_id:
        notify(session, row.requester_id, words, link=f"/requests/{row.id}")


def tell_owners(session: Session, row: AccessRequestRecord, words: str, *, but: AccessSubject | None = None) -> None:
    """Leave a line for the owners of the dataset, but not for the one who did it."""
    owner = row.dataset.organisation_id
    notify_owners(session, owner, words, link=f"/requests/{row.id}", but="" if but is None else but.user_id)


def title(row: AccessRequestRecord) -> str:
    """Return how the dataset of a request is called."""
    return row.dataset.title or row.dataset.name


def require_note(note: str) -> str:
    """Return a note that says something."""
    text = note.strip()
    if not text:
        raise ParameterError("There is nothing written.", fix="write a sentence.")
    return text
