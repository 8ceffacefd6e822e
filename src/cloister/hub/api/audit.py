"""The audit log: all of it for auditors, the part about a dataset for its owner."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from cloister.errors import ParameterError
from cloister.hub.domain import actions
from cloister.hub.domain.audit_chain import AuditHead
from cloister.hub.gateway import CurrentHub, GuardedRouter
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.audit_log import AuditFilter

router = GuardedRouter(tags=["audit"])

Limit = Annotated[int, Query(ge=1, le=audit_log.LONGEST_PAGE)]
Before = Annotated[int | None, Query(ge=1, le=2**62)]
Word = Annotated[str | None, Query(max_length=100)]


@router.guarded("GET", "/audit", actions.READ_AUDIT)
def read_audit(
    *,
    hub: CurrentHub,
    limit: Limit = audit_log.PAGE,
    after: Before = None,
    actor: Word = None,
    action: Word = None,
    outcome: Word = None,
    dataset: Word = None,
) -> dict[str, Any]:
    """Read the audit log, the newest entry first."""
    audit_log.write_counts(hub.store)
    return _page(hub, AuditFilter(actor=actor, action=action, outcome=outcome, dataset_id=dataset), limit, after)


@router.guarded("GET", "/audit/verification", actions.READ_AUDIT)
def verify_audit(
    hub: CurrentHub,
    number: Before = None,
    digest: Annotated[str | None, Query(min_length=64, max_length=64)] = None,
) -> dict[str, Any]:
    """Check the whole chain, and that a head noted before (its number and digest) is still part of it."""
    if (number is None) != (digest is None):
        raise ParameterError("A head has a number and a digest.", fix="give both, or none.")
    known = None if number is None or digest is None else AuditHead(number=number, digest=digest)
    with hub.store.reading() as session:
        head = audit_log.verify(session, known=known)
    return {"schema": "cloister.audit-verification/1", "entries": head.number, "head": head.digest}


@router.guarded("GET", "/datasets/{dataset_id}/audit", actions.READ_OWN_AUDIT)
def read_own_audit(
    hub: CurrentHub, dataset_id: str, limit: Limit = audit_log.PAGE, after: Before = None
) -> dict[str, Any]:
    """Read what happened around one's own dataset, the newest entry first."""
    return _page(hub, AuditFilter(dataset_id=dataset_id), limit, after)


def _page(hub: CurrentHub, wanted: AuditFilter, limit: int, after: int | None) -> dict[str, Any]:
    with hub.store.reading() as session:
        items, following = audit_log.read_entries(session, wanted, before=after, limit=limit)
    return {"schema": "cloister.audit_entries/1", "items": items, "next": following}
