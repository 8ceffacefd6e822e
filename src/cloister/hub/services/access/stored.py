"""Requests as they are stored: a row on one side, a value with all its steps on the other."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy.orm import Session

from cloister.errors import NotFoundError
from cloister.hub.domain.request_file import history_to_list, request_from_dict, request_to_dict
from cloister.hub.domain.requests import AccessRequest
from cloister.hub.store import models

__all__ = ["held", "moment", "put", "value_of"]


def moment() -> datetime:
    """Return this moment, to the microsecond, so that steps in one second keep their order."""
    return datetime.now(UTC)


def held(session: Session, request_id: str) -> models.AccessRequest:
    """Return the row of a request, locked until the transaction ends, so that two who decide at once take turns."""
    row = session.get(models.AccessRequest, request_id, with_for_update={"of": models.AccessRequest})
    if row is None:
        raise NotFoundError("There is no such request, or you may not see it.", fix="check the address.")
    return row


def value_of(row: models.AccessRequest) -> AccessRequest:
    """Return a stored request as a value."""
    return request_from_dict(row.document, row.history, request_id=row.id, requester=row.requester_id, state=row.state)


def put(row: models.AccessRequest, request: AccessRequest) -> None:
    """Keep what a step has made of a request."""
    row.document, row.history = request_to_dict(request), history_to_list(request)
    row.state, row.expires = str(request.state), request.ends
